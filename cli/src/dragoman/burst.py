"""The demo's burst: more requests than one pod takes, until another is ready, and then few until it is removed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
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
that the load no longer requires."""
SERVED_BY_ALL_S = 6.0
"""For how long these go on once the new pod is ready, so that it gets its share and the operator, which decides every
5 s, has seen it."""
MAX_CHARS = 80
"""Length of a request's text."""
RETRY_S = 0.5
"""After a request that was refused for load, or lost, the next one is sent after this time."""


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
    scaled_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once more than one pod is desired."""
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once more than one pod is ready."""


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

    Raises:
        TimeoutError: The replicas did not follow.
    """
    tally = Tally()
    load = Load(cluster, wanted, tally)
    watching = asyncio.create_task(_report_changes(cluster, tally, say))
    try:
        load.keep(in_flight)
        async with asyncio.timeout(timeout_s):
            await tally.scaled_up.wait()
            say(f"the burst ends; {AFTERWARDS} sentences at once from here")
            load.keep(AFTERWARDS)
            await _until_grown(cluster, load, tally, say)
        say(f"{tally.replicas_max} replicas are ready")
        await asyncio.sleep(SERVED_BY_ALL_S)
        async with asyncio.timeout(timeout_s):
            await _until_one_is_left(cluster, say)
        say("1 replica is left")
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await load.aclose()
    return tally


async def _until_grown(cluster: Cluster, load: Load, tally: Tally, say: Callable[[str], None]) -> None:
    """Wait for another replica, and report what its pod does until it is ready."""
    reported: set[str] = set()
    clock = asyncio.get_running_loop().time
    slow_at, slow = clock() + SLOW_START_S, False
    while not tally.grown.is_set():
        if not slow and clock() >= slow_at:
            slow = True
            say(f"the other pod starts slowly; {DURING_SLOW_START} sentences at once until it is ready")
            load.keep(DURING_SLOW_START)
        for phase in await cluster.loading():
            if phase not in reported and ": ready" not in phase:
                say(phase)
                reported.add(phase)
        await asyncio.sleep(POLL_S)
    load.keep(AFTERWARDS)


async def _until_one_is_left(cluster: Cluster, say: Callable[[str], None]) -> None:
    """Wait for the scale-down, and report why the autoscaler has not decided on it yet."""
    reported = ""
    while len(await cluster.pods()) != 1:
        status = await cluster.status()
        message = f"waiting for the scale-down: {status.get('scaling', {}).get('reason', '')}"
        if status.get("desiredReplicas", 0) == 1:
            message = "the other pod completes its requests and ends"
        if message != reported:
            say(message)
            reported = message
        await asyncio.sleep(POLL_S)


async def _report_changes(cluster: Cluster, tally: Tally, say: Callable[[str], None]) -> None:
    reported: list[dict[str, Any]] = []
    while True:
        status = await cluster.status()
        tally.replicas_max = max(tally.replicas_max, status.get("readyReplicas", 0))
        if status.get("desiredReplicas", 0) > 1:
            tally.scaled_up.set()
        if tally.replicas_max > 1:
            tally.grown.set()
        changes = status.get("scaling", {}).get("changes", [])
        for change in reversed([change for change in changes if change not in reported]):
            signals = status["scaling"].get("signals", {})
            say(
                f"{change['from']} → {change['to']} replicas ({change['rule']}; {signals.get('waiting', 0):.0f} "
                f"requests wait in the engines): {change['reason']}"
            )
            reported.append(change)
        await asyncio.sleep(POLL_S)
