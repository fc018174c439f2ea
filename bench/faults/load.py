"""The load of the runs with faults, and what became of it: a steady rate, bursts, slow readers, clients that leave."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from dragoman_tune.figures import quantile
from faults.client import BrokenError, CheckingClient, GarbledError
from faults.questions import KnownRequest, lengthened
from faults.sending import PATH, Patience, RequestOutcome, send

LONGEST_WORDS = 25
"""By which a steady request's text is longer than the shortest."""
BIG_WORDS, BIG_COPIES = 200, 400
"""Of a slow reader's request: about half a megabyte, of which one text is generated and the others are its copies."""
KEPT = 200
"""Descriptions of lost or wrong requests that the result has at most; all are counted."""


@dataclass
class Trouble:
    """A request that was lost or answered wrongly.

    Args:
        at_s: When it was sent.
        took_s: Until it was given up.
        load: `steady`, `burst` or `slow reader`.
        way: Its attempts; see `faults.sending.RequestOutcome`.
    """

    at_s: float
    took_s: float
    load: str
    why: str
    way: list[str]


@dataclass
class Counts:
    """What became of the requests that were sent in one phase.

    Args:
        sent: All but those of clients that leave.
        reconnected: Connections refused or broken before an answer, after which the other router was used.
        refused: Answers 429 and 503 with Retry-After, after which the request was sent again.
        resent: Requests that a router sent to more than one replica, refusals included.
        slow_whole: Slow readers whose answer was whole.
        slow_cut: Slow readers whose answer was cut off: neither lost nor wrong, the server need not wait for ever.
        troubles: What was lost or wrong, the first of each.
    """

    phase: str = ""
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
    began_s: float = field(default_factory=time.monotonic)
    lasted_s: float = 0.0
    load_average: float = field(default_factory=lambda: os.getloadavg()[0])

    def trouble(self, kind: str, trouble: Trouble) -> None:
        """One more that was `lost` or `wrong`."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.troubles[kind]) < KEPT:
            self.troubles[kind].append(trouble)

    def add(self, outcome: RequestOutcome, at_s: float, load: str) -> None:
        """One more that has ended."""
        self.reconnected += outcome.reconnected
        self.refused += outcome.refused
        self.resent += outcome.resent
        for kind, why in (("lost", outcome.lost), ("wrong", outcome.wrong)):
            if why:
                way = [*outcome.way[:5], *outcome.way[5:][-5:]]
                self.trouble(kind, Trouble(round(at_s, 1), round(outcome.seconds, 1), load, why, way))
        if not outcome.lost and not outcome.wrong:
            self.ok += 1
            self.seconds.append(outcome.seconds)

    def row(self) -> dict[str, Any]:
        """As JSON."""
        found = {name: value for name, value in vars(self).items() if isinstance(value, int | str)}
        shares = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99, "max_s": 1.0}
        return {
            **found,
            "lasted_s": round(self.lasted_s, 1),
            "per_s": round(self.sent / self.lasted_s, 1) if self.lasted_s else 0.0,
            "load_average_1m": round(self.load_average, 1),
            **{name: round(quantile(self.seconds, share) or 0.0, 3) for name, share in shares.items()},
            "troubles": {kind: [asdict(each) for each in some] for kind, some in self.troubles.items()},
        }


class FaultLoad:
    """Requests to two routers, independent of the responses.

    Args:
        ports: The routers'.
        seed: Of the routers' order and the lengths of texts.
        patience: Of the clients.
        question: Makes the next steady request; by default texts of different lengths, for scripted engines.
    """

    def __init__(
        self,
        ports: Sequence[int],
        seed: int,
        patience: Patience,
        question: Callable[[], KnownRequest] | None = None,
    ) -> None:
        self.began_s = time.monotonic()
        self.phases = [Counts()]
        self._ports, self._patience = list(ports), patience
        self._client = CheckingClient()
        self._numbers = itertools.count()
        self._chance = Random(seed)
        self._question = question or (lambda: self._lengthened(self._chance.randint(0, LONGEST_WORDS)))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def counts(self) -> Counts:
        """Those of the phase that requests are sent in."""
        return self.phases[-1]

    @property
    def now_s(self) -> float:
        """Seconds since the load was made."""
        return time.monotonic() - self.began_s

    @property
    def in_flight(self) -> int:
        """Requests without an end yet."""
        return len(self._tasks)

    def begin(self, phase: str) -> None:
        """Requests from now on count for this phase."""
        self._end_phase()
        self.phases = [*filter(lambda each: each.phase, self.phases), Counts(phase)]

    async def send(self, rate: float, seconds: float, load: str) -> None:
        """Send at a steady rate for some time; fewer where this process gets no CPU."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        number = 0
        while number < rate * seconds:
            await asyncio.sleep(max(0.0, began_s + number / rate - loop.time()))
            if loop.time() > began_s + seconds:
                break
            number += 1
            task = asyncio.create_task(self.one(self._question(), load))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def one(self, question: KnownRequest, load: str) -> None:
        """Send one request, as a client does, and count its outcome."""
        counts, at_s = self.counts, self.now_s
        counts.sent += 1
        counts.add(await send(self._client, question, self._order(), self._patience), at_s, load)

    async def slow_readers(self, count: int, stall_s: float, stream: bool) -> None:
        """Clients that stop reading big answers for a while, and then read on; returns once all have ended."""
        questions = [self._lengthened(BIG_WORDS, copies=BIG_COPIES, stream=stream) for _ in range(count)]
        await asyncio.gather(*(self._slow(question, stall_s) for question in questions))

    async def clients_leave(self, count: int, after_s: float) -> None:
        """Clients that close their connection before the answer; returns once all have."""
        await asyncio.gather(*(self._leave(self._lengthened(LONGEST_WORDS), after_s) for _ in range(count)))

    async def finish(self) -> None:
        """Wait until all requests have ended, and close the connections."""
        self._end_phase()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._client.close()
        for _ in range(self._client.surplus):
            self.counts.trouble("wrong", Trouble(self.now_s, 0.0, "any", "an answer without a request", []))

    def _end_phase(self) -> None:
        self.counts.lasted_s = time.monotonic() - self.counts.began_s

    def _lengthened(self, words: int, *, copies: int | None = None, stream: bool = False) -> KnownRequest:
        plain = lengthened(next(self._numbers), words)
        return KnownRequest(plain.text, plain.source, plain.target, plain.expected, copies, stream)

    def _order(self) -> list[int]:
        """The routers' ports in random order: in turn, each would get the texts of one pair, which alternate."""
        return self._chance.sample(self._ports, len(self._ports))

    async def _slow(self, question: KnownRequest, stall_s: float) -> None:
        counts, at_s = self.counts, self.now_s
        counts.sent += 1
        patience = Patience(self._patience.seconds + stall_s, self._patience.attempt_s + stall_s)
        outcome = await send(self._client, question, self._order(), patience, stall_s=stall_s)
        if outcome.cut:
            counts.slow_cut += 1
        else:
            counts.add(outcome, at_s, "slow reader")
            counts.slow_whole += not outcome.lost and not outcome.wrong

    async def _leave(self, question: KnownRequest, after_s: float) -> None:
        try:
            async with asyncio.timeout(after_s):
                await self._client.post(self._order()[0], PATH, question.body)
        except TimeoutError:
            self.counts.left += 1
        except BrokenError:
            pass  # Its router was gone.
        except GarbledError as error:
            self.counts.trouble("wrong", Trouble(self.now_s, after_s, "client that leaves", str(error), []))
