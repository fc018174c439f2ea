"""A clock that stands still until a test moves it."""


class Clock:
    """Seconds since any moment, as `time.monotonic` and `time.time` give them."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
