"""Busy polling keeps a loop awake for its time, and no longer."""

from collections.abc import Callable

from dragoman_router.http.busy_polling import BusyPolling


class Loop:
    """A clock, and what is to be called."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.soon: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        calls, self.soon = self.soon, []
        for call in calls:
            call()


def polling(loop: Loop) -> BusyPolling:
    return BusyPolling(0.005, loop)  # type: ignore[arg-type]


def test_nothing_keeps_the_loop_awake_before_a_request() -> None:
    loop = Loop()
    polling(loop)
    assert not loop.soon


def test_a_request_keeps_it_awake_for_a_while() -> None:
    loop = Loop()
    polling(loop).extend()
    for now_s in (100.001, 100.004):
        loop.now_s = now_s
        loop.turn()
        assert len(loop.soon) == 1
    loop.now_s = 100.006
    loop.turn()
    assert not loop.soon


def test_the_last_request_says_for_how_long() -> None:
    loop = Loop()
    awake = polling(loop)
    awake.extend()
    loop.now_s = 100.004
    awake.extend()
    loop.turn()
    loop.now_s = 100.008
    loop.turn()
    assert len(loop.soon) == 1  # One turn of its own, however many requests.


def test_it_begins_again_after_a_pause() -> None:
    loop = Loop()
    awake = polling(loop)
    awake.extend()
    loop.now_s = 101.0
    loop.turn()
    awake.extend()
    assert len(loop.soon) == 1
