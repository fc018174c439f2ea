"""Detects translations that omit a part of the source, by length, number of sentences and copied words.

A text's `size` is the length of its English translation, estimated by its script and its language. The logarithm of
an answer's size over its source's lies around 0 for a whole translation: the shorter the text, the wider. An answer
that is also short of sentences, or of the numbers and names in its source, is the more suspect; names from the source's
end speak for it.

The weights are a logistic regression's, fitted as docs/benchmarks.md#checks-of-translations says, where the
rates are, too.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import langcodes
import regex

from dragoman_protocols.scripts import scripts_of_language
from dragoman_service.text.length_statistics import DENSITY, SCRIPT_DENSITY, WIDTH
from dragoman_service.text.segments import sentences

MIN_SIZE = 40.0
"""English characters of the shortest source that is checked: a few words may have far shorter translations."""

MAX_UNCHECKED_CHARS = int(MIN_SIZE * min(DENSITY.values()))
"""A source of no more characters is shorter than `MIN_SIZE` in every language."""

MIN_LOSS = -0.1
"""Logarithm of the sizes above which an answer is taken for whole; most answers need no more than this comparison."""

WITHOUT_STOPS = frozenset({"Thai", "Lao"})
"""Scripts that end sentences with a space or with nothing."""

ASCII = regex.compile(r"[!-~]+")
ARGUMENT_NUMBER = regex.compile(r"(?<=%)\d{1,2}\$")
"""Of `%2$s`; a translation may number what its source does not."""
UNKNOWN_WIDTH = 1.2
"""`WIDTH` of a language that has only its script's density: those of a script differ by 0.12 (standard deviation)."""

COPIED = regex.compile(r"[A-Za-z]*(?:\d|[A-Z][a-z]*[A-Z])[A-Za-z0-9]*")
"""Numbers and acronyms: as a rule they are in a translation, too."""
NAME = regex.compile(r"(?<=[\p{L}\p{N},;]\s)\p{Lu}\p{Ll}{2,}")
"""A word with a capital that begins no sentence: it may come again."""


@dataclass(frozen=True)
class Evidence:
    """Features that distinguish a complete translation from an incomplete one.

    Args:
        length: Logarithm of the answer's size over the source's; less of it for pairs whose sizes vary widely.
        deviation: The same in standard deviations of whole translations of this size.
        sentences: Logarithm of the answer's sentences over the source's; 0 where the answer has as many.
        lost: Share of the source's numbers and acronyms that the answer lacks; 0 where there are none.
        kept: How many names, numbers and acronyms of the source's last third the answer has, 3 at most.
    """

    length: float
    deviation: float
    sentences: float
    lost: float
    kept: float


WEIGHTS = Evidence(length=-7.34, deviation=-1.79, sentences=-3.14, lost=2.14, kept=-0.35)
BIAS = -9.3


def lacks(source: str, output: str, source_lang: str, target_lang: str) -> bool:
    """Whether an output omits about half of its source, or one of a few sentences."""
    found = evidence(source, output, source_lang, target_lang)
    return found is not None and log_odds(found) > 0


def log_odds(found: Evidence) -> float:
    """Logarithm of the odds of a missing part; the bias leaves 0.4% of whole translations above 0."""
    return (
        BIAS
        + WEIGHTS.length * found.length
        + WEIGHTS.deviation * found.deviation
        + WEIGHTS.sentences * found.sentences
        + WEIGHTS.lost * found.lost
        + WEIGHTS.kept * found.kept
    )


def evidence(source: str, output: str, source_lang: str, target_lang: str) -> Evidence | None:
    """The evidence in a text and its translation; None where the source is too short, or the answer long enough."""
    source, output = ARGUMENT_NUMBER.sub("", source), ARGUMENT_NUMBER.sub("", output)
    before, after = size(source, source_lang), size(output, target_lang)
    if before < MIN_SIZE:
        return None
    length = math.log((after + 1) / (before + 1))
    if length > MIN_LOSS:
        return None
    length /= max(1.0, width(source_lang), width(target_lang))
    lost, kept = _copied(source, output)
    return Evidence(
        length, length / spread(before), _sentences(source, output, source_lang, target_lang), lost, kept
    )


def size(text: str, tag: str) -> float:
    """Estimated length of the text in English, in characters without white space.

    In other scripts than Latin, words in Latin letters, digits and ASCII's punctuation are as long as they are.
    """
    characters = len("".join(text.split()))
    if "Latin" in scripts_of_language(tag):
        return characters / density(tag)
    latin = sum(map(len, ASCII.findall(text)))
    return latin + (characters - latin) / density(tag)


@lru_cache(maxsize=1024)
def density(tag: str) -> float:
    """Characters of a language for one of English; that of its script where the language is not known."""
    known = _known(tag)
    if known is not None:
        return DENSITY[known]
    return SCRIPT_DENSITY.get(langcodes.Language.get(tag).maximize().script or "", 1.0)


@lru_cache(maxsize=1024)
def width(tag: str) -> float:
    """Relative variation of the lengths of translations from and into a language; usually 1.0."""
    known = _known(tag)
    return UNKNOWN_WIDTH if known is None else WIDTH.get(known, 1.0)


def _known(tag: str) -> str | None:
    """The tag of a language in `DENSITY`."""
    code = langcodes.Language.get(tag)
    candidates = (
        tag,
        f"{code.language}-{code.maximize().script}",
        f"{code.language}-{code.territory}",
        code.language or "",
    )
    return next((each for each in candidates if each in DENSITY), None)


def spread(size: float) -> float:
    """Standard deviation of `Evidence.length` for whole translations of such a size."""
    return math.sqrt(0.0185 + 0.8 / size)


def _sentences(source: str, output: str, source_lang: str, target_lang: str) -> float:
    if (scripts_of_language(source_lang) | scripts_of_language(target_lang)) & WITHOUT_STOPS:
        return 0.0
    before, after = _count(source, source_lang), _count(output, target_lang)
    return min(math.log(after / before), 0.0)


def _count(text: str, tag: str) -> int:
    return max(1, sum(any(map(str.isalpha, sentence)) for sentence in sentences(text, tag)))


def _copied(source: str, output: str) -> tuple[float, float]:
    if not output.isascii():
        output = "".join(_digit(character) for character in output)
    copied = [(found.start(), found[0].casefold()) for found in COPIED.finditer(source)]
    names = [(found.start(), found[0].casefold()) for found in NAME.finditer(source)]
    there = output.casefold()
    lost = sum(word not in there for _, word in copied) / len(copied) if copied else 0.0
    kept = {word for start, word in [*copied, *names] if start >= 0.67 * len(source) and word in there}
    return lost, float(min(len(kept), 3))


def _digit(character: str) -> str:
    return str(unicodedata.decimal(character, character))
