import pytest

from dragoman_service.engine.protocol import Phase
from dragoman_service.http.control import Tolerance, liveness_failure, readiness_failure

STRICT = Tolerance(stall_timeout_s=10, unready_when_overloaded=True)
LAX = Tolerance(stall_timeout_s=10)


@pytest.mark.parametrize(
    ("phase", "stalled_s", "reason"),
    [
        (Phase.LOADING, 0, None),
        (Phase.READY, 10, None),
        (Phase.READY, 10.1, "the engine has had work for 10 s and has done none of it"),
        (Phase.LEAVING, 60, "the engine has had work for 60 s and has done none of it"),
        (Phase.DRAINING, 0, None),
        (Phase.FAILED, 0, "the engine is gone"),
    ],
)
def test_only_what_a_restart_helps_against_is_a_liveness_failure(
    phase: Phase, stalled_s: float, reason: str | None
) -> None:
    assert liveness_failure(phase, stalled_s, LAX) == reason


@pytest.mark.parametrize(
    ("phase", "full", "tolerance", "reason"),
    [
        (Phase.READY, False, STRICT, None),
        (Phase.READY, True, LAX, None),
        (Phase.READY, True, STRICT, "this replica has as much as it may take on"),
        (Phase.LEAVING, False, LAX, "this replica is about to leave"),
        (Phase.DRAINING, False, LAX, "the phase is draining"),
        (Phase.COMPILING, False, LAX, "the phase is compiling"),
        (Phase.FAILED, False, LAX, "the engine is gone"),
    ],
)
def test_requests_should_come_to_a_ready_pod_alone(
    phase: Phase, full: bool, tolerance: Tolerance, reason: str | None
) -> None:
    assert readiness_failure(phase, 0.0, full, tolerance) == reason


def test_a_stuck_engine_should_get_nothing_more() -> None:
    assert readiness_failure(Phase.READY, 11.0, False, LAX) is not None
