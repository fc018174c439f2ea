import asyncio
from typing import Any

import pytest

from dragoman_contract.routing import LAME_DUCK_S, REFUSED_HEADER, ROUTER_SEEN_S
from dragoman_http.exchange import Exchange
from dragoman_protocols.errors import (
    CapacityError,
    CutShortError,
    DocumentNotDoneError,
    DrainingError,
    EngineDeadError,
    NotReadyError,
    OverloadedError,
    RequestError,
)
from dragoman_protocols.messages import Request
from dragoman_protocols.routes import recognise
from dragoman_service.http.lifecycle import (
    DIRECT_SEEN_S,
    FETCH_S,
    IN_TRANSIT_S,
    MAX_ROUTERS,
    Lifecycle,
    Routers,
    SeenRouter,
    Unfetched,
)

NOW_S = 1000.0


OLD = SeenRouter(NOW_S - ROUTER_SEEN_S - 1)
ACTIVE = SeenRouter(NOW_S - ROUTER_SEEN_S)
DRAINED = SeenRouter(NOW_S - 3, drained_s=NOW_S - 2)
STILL_ARRIVING = SeenRouter(NOW_S - 2 + IN_TRANSIT_S, drained_s=NOW_S - 2)
BACK_AGAIN = SeenRouter(NOW_S, drained_s=NOW_S - 2)


def known(*routers: SeenRouter, direct_s: float = float("-inf")) -> Routers:
    found = Routers(lambda: NOW_S)
    found._seen = {str(number): router for number, router in enumerate(routers)}
    found._direct_s = direct_s
    return found


@pytest.mark.parametrize(
    ("routers", "may"),
    [
        ([], False),
        ([OLD], False),
        ([ACTIVE], False),
        ([DRAINED], True),
        ([STILL_ARRIVING], True),
        ([BACK_AGAIN], False),
        ([DRAINED, DRAINED], True),
        ([DRAINED, ACTIVE], False),
        ([DRAINED, OLD], True),
    ],
)
def test_a_pod_may_stop_once_each_recent_router_has_confirmed(routers: list[SeenRouter], may: bool) -> None:
    assert known(*routers).may_stop is may


@pytest.mark.parametrize(
    ("configured_s", "routers", "expected_s"),
    [
        (None, [], 0),
        (None, [OLD], 0),
        (None, [OLD, ACTIVE], LAME_DUCK_S),
        (0.0, [ACTIVE], 0),
        (30.0, [], 30),
    ],
)
def test_only_a_router_makes_a_lame_duck_unless_a_time_is_set(
    configured_s: float | None, routers: list[SeenRouter], expected_s: float
) -> None:
    assert known(*routers).lame_duck_s(configured_s) == expected_s


def test_a_confirmation_outlasts_requests_in_transit() -> None:
    now_s = NOW_S
    routers = Routers(lambda: now_s)
    routers.record("a")
    assert not routers.may_stop
    routers.drained("a")
    now_s += IN_TRANSIT_S / 2
    routers.record("a")
    assert routers.may_stop
    now_s += IN_TRANSIT_S
    routers.record("a")
    assert not routers.may_stop
    routers.drained("a")
    assert routers.may_stop


def test_the_router_without_requests_for_longest_is_forgotten() -> None:
    routers = Routers(lambda: NOW_S)
    routers.record("unconfirmed")
    for number in range(MAX_ROUTERS):
        routers.drained(str(number))
    assert routers.may_stop
    routers.record("another")
    assert not routers.may_stop


async def test_the_last_confirmation_releases_a_pod_that_is_to_leave() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    lifecycle.routers.record("b")
    lifecycle.drained("a")
    lifecycle.leave()
    assert not lifecycle.released.is_set()
    lifecycle.drained("b")
    assert lifecycle.released.is_set()


async def test_confirmations_before_the_end_release_it_at_once_and_not_earlier() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    lifecycle.drained("a")
    assert not lifecycle.released.is_set()
    lifecycle.leave()
    assert lifecycle.released.is_set()


@pytest.mark.parametrize(
    ("error", "mark"),
    [
        (DrainingError("x"), "draining"),
        (NotReadyError("x"), "not_ready"),
        (OverloadedError("x"), "overloaded"),
        (CutShortError("x"), None),
        (DocumentNotDoneError("x"), None),
        (CapacityError("x"), None),
        (EngineDeadError("x"), None),
    ],
)
def test_refusals_before_any_work_are_marked(error: RequestError, mark: str | None) -> None:
    request = Request("POST", "/translate", b"", [])
    endpoint = recognise(request)
    nowhere: Any = None
    exchange = Exchange(request, {}, nowhere, nowhere)
    exchange.set_endpoint(endpoint)
    assert dict(exchange.refused(error).headers).get(REFUSED_HEADER) == mark


def test_results_are_waited_for_until_they_are_fetched_or_too_old() -> None:
    now_s = NOW_S
    unfetched = Unfetched(clock=lambda: now_s)
    assert not len(unfetched)
    for key in ("old", "new"):
        now_s += 1
        unfetched.put(key)
    assert len(unfetched) == 2
    unfetched.fetched("none")
    now_s += FETCH_S - 1
    assert len(unfetched) == 1
    unfetched.fetched("new")
    assert not len(unfetched)


async def test_the_last_fetch_ends_the_wait() -> None:
    unfetched = Unfetched()
    assert await unfetched.until_none(0)
    unfetched.put("one")
    unfetched.put("two")
    waiting = asyncio.create_task(unfetched.until_none(60))
    unfetched.fetched("one")
    await asyncio.sleep(0)
    assert not waiting.done()
    unfetched.fetched("two")
    assert await asyncio.wait_for(waiting, 5)
    unfetched.put("three")
    assert not await unfetched.until_none(0.01)
    waiting = asyncio.create_task(unfetched.until_none(60))
    await asyncio.sleep(0)
    unfetched.forget()
    assert await asyncio.wait_for(waiting, 5)


def test_a_client_that_came_by_no_router_lately_keeps_a_pod_that_all_routers_have_confirmed() -> None:
    assert known(DRAINED).may_stop
    assert not known(DRAINED, direct_s=NOW_S - DIRECT_SEEN_S).may_stop
    assert known(DRAINED, direct_s=NOW_S - DIRECT_SEEN_S - 0.1).may_stop
    assert known(direct_s=NOW_S - 1).lame_duck_s(None) == LAME_DUCK_S
    assert known(direct_s=NOW_S - 900).lame_duck_s(None) == 0
    assert known(direct_s=NOW_S - 1).lame_duck_s(7) == 7
