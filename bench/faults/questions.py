"""Requests, each text once, and what each answer has to be."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman_service.text.guards import Expectation, check


@dataclass(frozen=True)
class KnownRequest:
    """A text, its pair, and the one right answer.

    Args:
        copies: How often the text is sent in the one request, as a list; None sends it by itself.
    """

    text: str
    source: str
    target: str
    expected: str
    copies: int | None = None
    stream: bool = False

    @property
    def body(self) -> bytes:
        """It as a native request."""
        text = self.text if self.copies is None else [self.text] * self.copies
        request = {"text": text, "source_lang": self.source, "target_lang": self.target}
        return json.dumps({**request, "stream": True} if self.stream else request).encode()

    @property
    def translation(self) -> str | list[str]:
        """The right translation, or one for each copy."""
        return self.expected if self.copies is None else [self.expected] * self.copies


LETTERS = str.maketrans("0123456789", "abcdefghij")


def numbered() -> Iterator[KnownRequest]:
    """For scripted engines, which answer with a text's reverse."""
    return map(numbered_at, itertools.count())


def numbered_at(number: int) -> KnownRequest:
    """The one of that number."""
    # Digits would be missed in the reverse, and the text translated again.
    text = f"request number {str(number).translate(LETTERS)} of many"
    return KnownRequest(text, "en", "de" if number % 2 else "fr", text[::-1])


def lengthened(number: int, words: int) -> KnownRequest:
    """The one of that number, longer by so many words: what scripted engines need for it grows with its length."""
    short = numbered_at(number)
    text = " ".join([short.text, *itertools.islice(itertools.cycle(FILLING), words)])
    return KnownRequest(text, short.source, short.target, text[::-1])


FILLING = ["and", "more", "of", "them", "came", "with", "the", "evening", "train", "from", "the", "north"]


def translated_twice(text: str) -> bool:
    """Whether a guard finds fault with a numbered text's reverse, so that a pod translates it again."""
    digits = text.split()[2].translate({ord(letter): str(digit) for digit, letter in enumerate("abcdefghij")})
    question = numbered_at(int(digits))
    return bool(check(question.text, question.expected, Expectation(question.source, question.target)))
