"""When short texts before long ones pays, and what refusing what would be late is worth.

    python bench/scheduling/policies.py

Requests come at random (Poisson) to the scripted engine, which runs 16 sequences at the pace of a small GPU;
four of five texts are a sentence, few are pages. Time is virtual: the event loop's clock jumps to whatever is
due next, so that hours take seconds and no other load on the machine is in the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import random
import selectors
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from dragoman_protocols.errors import OverloadedError
from dragoman_service.core.admission import Admission, Bounds
from dragoman_service.core.costs import PROMPT_TOKENS, Cost
from dragoman_service.core.priorities import priority
from dragoman_service.engine.protocol import Decoding, Prompt
from dragoman_service.engine.scripted.engine import CHARS_PER_TOKEN, Script, ScriptedEngine
from dragoman_tune.figures import quantile

SCRIPT = {"first_token_s": 0.03, "token_s": 0.01, "slowdown_ratio": 0.05, "max_num_seqs": 16}
KINDS = ((0.80, (5, 40)), (0.15, (60, 250)), (0.05, (400, 1500)))
"""Share of the texts, and between how many tokens they have."""

SHORT_TOKENS = 40
LONG_TOKENS = 400


class VirtualTime(selectors.DefaultSelector):
    """Lets no time pass but on the clock."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """What is there; where nothing is, the time is what the loop would have waited for."""
        found = super().select(0)
        if not found:
            self.now_s += timeout or 0.0
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._virtual = VirtualTime()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual.now_s


@dataclass(frozen=True)
class Arrival:
    """A text that comes."""

    at_s: float
    tokens: int


def arrivals(load_ratio: float, count: int, seed: int = 1) -> list[Arrival]:
    """Texts at a rate that keeps so much of the engine busy."""
    rng = random.Random(seed)
    lengths = [
        rng.randint(*rng.choices([k[1] for k in KINDS], [k[0] for k in KINDS])[0]) for _ in range(count)
    ]
    seats = int(SCRIPT["max_num_seqs"])
    token_s = SCRIPT["token_s"] * (1 + SCRIPT["slowdown_ratio"] * (seats - 1))
    mean_s = SCRIPT["first_token_s"] + token_s * sum(lengths) / count
    gaps = (rng.expovariate(load_ratio * seats / mean_s) for _ in lengths)
    return [Arrival(at_s, tokens) for at_s, tokens in zip(itertools.accumulate(gaps), lengths, strict=True)]


@dataclass(frozen=True)
class Policy:
    """How the pod is set."""

    patience: float | None
    deadline_aware: bool = False
    timeout_s: float = 1e9
    queued: int = 10**9


async def replay(policy: Policy, texts: list[Arrival]) -> tuple[list[tuple[int, float]], Counter[str]]:
    """Tokens and seconds of each text that was translated, and how all ended."""
    loop = asyncio.get_running_loop()
    name = "fcfs" if policy.patience is None else "priority"
    script = Script(**SCRIPT, scheduling_policy=name)  # type: ignore[arg-type]
    engine = ScriptedEngine(script, "m", CollectorRegistry())
    bounds = Bounds(policy.queued, 10**12, policy.deadline_aware)
    admission = Admission(bounds, engine, policy.timeout_s, clock=loop.time)
    done: list[tuple[int, float]] = []
    ends: Counter[str] = Counter()

    async def one(text: Arrival) -> None:
        await asyncio.sleep(text.at_s - loop.time())
        came_s = loop.time()
        urgency = 0 if policy.patience is None else priority(came_s, text.tokens, policy.patience)
        words = "x" * (text.tokens * CHARS_PER_TOKEN)
        try:
            cost = PROMPT_TOKENS + 2 * text.tokens
            with admission.admit(Cost(cost, cost), policy.timeout_s) as place:
                async with asyncio.timeout(policy.timeout_s):
                    chunks = engine.generate(Prompt(words, words), Decoding(), "", priority=urgency)
                    async with aclosing(chunks):
                        async for _ in chunks:
                            pass
                place.served()
        except OverloadedError:
            ends["refused"] += 1
        except TimeoutError:
            ends["late"] += 1
        else:
            ends["done"] += 1
            done.append((text.tokens, loop.time() - came_s))

    await asyncio.gather(*map(one, texts))
    return done, ends


def run(policy: Policy, texts: list[Arrival]) -> tuple[list[tuple[int, float]], Counter[str], float]:
    """`replay` in virtual time, and how long it took there."""
    loop = VirtualLoop()
    try:
        done, ends = loop.run_until_complete(replay(policy, texts))
        return done, ends, loop.time()
    finally:
        loop.close()


def latency_line(name: str, done: list[tuple[int, float]]) -> str:
    """One line of the first table."""

    def of(wanted: Callable[[int], bool]) -> list[float]:
        return [took for tokens, took in done if wanted(tokens)]

    every, short, long = of(lambda _: True), of(lambda n: n <= SHORT_TOKENS), of(lambda n: n >= LONG_TOKENS)
    shares = ((every, (0.5, 0.95, 0.99)), (short, (0.5, 0.99)), (long, (0.5, 0.99, 1.0)))
    quantiles = [quantile(times_s, share) for times_s, some in shares for share in some]
    cells = [sum(every) / len(every), *(math.nan if each is None else each for each in quantiles)]
    return f"| {name} | " + " | ".join(f"{each:.2f}" for each in cells) + " |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=8000, help="texts for each line")
    parser.add_argument("--patience", type=float, nargs="*", default=[0.01, 0.05, 0.2])
    arguments = parser.parse_args()
    print(
        "| load, policy | mean s | p50 | p95 | p99 | short p50 | short p99 | long p50 | long p99 | longest |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for load_ratio in (0.5, 0.7, 0.85, 0.95, 1.05):
        texts = arrivals(load_ratio, arguments.count)
        for patience in (None, *arguments.patience):
            name = "fcfs" if patience is None else f"shortest, {patience:g} s a token"
            done, _, _ = run(Policy(patience), texts)
            print(latency_line(f"{load_ratio:.0%}, {name}", done), flush=True)
    print()
    print("| load, queue, refuse late | translated | refused | late | tokens translated a second | p99 s |")
    print("|---|---|---|---|---|---|")
    for load_ratio, queued in ((0.95, 2000), (1.2, 128), (1.2, 2000), (2.0, 128), (2.0, 2000)):
        texts = arrivals(load_ratio, arguments.count)
        for deadline_aware in (False, True):
            done, ends, took_s = run(Policy(None, deadline_aware, 30.0, queued), texts)
            share = {name: f"{count / len(texts):.0%}" for name, count in ends.items()}
            print(
                f"| {load_ratio:.0%}, {queued}, {'yes' if deadline_aware else 'no'} | {share.get('done', '0%')} | "
                f"{share.get('refused', '0%')} | {share.get('late', '0%')} | "
                f"{sum(tokens for tokens, _ in done) / took_s:.0f} | "
                f"{quantile([took for _, took in done], 0.99) or math.nan:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
