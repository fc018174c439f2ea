"""Quality checks of a model's output: is it a translation of the source?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import langcodes
import regex

from dragoman_protocols.detection import label, likeliest, shares
from dragoman_protocols.scripts import chinese_script, scripts_of_language, scripts_of_text
from dragoman_service.text import chat, completeness
from dragoman_service.text.chat import weight
from dragoman_service.text.numbers import changed_numbers
from dragoman_service.text.pieces import MARKER
from dragoman_service.text.placeholders import SIGNS, numbered, placeholders

DIGIT = regex.compile(r"\d")

PLACEHOLDER_DIGITS = regex.compile(r"https?://\S+|[\w.+\-]{1,64}@[\w.\-]+|[$#%]?\{[^{}]{0,100}\}|%\d+\$\w")
"""Their digits are no numbers of the text."""


class Guard(StrEnum):
    """The quality checks; the values are labels of metrics."""

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
    """A failed quality check.

    Args:
        detail: Why, in words that repeat nothing of the texts.
    """

    guard: Guard
    detail: str


@dataclass(frozen=True)
class Expectation:
    """The properties of a correct output.

    Args:
        source_lang: BCP-47 tag of the source.
        target_lang: BCP-47 tag of the translation.
        finish: Why the engine stopped: `stop`, `length` or `repetition`.
        markers: Whether there are markers in both texts, which `restoring.verify` checks.
    """

    source_lang: str
    target_lang: str
    finish: str = "stop"
    markers: bool = False


def check(source: str, output: str, expected: Expectation) -> tuple[Finding, ...]:
    """The failed checks of an output after `chat.cleaned`; empty if it passes."""
    if not output.strip():
        return (Finding(Guard.EMPTY, "the answer has no text"),)
    if expected.markers:
        source, output = MARKER.sub(" ", source), MARKER.sub(" ", output)
    return tuple(_findings(source, output, expected))


def _findings(source: str, output: str, expected: Expectation) -> Iterator[Finding]:
    if expected.finish == "length":
        yield Finding(Guard.TRUNCATED, "the answer was cut off at the most tokens it may have")
    if expected.finish == "repetition" or repeats(source, output):
        yield Finding(Guard.REPETITION, "the answer repeats itself")
    if runs_away(source, output):
        yield Finding(Guard.RUNAWAY, f"{len(output)} characters for {len(source)}")
    if len(source) > completeness.MAX_UNCHECKED_CHARS and completeness.lacks(
        source, output, expected.source_lang, expected.target_lang
    ):
        yield Finding(Guard.INCOMPLETE, "the answer lacks a part of the source")
    if chat.has_preamble(source, output, expected.target_lang):
        yield Finding(Guard.PREAMBLE, "there is talk around the translation")
    if chat.obeys(source, output):
        yield Finding(Guard.INJECTION, "the answer follows orders in the text instead of translating them")
    lost, invented = changed_placeholders(source, output)
    if lost or invented:
        yield Finding(Guard.PLACEHOLDERS, f"{lost} lost, {invented} invented")
    if DIGIT.search(source) or DIGIT.search(output):
        lost, invented = changed_numbers(
            PLACEHOLDER_DIGITS.sub(" ", source), PLACEHOLDER_DIGITS.sub(" ", output)
        )
        if lost or invented:
            yield Finding(Guard.NUMBERS, f"{lost} lost, {invented} invented")
    yield from _language_findings(source, output, expected)


def _language_findings(source: str, output: str, expected: Expectation) -> Iterator[Finding]:
    if expected.source_lang.split("-")[0] == expected.target_lang.split("-")[0]:
        copied = False  # pt-BR into pt-PT may leave a sentence as it is
    else:
        copied = is_copy(source, output)
    if copied:
        yield Finding(Guard.UNTRANSLATED, "the answer is the source again")
    if in_wrong_script(source, output, expected.target_lang):
        yield Finding(Guard.WRONG_SCRIPT, f"not the script of {expected.target_lang}")
    elif not copied and in_wrong_language(output, expected.target_lang):
        yield Finding(Guard.WRONG_LANGUAGE, f"not {expected.target_lang}")


LOOP_CHARS = 800
"""A loop goes on to the end of an answer; looking for one takes 0.3 µs a character."""

MAX_PERIOD = 100
"""Characters of the longest phrase whose repetition is looked for."""

MIN_ROWS = 3
"""That come again at one distance, in a loop however short."""

WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’\-][\p{L}\p{M}]+)*")
HAN = regex.compile(r"\p{Han}")
KANA = frozenset({"Hiragana", "Katakana"})
UNSPACED = KANA | {"Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"}
"""Scripts that write no space between words."""
MAX_UNSPACED_LETTERS = 4
"""A name in such a script may have so many; a sentence has more."""

MAX_SEARCHED = 20
"""Placeholders that are looked for among letters; of more, some are lost."""

SURELY_NOT = 0.001
"""Right answers of the corpus have 0.4 and more, wrong ones less than 0.0001."""

CLOSE_LANGUAGES = (
    frozenset({"hr", "sr", "bs", "sh", "sl"}), frozenset({"id", "ms"}), frozenset({"no", "nb", "nn", "da", "sv"}),
    frozenset({"cs", "sk"}), frozenset({"gl", "pt", "es", "ca"}), frozenset({"zh", "yue", "wuu", "lzh", "nan"}),
    frozenset({"hi", "ne", "mr", "bho", "mai", "sa"}), frozenset({"ru", "uk", "be", "bg", "mk", "sr"}),
    frozenset({"nl", "af"}), frozenset({"fa", "prs", "ur", "ps"}), frozenset({"tr", "az"}), frozenset({"xh", "zu"}),
)  # fmt: skip
"""Languages that detectors mistake for one another in a sentence."""


def repeats(source: str, output: str) -> bool:
    """Whether an output repeats a passage in a loop, and the source does not."""
    looped = _longest_loop(output)
    return looped > 0 and looped > 2 * _longest_loop(source) + 8


def _longest_loop(text: str) -> int:
    longest = 0
    end = text[-LOOP_CHARS:]
    for period in _periods(end):
        for found in _loop_of(period).finditer(end):
            unit, length = found[1], len(found[0])
            enough = length >= 12 if len(unit) == 1 else length >= (8 if scripts_of_text(unit)["Han"] else 16)
            if enough and WORD.search(unit):
                longest = max(longest, length)
    return longest


def _periods(text: str) -> list[int]:
    """Periods at which characters recur often enough for a loop.

    A row is shorter than the shortest of these: eight characters in Han, and else twelve. In a loop that goes round
    four times, almost each of the rows of three rounds comes again at the loop's length; a third of them is required
    for, because rows may come again within a round, too.
    """
    row = 4 if HAN.search(text) else 8
    rows = [text[start : start + row] for start in range(len(text) - row + 1)]
    if len(rows) - len(set(rows)) < MIN_ROWS:
        return []
    last: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for start, characters in enumerate(rows):
        if characters in last:
            distances[start - last[characters]] += 1
        last[characters] = start
    return sorted(
        distance
        for distance, times in distances.items()
        if distance <= MAX_PERIOD and times >= max(MIN_ROWS, distance)
    )


@lru_cache(maxsize=MAX_PERIOD)
def _loop_of(period: int) -> regex.Pattern[str]:
    """The number of repetitions in a row, from four."""
    return regex.compile(rf"(.{{{period}}})\1{{3,}}", regex.DOTALL)


def is_copy(source: str, output: str) -> bool:
    """Whether an output equals the source; names, numbers and single words may.

    All but a few words may have changed: in scripts with case, those with a capital do not count.
    """
    words = _words(_plain(source))
    if not words or is_name(words):
        return False
    if _folded(source) == _folded(output):
        return True
    before = Counter(word for word in words if not word[0].isupper())
    after = Counter(word for word in _words(_plain(output)) if not word[0].isupper())
    if before.total() < 4:
        return False
    return (before & after).total() >= 0.8 * max(before.total(), after.total())


def is_name(words: Sequence[str]) -> bool:
    """Whether words may stay untranslated: a single word, or a few capitalised ones."""
    if len(words) == 1:
        unspaced = sum(scripts_of_text(words[0])[script] for script in UNSPACED)
        return unspaced <= MAX_UNSPACED_LETTERS
    return len(words) <= 5 and all(word != word.lower() for word in words)


def in_wrong_script(source: str, output: str, target_lang: str) -> bool:
    """Whether an output is in another script than the target language; words of the source may stay."""
    expected = scripts_of_language(target_lang)
    kept = {word.casefold() for word in _words(source)}
    fresh = " ".join(word for word in _words(_plain(output)) if word.casefold() not in kept)
    letters = scripts_of_text(fresh)
    total = letters.total()
    if not expected or total < 2:
        return False
    if sum(letters[script] for script in expected) < 0.6 * total:
        return True
    if expected == {"Han"}:
        kana = sum(letters[script] for script in KANA)
        return kana > 0.15 * total or _wrong_chinese(output, target_lang)
    if expected > KANA:
        return total >= 10 and not any(letters[script] for script in KANA)
    return "Hangul" in expected and letters["Hangul"] < 0.5 * total


def _wrong_chinese(output: str, target_lang: str) -> bool:
    found = chinese_script(output)
    code = langcodes.Language.get(target_lang)
    if code.language not in {"zh", "cmn", "und"}:
        return False
    return found is not None and found != code.maximize().script


def in_wrong_language(output: str, target_lang: str) -> bool:
    """Whether a long enough output is certainly not in the target language."""
    plain = _plain(output)
    if weight(plain) < 20 or len(_words(plain)) < 3:
        return False
    target = label(target_lang)
    close = {target}.union(*(group for group in CLOSE_LANGUAGES if target in group))
    if likeliest(output) in close:
        return False
    found = shares(output)
    return target in found and sum(found.get(code, 0.0) for code in close) < SURELY_NOT


def runs_away(source: str, output: str) -> bool:
    """Whether an output is much longer than a translation can be."""
    return weight(output) > 3.5 * weight(source) + 80


def changed_placeholders(source: str, output: str) -> tuple[int, int]:
    """How many placeholders were lost and how many invented.

    `%2$s %1$s` is `%s %s` in another order, and `{1} {0}` is `{} {}`.
    """
    if SIGNS.search(source) is None and SIGNS.search(output) is None:
        return 0, 0
    first, second = list(placeholders(source)), list(placeholders(output))
    if Counter(numbered(first)) == Counter(numbered(second)):
        return 0, 0
    before, after = (Counter(found.text for found in each) for each in (first, second))
    return _rarer(before - after, source, output), _rarer(after - before, output, source)


def _rarer(missing: Counter[str], text: str, other: str) -> int:
    """How many of these `other` lacks: `%s` is a placeholder in `%s바이트`, and in `%sB` it is there all the same."""
    if len(missing) > MAX_SEARCHED:
        return missing.total()
    return sum(times for each, times in missing.items() if text.count(each) > other.count(each))


def _folded(text: str) -> str:
    return " ".join(_words(text)).casefold()


@lru_cache(maxsize=32)
def _words(text: str) -> tuple[str, ...]:
    """The words of a text; cached, because several checks need them."""
    return tuple(WORD.findall(text))


@lru_cache(maxsize=32)
def _plain(text: str) -> str:
    """`text` without what is not language; cached, because several checks need it."""
    if SIGNS.search(text) is None:
        return text
    parts: list[str] = []
    position = 0
    for found in placeholders(text):
        parts.append(text[position : found.start])
        position = found.end
    return " ".join([*parts, text[position:]])
