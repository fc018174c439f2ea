import asyncio

import pytest
from starlette.responses import Response

from dragoman_contract.routing import LAME_DUCK_S, REFUSED_HEADER, ROUTER_SEEN_S
from dragoman_protocols import native
from dragoman_protocols.api import Request
from dragoman_protocols.deepl.errors import DocumentNotDoneError
from dragoman_protocols.errors import (
    CapacityError,
    CutShortError,
    DrainingError,
    EngineDeadError,
    NotReadyError,
    OverloadedError,
    RequestError,
)
from dragoman_service.http.answering import refusal
from dragoman_service.http.draining import (
    DIRECT_SEEN_S,
    FETCH_S,
    MOST_ROUTERS,
    ON_THE_WAY_S,
    Routers,
    Seen,
    Unfetched,
    lame_duck_s,
    may_stop,
)
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.work import response_of

NOW_S = 1000.0


class Native:
    def refuse(self, error: RequestError) -> Response:
        return response_of(native.API.error(error, Request("POST", "/translate", b"", [])))


SILENT = Seen(NOW_S - ROUTER_SEEN_S - 1)
ACTIVE = Seen(NOW_S - ROUTER_SEEN_S)
DRAINED = Seen(NOW_S - 3, drained_s=NOW_S - 2)
STILL_ARRIVING = Seen(NOW_S - 2 + ON_THE_WAY_S, drained_s=NOW_S - 2)
BACK_AGAIN = Seen(NOW_S, drained_s=NOW_S - 2)


@pytest.mark.parametrize(
    ("routers", "may"),
    [
        ([], False),
        ([SILENT], False),
        ([ACTIVE], False),
        ([DRAINED], True),
        ([STILL_ARRIVING], True),
        ([BACK_AGAIN], False),
        ([DRAINED, DRAINED], True),
        ([DRAINED, ACTIVE], False),
        ([DRAINED, SILENT], True),
    ],
)
def test_a_pod_may_stop_once_each_router_heard_from_lately_has_confirmed(
    routers: list[Seen], may: bool
) -> None:
    assert may_stop(routers, NOW_S) is may


@pytest.mark.parametrize(
    ("asked_s", "routers", "expected_s"),
    [
        (None, [], 0),
        (None, [SILENT], 0),
        (None, [SILENT, ACTIVE], LAME_DUCK_S),
        (0.0, [ACTIVE], 0),
        (30.0, [], 30),
    ],
)
def test_only_a_router_makes_a_lame_duck_unless_a_time_is_set(
    asked_s: float | None, routers: list[Seen], expected_s: float
) -> None:
    assert lame_duck_s(asked_s, routers, NOW_S) == expected_s


def test_a_confirmation_outlasts_requests_that_were_on_their_way() -> None:
    now_s = NOW_S
    routers = Routers(lambda: now_s)
    routers.heard("a")
    assert not routers.may_stop
    routers.drained("a")
    now_s += ON_THE_WAY_S / 2
    routers.heard("a")
    assert routers.may_stop
    now_s += ON_THE_WAY_S
    routers.heard("a")
    assert not routers.may_stop
    routers.drained("a")
    assert routers.may_stop


def test_the_router_that_was_silent_for_longest_makes_room() -> None:
    routers = Routers(lambda: NOW_S)
    routers.heard("unconfirmed")
    for number in range(MOST_ROUTERS):
        routers.drained(str(number))
    assert routers.may_stop
    routers.heard("another")
    assert not routers.may_stop


async def test_the_last_confirmation_releases_a_pod_that_is_to_leave() -> None:
    lifecycle = Lifecycle()
    lifecycle.ready()
    lifecycle.routers.heard("b")
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
    ("error", "said"),
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
def test_refusals_of_work_that_was_not_begun_say_so(error: RequestError, said: str | None) -> None:
    assert refusal(Native(), error).headers.get(REFUSED_HEADER) == said


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
    confirmed = [Seen(heard_s=100, drained_s=100)]
    assert may_stop(confirmed, 101)
    assert not may_stop(confirmed, 101, direct_s=101 - DIRECT_SEEN_S)
    assert may_stop(confirmed, 101, direct_s=100.9 - DIRECT_SEEN_S)
    assert lame_duck_s(None, [], 101, direct_s=100) == LAME_DUCK_S
    assert lame_duck_s(None, [], 1000, direct_s=100) == 0
    assert lame_duck_s(7, [], 101, direct_s=100) == 7
