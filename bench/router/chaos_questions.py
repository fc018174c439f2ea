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
    """For scripted engines, which answer with a text's reverse."""
    return map(numbered_at, itertools.count())


def numbered_at(number: int) -> Question:
    """The one of that number."""
    # Digits would be missed in the reverse, and the text translated again.
    text = f"request number {str(number).translate(LETTERS)} of many"
    return Question(text, "en", "de" if number % 2 else "fr", text[::-1])


def doubted(text: str) -> bool:
    """Whether a pod doubts a numbered text's reverse, and has it translated again."""
    digits = text.split()[2].translate({ord(letter): str(digit) for digit, letter in enumerate("abcdefghij")})
    asked = numbered_at(int(digits))
    return bool(check(asked.text, asked.expected, Expectation(asked.source, asked.target)))


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
