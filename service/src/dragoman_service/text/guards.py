"""Checks that a model's answer is a translation of what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import regex

from dragoman_protocols.detection import likeliest, shares
from dragoman_service.text import chat, completeness, fidelity
from dragoman_service.text.markers import MARKER
from dragoman_service.text.numbers import changed_numbers

PLACEHOLDER_DIGITS = regex.compile(r"https?://\S+|[\w.+\-]{1,64}@[\w.\-]+|[$#%]?\{[^{}]{0,100}\}|%\d+\$\w")
"""Their digits are no numbers of the text."""


class Guard(StrEnum):
    """What can be wrong with an answer; the values are names of metrics' labels."""

    TRUNCATED = "truncated"
    REPETITION = "repetition"
    EMPTY = "empty"
    UNTRANSLATED = "untranslated"
    WRONG_SCRIPT = "wrong_script"
    WRONG_LANGUAGE = "wrong_language"
    PREAMBLE = "preamble"
    PLACEHOLDERS = "placeholders"
    NUMBERS = "numbers"
    INJECTION = "injection"
    RUNAWAY = "runaway"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class Finding:
    """One guard that fired.

    Args:
        guard: Which.
        detail: Why, in words that repeat nothing of the texts.
    """

    guard: Guard
    detail: str


@dataclass(frozen=True)
class Expectation:
    """What an answer should be.

    Args:
        source_lang: BCP-47 tag of the source.
        target_lang: BCP-47 tag of the translation.
        finish: Why the engine stopped: `stop`, `length` or `repetition`.
        markers: Whether there are markers in both texts, which `restoring.verify` checks.
        shares: How likely a text is in each language.
        likeliest: Which of them is first; spares `shares` in most cases.
    """

    source_lang: str
    target_lang: str
    finish: str = "stop"
    markers: bool = False
    shares: Callable[[str], Mapping[str, float]] = shares
    likeliest: Callable[[str], str] = likeliest


def cleaned(output: str) -> str:
    """A model's answer as the guards want it: without thoughts, special tokens and outer blanks."""
    return chat.without_thinking(output)


def check(source: str, output: str, expected: Expectation) -> tuple[Finding, ...]:
    """What is wrong with a translation; nothing if it passes.

    Args:
        source: What the model was given.
        output: Its answer, `cleaned`.
        expected: See there.
    """
    if not output.strip():
        return (Finding(Guard.EMPTY, "the answer has no text"),)
    if expected.markers:
        source, output = MARKER.sub(" ", source), MARKER.sub(" ", output)
    return tuple(_findings(source, output, expected))


def _findings(source: str, output: str, expected: Expectation) -> Iterator[Finding]:
    if expected.finish == "length":
        yield Finding(Guard.TRUNCATED, "the answer was cut off at the most tokens it may have")
    if expected.finish == "repetition" or fidelity.repeats(source, output):
        yield Finding(Guard.REPETITION, "the answer repeats itself")
    if fidelity.runs_away(source, output):
        yield Finding(Guard.RUNAWAY, f"{len(output)} characters for {len(source)}")
    if completeness.lacks(source, output, expected.source_lang, expected.target_lang):
        yield Finding(Guard.INCOMPLETE, "the answer lacks a part of the source")
    if chat.has_preamble(source, output, expected.target_lang):
        yield Finding(Guard.PREAMBLE, "there is talk around the translation")
    if chat.obeys(source, output):
        yield Finding(Guard.INJECTION, "the answer follows orders in the text instead of translating them")
    lost, invented = fidelity.changed_placeholders(source, output)
    if lost or invented:
        yield Finding(Guard.PLACEHOLDERS, f"{lost} lost, {invented} invented")
    lost, invented = changed_numbers(PLACEHOLDER_DIGITS.sub(" ", source), PLACEHOLDER_DIGITS.sub(" ", output))
    if lost or invented:
        yield Finding(Guard.NUMBERS, f"{lost} lost, {invented} invented")
    yield from _language_findings(source, output, expected)


def _language_findings(source: str, output: str, expected: Expectation) -> Iterator[Finding]:
    if expected.source_lang.split("-")[0] == expected.target_lang.split("-")[0]:
        copied = False  # pt-BR into pt-PT may leave a sentence as it is
    else:
        copied = fidelity.is_copy(source, output)
    if copied:
        yield Finding(Guard.UNTRANSLATED, "the answer is the source again")
    if fidelity.in_wrong_script(source, output, expected.target_lang):
        yield Finding(Guard.WRONG_SCRIPT, f"not the script of {expected.target_lang}")
    elif not copied and fidelity.in_wrong_language(
        output, expected.target_lang, expected.shares, expected.likeliest
    ):
        yield Finding(Guard.WRONG_LANGUAGE, f"not {expected.target_lang}")
