"""The answer of `/fleet`, from what a router has."""

import json
from typing import Any

import pytest

from dragoman_protocols.errors import InvalidFieldError, UnknownPathError
from dragoman_protocols.fleet import Observed, ObservedFleet, Sample, Scaling, ScalingChange, cost
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.page.endpoints import FLEET as ENDPOINT
from dragoman_protocols.page.endpoints import FLEET_PATH
from dragoman_protocols.routes import ENDPOINTS, recognise
from dragoman_protocols.site import Limits, Site


def sample(time: int, characters: int = 0, gpus: float | None = None) -> Sample:
    return Sample(time, ready=1, wanted=2, queued=3, running=4, characters=characters, gpus=gpus)


SAMPLES = (sample(60, 100, 2), sample(120, 300, 2), sample(180, 600, 2))
CHANGE = ScalingChange("2026-11-25T03:00:00Z", 1, 2, "Backlog", "118 wait")
FLEET = ObservedFleet(
    "r1", 185, 60, 14_400, (Observed("a/b", sample(185), SAMPLES, Scaling("Load", "busy", None, (CHANGE,))),)
)


def get(query: bytes = b"", fleet: ObservedFleet | None = FLEET, page: bool = True) -> Answer:
    request = Request("GET", FLEET_PATH, query, [])
    endpoint = recognise(request)
    assert endpoint is ENDPOINT
    assert endpoint.respond is not None
    return endpoint.respond(request, Site(offer_of([]), (), Limits(None, 1), page=page, fleet=fleet))


def document(query: bytes = b"") -> Any:
    return json.loads(get(query).body)["deployments"][0]


def test_a_deployment_has_now_its_history_by_field_and_its_decisions() -> None:
    found = document()
    assert (found["name"], found["now"]["time"], found["now"]["queued"]) == ("a/b", 185, 3)
    assert found["history"]["time"] == [60, 120, 180]
    assert found["history"]["characters"] == [100, 300, 600]
    assert found["history"]["p95_s"] == [None] * 3
    assert found["scaling"]["changes"][0] == {
        "time": "2026-11-25T03:00:00Z",
        "from": 1,
        "to": 2,
        "rule": "Backlog",
        "reason": "118 wait",
    }


def test_samples_that_the_client_has_are_left_out_and_the_sums_are_the_same() -> None:
    found = document(b"since=120")
    assert found["history"]["time"] == [180]
    assert document(b"since=180")["history"]["time"] == []
    assert found["characters"] == 1000
    assert found["gpu_seconds_per_million_characters"] == 360_000


@pytest.mark.parametrize("since", [b"x", b"-1", b"inf", b"nan", b""])
def test_a_time_that_is_none_is_refused(since: bytes) -> None:
    with pytest.raises(InvalidFieldError, match="since"):
        get(b"since=" + since)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], (0, None)),
        ([sample(0, 100)], (100, None)),
        ([sample(0, 0, 8)], (0, None)),
        # A minute without characters costs as much as any other.
        ([sample(0, 500_000, 1), sample(60, 0, 1), sample(120, 500_000, 2)], (1_000_000, 240.0)),
    ],
)
def test_cost_is_gpu_seconds_for_a_million_characters(
    samples: list[Sample], expected: tuple[int, float | None]
) -> None:
    assert cost(samples, 60) == expected


def test_the_answer_is_not_kept_by_caches() -> None:
    assert ("Cache-Control", "no-store") in get().headers


def test_it_needs_a_key_where_keys_are_required() -> None:
    assert ENDPOINT.needs_key
    assert [each for each in ENDPOINTS if each.path == FLEET_PATH] == [ENDPOINT]


def test_without_the_page_and_at_a_pod_the_path_is_unknown() -> None:
    with pytest.raises(UnknownPathError, match="the page is off"):
        get(page=False)
    with pytest.raises(UnknownPathError, match="engine pod"):
        get(fleet=None)
