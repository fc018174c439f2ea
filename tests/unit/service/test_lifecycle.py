import asyncio

import pytest

from dragoman_protocols.errors import DrainingError, EngineDeadError, NotReadyError
from dragoman_service.engine.protocol import Phase, Progress
from dragoman_service.http.lifecycle import Lifecycle


def test_a_start_goes_through_its_phases_and_keeps_its_length() -> None:
    now_s = 100.0
    lifecycle = Lifecycle(clock=lambda: now_s)
    lifecycle.report(Progress(Phase.DOWNLOADING, 0.5))
    now_s = 107.5
    assert (lifecycle.progress, lifecycle.start_s, lifecycle.started) == (
        Progress(Phase.DOWNLOADING, 0.5),
        7.5,
        False,
    )
    lifecycle.ready()
    now_s = 500.0
    assert (lifecycle.phase, lifecycle.start_s, lifecycle.started) == (Phase.READY, 7.5, True)


def test_idle_time_counts_from_the_end_of_the_last_request_of_a_ready_pod() -> None:
    now_s = 100.0
    lifecycle = Lifecycle(clock=lambda: now_s)
    now_s = 150.0
    assert lifecycle.idle_s == 0
    lifecycle.ready()
    now_s = 155.0
    assert lifecycle.idle_s == 5
    with lifecycle.admit():
        now_s = 170.0
        assert lifecycle.idle_s == 0
    now_s = 172.0
    assert lifecycle.idle_s == 2
    lifecycle.leave()
    assert lifecycle.idle_s == 0


@pytest.mark.parametrize("end", ["ready", "drain", "fail"])
def test_a_late_report_changes_nothing(end: str) -> None:
    lifecycle = Lifecycle()
    getattr(lifecycle, end)()
    before = lifecycle.phase
    lifecycle.report(Progress(Phase.LOADING))
    assert lifecycle.phase is before


def test_a_drain_during_the_start_is_final() -> None:
    lifecycle = Lifecycle()
    lifecycle.drain()
    lifecycle.ready()
    assert (lifecycle.phase, lifecycle.started) == (Phase.DRAINING, False)


@pytest.mark.parametrize(
    ("end", "error"), [("report", NotReadyError), ("drain", DrainingError), ("fail", EngineDeadError)]
)
def test_only_a_ready_pod_admits(end: str, error: type[Exception]) -> None:
    lifecycle = Lifecycle()
    if end == "report":
        lifecycle.report(Progress(Phase.LOADING))
    else:
        lifecycle.ready()
        getattr(lifecycle, end)()
    with pytest.raises(error), lifecycle.admit():
        pass
    assert lifecycle.in_flight == 0


async def test_a_drain_waits_for_the_last_request_in_flight() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    with lifecycle.admit():
        lifecycle.drain()
        assert not await lifecycle.until_idle(0.01)
        waiting = asyncio.create_task(lifecycle.until_idle(60))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting


async def test_a_drain_admits_what_came_by_no_router_until_its_end() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    lifecycle.drain()
    with lifecycle.admit(direct=True):
        assert lifecycle.in_flight == 1
    with pytest.raises(DrainingError), lifecycle.admit():
        pass
    lifecycle.give_up()
    with pytest.raises(DrainingError), lifecycle.admit(direct=True):
        pass


def test_a_drain_during_the_start_admits_nothing() -> None:
    lifecycle = Lifecycle()
    lifecycle.drain()
    with pytest.raises(DrainingError), lifecycle.admit(direct=True):
        pass


async def test_a_request_that_follows_the_last_one_at_once_is_waited_for_too() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    with lifecycle.admit(direct=True):
        lifecycle.drain()
        waiting = asyncio.create_task(lifecycle.until_idle(60))
        await asyncio.sleep(0)
    with lifecycle.admit(direct=True):
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting


def test_a_failed_request_gives_its_place_back() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    with pytest.raises(ZeroDivisionError), lifecycle.admit():
        raise ZeroDivisionError
    assert lifecycle.in_flight == 0


def test_a_pod_that_is_about_to_leave_still_admits() -> None:
    lifecycle = Lifecycle()
    lifecycle.leave()
    assert lifecycle.progress == Progress(Phase.STARTING)
    lifecycle.ready()
    assert not lifecycle.closes_connections()
    lifecycle.leave()
    with lifecycle.admit():
        assert lifecycle.phase is Phase.LEAVING
    lifecycle.report(Progress(Phase.LOADING))
    assert lifecycle.phase is Phase.LEAVING
    lifecycle.drain()
    assert lifecycle.progress == Progress(Phase.DRAINING)
