"""The load of the soak and what became of it: a steady rate, bursts, slow readers, clients that leave."""

from __future__ import annotations

import asyncio
import itertools
import time
from array import array
from collections.abc import Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from faults.client import BrokenError, Client, GarbledError
from faults.questions import Question, lengthened
from faults.sending import PATH, Outcome, Patience, send

LONGEST_WORDS = 25
"""By which a steady request's text is longer than the shortest."""
BIG_WORDS, BIG_COPIES = 200, 400
"""Of a slow reader's request: about half a megabyte, of which one text is generated and the others are its copies."""
PATIENCE = Patience()
KEPT = 200
"""Descriptions of lost or wrong requests that the result has at most; all are counted."""


@dataclass
class Trouble:
    """A request that was lost or answered wrongly.

    Args:
        at_s: When it was sent.
        took_s: Until it was given up.
        load: `steady`, `burst` or `slow reader`.
        way: Its attempts; see `faults.sending.Outcome`.
    """

    at_s: float
    took_s: float
    load: str
    why: str
    way: list[str]


@dataclass
class Counts:
    """What became of the requests.

    Args:
        sent: All but those of clients that leave.
        reconnected: Connections refused or broken before an answer, after which the other router was used.
        refused: Answers 429 and 503 with Retry-After, after which the request was sent again.
        resent: Requests that a router sent to more than one replica.
        slow_whole: Slow readers whose answer was whole.
        slow_cut: Slow readers whose answer was cut off: neither lost nor wrong, the server need not wait for ever.
        troubles: What was lost or wrong, the first of each.
    """

    sent: int = 0
    ok: int = 0
    lost: int = 0
    wrong: int = 0
    reconnected: int = 0
    refused: int = 0
    resent: int = 0
    slow_whole: int = 0
    slow_cut: int = 0
    left: int = 0
    troubles: dict[str, list[Trouble]] = field(default_factory=lambda: {"lost": [], "wrong": []})
    seconds: array[float] = field(default_factory=lambda: array("f"))

    def trouble(self, kind: str, trouble: Trouble) -> None:
        """One more that was `lost` or `wrong`."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.troubles[kind]) < KEPT:
            self.troubles[kind].append(trouble)

    def row(self) -> dict[str, Any]:
        """As JSON."""
        times = sorted(self.seconds) or [0.0]
        found = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        quantiles = {
            f"p{round(100 * share)}_s": round(times[min(len(times) - 1, int(len(times) * share))], 3)
            for share in (0.5, 0.95, 0.99)
        }
        troubles = {kind: [asdict(each) for each in some] for kind, some in self.troubles.items()}
        return {**found, **quantiles, "max_s": round(times[-1], 3), "troubles": troubles}


class Load:
    """All requests of the run."""

    def __init__(self, rate: float, ports: Sequence[int], seed: int) -> None:
        self.rate = rate
        self.counts = Counts()
        self.began_s = time.monotonic()
        self._ports = list(ports)
        self._client = Client()
        self._numbers = itertools.count()
        self._chance = Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def now_s(self) -> float:
        """Seconds since the first request."""
        return time.monotonic() - self.began_s

    @property
    def in_flight(self) -> int:
        """Requests without an end yet."""
        return len(self._tasks)

    async def send(self, rate: float, seconds: float, load: str) -> None:
        """Send at a steady rate for some time, independent of the responses; fewer where this process gets no CPU."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began_s + number / rate - loop.time()))
            if loop.time() > began_s + seconds:
                break
            self._start(self._one(self._question(self._chance.randint(0, LONGEST_WORDS)), load))

    async def slow_readers(self, count: int, stall_s: float, stream: bool) -> None:
        """Clients that stop reading big answers for a while, and then read on; returns once all have ended."""
        questions = [self._question(BIG_WORDS, copies=BIG_COPIES, stream=stream) for _ in range(count)]
        await asyncio.gather(*(self._slow(question, stall_s) for question in questions))

    async def clients_leave(self, count: int, after_s: float) -> None:
        """Clients that close their connection before the answer; returns once all have."""
        await asyncio.gather(*(self._leave(self._question(LONGEST_WORDS), after_s) for _ in range(count)))

    async def finish(self) -> None:
        """Wait until all requests have ended, and close the connections."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._client.close()
        for _ in range(self._client.surplus):
            self.counts.trouble("wrong", Trouble(self.now_s, 0.0, "any", "an answer without a request", []))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _question(self, words: int, *, copies: int | None = None, stream: bool = False) -> Question:
        plain = lengthened(next(self._numbers), words)
        return Question(plain.text, plain.source, plain.target, plain.expected, copies, stream)

    def _order(self) -> list[int]:
        """The routers' ports in random order: in turn, each would get the texts of one pair, which alternate."""
        return self._chance.sample(self._ports, len(self._ports))

    async def _one(self, question: Question, load: str) -> None:
        at_s = self.now_s
        self.counts.sent += 1
        self._count(await send(self._client, question, self._order(), PATIENCE), at_s, load)

    async def _slow(self, question: Question, stall_s: float) -> None:
        at_s = self.now_s
        self.counts.sent += 1
        patience = Patience(PATIENCE.seconds + stall_s, PATIENCE.attempt_s + stall_s)
        outcome = await send(self._client, question, self._order(), patience, stall_s=stall_s)
        if outcome.cut:
            self.counts.slow_cut += 1
        else:
            self._count(outcome, at_s, "slow reader")
            self.counts.slow_whole += not outcome.lost and not outcome.wrong

    async def _leave(self, question: Question, after_s: float) -> None:
        try:
            async with asyncio.timeout(after_s):
                await self._client.post(self._order()[0], PATH, question.body)
        except TimeoutError:
            self.counts.left += 1
        except BrokenError:
            pass  # Its router was gone.
        except GarbledError as error:
            self.counts.trouble("wrong", Trouble(self.now_s, after_s, "client that leaves", str(error), []))

    def _count(self, outcome: Outcome, at_s: float, load: str) -> None:
        counts = self.counts
        counts.reconnected += outcome.reconnected
        counts.refused += outcome.refused
        counts.resent += outcome.resent
        for kind, why in (("lost", outcome.lost), ("wrong", outcome.wrong)):
            if why:
                way = [*outcome.way[:5], *outcome.way[5:][-5:]]
                counts.trouble(kind, Trouble(round(at_s, 1), round(outcome.seconds, 1), load, why, way))
        if not outcome.lost and not outcome.wrong:
            counts.ok += 1
            counts.seconds.append(outcome.seconds)
