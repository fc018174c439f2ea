"""The demo's burst: more requests than one pod takes, until another is ready, and then few until it is removed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from dragoman import sentences
from dragoman.cluster import Cluster, RefusedForLoad

POLL_S = 0.25
AFTERWARDS = 4
"""Requests at once after the burst: there is always one under way that could be lost, and on a small machine the new
pod gets to start."""
SLOW_START_S = 15.0
"""Time after which the start of the new pod is slow."""
DURING_SLOW_START = 20
"""Requests at once during a slow start: more than the first pod runs at once (16), as the autoscaler cancels a start
that the load no longer requires. On a busy machine they may not suffice; the burst is then repeated."""
SERVED_BY_ALL_S = 6.0
"""For how long these go on once the new pod is ready, so that it gets its share and the operator, which decides every
5 s, has seen it."""
MAX_CHARS = 80
"""Length of a request's text."""
SCALE_UP_S = 60.0
"""Maximum time from a burst to the decision to scale up, which takes less than 10 s on an idle machine."""
DEGRADED_S = 60.0
"""Maximum time for which the object may be degraded."""
MAX_BURSTS = 3
"""Bursts in all, where starts are cancelled."""
REPEAT_S = 15.0
"""What is waited for is said again after this time without another message."""
RETRY_S = 0.5
"""After a request that was refused for load, or lost, the next one is sent after this time."""


class BurstError(Exception):
    """The replicas did not follow the load; the message has the reason."""


@dataclass
class Tally:
    """What became of the requests, and of the pods.

    Attributes:
        answered: Requests with a translation.
        lost: Requests that ended in anything else.
        first_loss: What the first of them ended in.
        replicas_max: Maximum number of pods that were ready at one time.
    """

    answered: int = 0
    lost: int = 0
    first_loss: str = ""
    replicas_max: int = 0


class Load:
    """Keeps so many requests in flight; the number may change."""

    def __init__(self, cluster: Cluster, wanted: list[sentences.Sentence], tally: Tally) -> None:
        self._cluster, self._tally = cluster, tally
        self._requests = varied(wanted)
        self._in_flight = 0
        self._running: set[asyncio.Task[None]] = set()

    def keep(self, in_flight: int) -> None:
        """Have so many requests in flight from now on; those that are, end in their own time."""
        self._in_flight = in_flight
        while len(self._running) < in_flight:
            task = asyncio.create_task(self._send(len(self._running)))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def aclose(self) -> None:
        """Send nothing more, and wait for the answers."""
        self._in_flight = 0
        while self._running:
            await asyncio.gather(*self._running)

    async def _send(self, place: int) -> None:
        while place < self._in_flight:
            try:
                await self._cluster.translate(next(self._requests))
            except RefusedForLoad:
                await asyncio.sleep(RETRY_S)
            except (RuntimeError, aiohttp.ClientError, TimeoutError) as error:
                self._tally.lost += 1
                self._tally.first_loss = self._tally.first_loss or f"{type(error).__name__}: {error}"
                await asyncio.sleep(RETRY_S)
            else:
                self._tally.answered += 1


def varied(wanted: list[sentences.Sentence]) -> Iterator[dict[str, str]]:
    """Requests without end, of which thousands differ: a pod translates equal texts once.

    Each has two texts of `wanted`, into every language that it has for theirs. Together they are as long as what the
    demo model was trained on; after longer ones it sometimes does not end.
    """
    pairs = dict.fromkeys((each.source_lang, each.target_lang) for each in wanted)
    for distance in itertools.count():
        for place, first in enumerate(wanted):
            second = wanted[(place + distance) % len(wanted)]
            text = f"{first.text} {second.text}"
            if second.source_lang == first.source_lang and len(text) <= MAX_CHARS:
                for source, target in pairs:
                    if source == first.source_lang:
                        yield {"text": text, "source_lang": source, "target_lang": target, "split": "none"}


async def burst(
    cluster: Cluster,
    wanted: list[sentences.Sentence],
    in_flight: int,
    timeout_s: float,
    say: Callable[[str], None],
) -> Tally:
    """Scale up by a burst and down by its end, with requests under way all the time.

    Args:
        cluster: Of the deployment.
        wanted: Sentences to translate.
        in_flight: Requests at once in the burst.
        timeout_s: Maximum time of the second pod's start, and of the scale-down.
        say: Prints a line of progress.

    Raises:
        BurstError: The replicas did not follow.
    """
    tally = Tally()
    load = Load(cluster, wanted, tally)
    watch = Watch(cluster, tally, say)
    try:
        await _scale_up(load, watch, in_flight, timeout_s)
        load.keep(AFTERWARDS)
        watch.say(f"{tally.replicas_max} replicas are ready")
        served_by_all = watch.time_limit(SERVED_BY_ALL_S)
        while not served_by_all():
            await watch.look()
        await _until_one_is_left(cluster, watch, timeout_s)
        watch.say("1 replica is left")
    finally:
        await load.aclose()
    return tally


class Watch:
    """Looks at the object's status, and reports its changes.

    Attributes:
        desired: Desired replicas.
        ready: Ready replicas.
        reason: Of the autoscaler's last decision.
    """

    desired = ready = 1
    reason = ""

    def __init__(self, cluster: Cluster, tally: Tally, say: Callable[[str], None]) -> None:
        self._cluster, self._tally, self._say = cluster, tally, say
        self._changes: list[dict[str, Any]] = []
        self._said: set[str] = set()
        self._waits_for, self._said_s = "", 0.0
        self._degraded_too_long: Callable[[], bool] | None = None

    def time_limit(self, seconds: float) -> Callable[[], bool]:
        """Whether so much time has passed from now on."""
        ends_s = time.monotonic() + seconds
        return lambda: time.monotonic() >= ends_s

    async def look(self) -> None:
        """Read the status after `POLL_S`.

        Raises:
            BurstError: The object has been degraded for `DEGRADED_S`.
        """
        await asyncio.sleep(POLL_S)
        status = await self._cluster.status()
        scaling = status.get("scaling", {})
        self.desired, self.ready = status.get("desiredReplicas", 0), status.get("readyReplicas", 0)
        self.reason = scaling.get("reason") or ""
        self._tally.replicas_max = max(self._tally.replicas_max, self.ready)
        changes = scaling.get("changes", [])
        for change in reversed([change for change in changes if change not in self._changes]):
            waiting = scaling.get("signals", {}).get("waiting", 0)
            self.say(
                f"{change['from']} → {change['to']} replicas ({change['rule']}; {waiting:.0f} "
                f"requests wait in the engines): {change['reason']}"
            )
            self._changes.append(change)
        degraded = [each for each in status.get("conditions", ()) if each["type"] == "Degraded"]
        if not degraded or degraded[0]["status"] != "True":
            self._degraded_too_long = None
        elif self._degraded_too_long is None:
            self._degraded_too_long = self.time_limit(DEGRADED_S)
        elif self._degraded_too_long():
            raise BurstError(f"the deployment is degraded: {degraded[0].get('message')}")

    async def starting(self) -> list[str]:
        """Phases of the pods that start, each of which is reported once."""
        phases = [phase for phase in await self._cluster.loading() if ": ready" not in phase]
        for phase in phases:
            if phase not in self._said:
                self._said.add(phase)
                self.say(phase)
        return phases

    def say(self, message: str) -> None:
        """Print a message."""
        self._say(message)
        self._said_s = time.monotonic()

    def remind(self, message: str) -> None:
        """Print what is waited for after `REPEAT_S` without a message."""
        if time.monotonic() - self._said_s >= REPEAT_S:
            self.say(message)

    def waits_for(self, message: str) -> None:
        """Print what is waited for, when it changes, and as `remind` does."""
        if message != self._waits_for:
            self._waits_for = message
            self.say(message)
        self.remind(message)


async def _scale_up(load: Load, watch: Watch, in_flight: int, timeout_s: float) -> None:
    """Send a burst until a second pod is desired, and less until it is ready; after cancelled starts whole bursts."""
    for number in range(1, MAX_BURSTS + 1):
        load.keep(in_flight)
        late, too_late = watch.time_limit(REPEAT_S), watch.time_limit(SCALE_UP_S)
        while watch.desired < 2:
            if too_late():
                raise BurstError(
                    f"no scale-up after {SCALE_UP_S:.0f} s of {in_flight} sentences at once: {watch.reason}"
                )
            if late():
                watch.waits_for(f"waiting for the scale-up: {watch.reason}")
            await watch.look()
        if number == 1:
            watch.say(f"the burst ends; {AFTERWARDS} sentences at once from here")
            load.keep(AFTERWARDS)
        if await _becomes_ready(load, watch, timeout_s, in_flight if number > 1 else DURING_SLOW_START):
            return
        if number < MAX_BURSTS:
            watch.say(
                f"the start of the other pod was cancelled ({watch.reason}); the burst again, {in_flight} "
                "sentences at once until the pod is ready"
            )
    raise BurstError(f"{MAX_BURSTS} starts of the other pod were cancelled, at last because: {watch.reason}")


async def _becomes_ready(load: Load, watch: Watch, timeout_s: float, during_slow_start: int) -> bool:
    """Wait for the second pod; whether it is ready, False where its start is cancelled."""
    slow, too_slow = watch.time_limit(SLOW_START_S), watch.time_limit(timeout_s)
    is_slow = False
    while watch.desired > 1:
        if watch.ready > 1:
            return True
        phases = "; ".join(await watch.starting()) or "no pod starts"
        if too_slow():
            raise BurstError(f"the other pod is not ready after {timeout_s:.0f} s: {phases}")
        if slow():
            if not is_slow:
                is_slow = True
                watch.say(
                    f"the other pod starts slowly; {during_slow_start} sentences at once until it is ready"
                )
                load.keep(during_slow_start)
            watch.remind(f"waiting for the start: {phases}")
        await watch.look()
    return False


async def _until_one_is_left(cluster: Cluster, watch: Watch, timeout_s: float) -> None:
    """Wait for the scale-down, and report why the autoscaler has not decided on it yet."""
    too_late = watch.time_limit(timeout_s)
    while len(await cluster.pods()) != 1:
        if too_late():
            raise BurstError(f"no scale-down after {timeout_s:.0f} s of little load: {watch.reason}")
        await watch.look()
        watch.waits_for(
            "the other pod completes its requests and ends"
            if watch.desired == 1
            else f"waiting for the scale-down: {watch.reason}"
        )
