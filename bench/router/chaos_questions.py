"""What the chaos run asks, each text once, and what each answer has to be."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman_service.text.guards import Expectation, check

DEMO_MODEL = Path(__file__).parents[2] / "examples" / "demo-model"
SEED = 20


@dataclass(frozen=True)
class Question:
    """A text, its pair, and the one right answer."""

    text: str
    source: str
    target: str
    expected: str

    @property
    def body(self) -> bytes:
        """It as a native request."""
        asked = {"text": self.text, "source_lang": self.source, "target_lang": self.target}
        return json.dumps(asked).encode()


LETTERS = str.maketrans("0123456789", "abcdefghij")


def numbered() -> Iterator[Question]:
    """For scripted engines, which answer with a text's reverse.

    Left out are the texts whose reverse a pod's guards doubt: it has them translated twice.
    """
    for number in itertools.count():
        text = f"request number {number} of many".translate(LETTERS)
        asked = Question(text, "en", "de" if number % 2 else "fr", text[::-1])
        if not check(asked.text, asked.expected, Expectation(asked.source, asked.target)):
            yield asked


def spoken() -> Iterator[Question]:
    """For the demo model: texts of its grammar with their translations, never the same twice."""
    sys.path.insert(0, str(DEMO_MODEL))
    from training.generate import DIRECTIONS, texts

    for found, (source, target) in zip(texts(SEED), itertools.cycle(DIRECTIONS)):
        yield Question(found.texts[source], source, target, found.texts[target])


async def mastered(
    questions: Iterator[Question], count: int, answer: Callable[[Question], Awaitable[str]], at_once: int = 16
) -> list[Question]:
    """Those that the model answers rightly when nothing happens to it: it errs in one of some hundreds.

    Args:
        questions: What to try.
        count: How many.
        answer: Translates one.
        at_once: Requests in flight.
    """
    tried = list(itertools.islice(questions, count))
    places = asyncio.Semaphore(at_once)

    async def one(question: Question) -> bool:
        async with places:
            return await answer(question) == question.expected

    right = await asyncio.gather(*map(one, tried))
    return list(itertools.compress(tried, right))
