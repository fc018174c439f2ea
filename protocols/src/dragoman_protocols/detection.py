"""Which language a text is in.

The model is py3langid's: pure Python, 4.5 MB on disk, 120 MB loaded, 0.1 ms a text. It gets lower-case words
alone, and its answer is weighted by how often a language is translated: 417 of 489 short strings of user interfaces in
40 languages are named rightly then, instead of 339; see `docs/benchmarks.md` for other libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import regex

from dragoman_protocols.scripts import chinese_script, scripts_of_text

MAX_CHARS = 1000
"""More text does not change the answer."""

NOISE = regex.compile(r"https?://\S+|[\w.+\-]{1,64}@[\w.\-]+|<[^<>]{1,200}>|[\d_]+")

WORD = regex.compile(r"[\p{L}\p{M}'’·\-\u200c]+")

LETTER = regex.compile(r"\p{L}")

BCP47 = {"no": "nb", "zh": "zh-Hans", "tl": "fil"}
"""Labels of the model that stand for a more exact tag here."""

CHINESE = frozenset({"zh", "yue", "wuu", "cmn", "lzh", "nan"})

# fmt: off
FREQUENT = (
    "en de es fr ja pt ru zh it",
    "nl pl ko ar tr sv no da fi cs hu ro uk el he hi vi id th fa",
    "sk bg hr sr sl lt lv et ca bn ta te ur ms tl ka hy az kk sq mk is af sw ne mr gu kn ml pa si km lo my am mn bs eu "
    "gl ga cy be uz",
)
# fmt: on
"""Labels by how often the languages are translated; all others are rare."""

ODDS = (1.0, 0.74, 0.37)
RARE_ODDS = 0.05
"""Prior odds of the languages of `FREQUENT`, and of all others: of a word or two the model sees little more than common
letters, and would answer Breton or Luxembourgish."""

SHARPNESS = 1.6
"""Power of the model's probabilities. With it they are right about as often as they say: of the short strings that get
0.6 to 0.7, 87 % are right, of those above 0.9, 98 %."""

# fmt: off
DEVANAGARI_WORDS = {
    "ne": frozenset({
        "छ", "छन्", "छु", "छौं", "हो", "होइन", "थियो", "थिए", "भयो", "गर्न", "गर्छ", "गर्नुहोस्", "तपाईं", "तपाईंलाई", "मलाई",
        "लाई", "पनि", "यो", "को", "मा", "र", "हरू", "कहाँ",
    }),
    "hi": frozenset({
        "है", "हैं", "हूँ", "था", "थी", "थे", "का", "की", "के", "में", "से", "और", "यह", "वह", "क्या", "नहीं", "मुझे", "आप", "कहाँ",
        "को", "पर", "कर",
    }),
    "mr": frozenset({"आहे", "आहेत", "नाही", "आणि", "मी", "तू", "हे", "हा", "ही", "कुठे", "माझे", "होता", "होते"}),
}
# fmt: on
"""Words by which short texts in Devanagari tell their language; the model alone takes Nepali for Hindi."""


@dataclass(frozen=True)
class Detection:
    """A language that a text may be in.

    Args:
        tag: BCP-47 tag, `und` if the text says nothing of its language.
        confidence: Probability that the text is in this language rather than in any other that the model knows, 0 to 1.
    """

    tag: str
    confidence: float


NOTHING = Detection("und", 0.0)


def detect(text: str) -> Detection:
    """The most likely language of a text.

    Args:
        text: Any; the first letters of a long one decide.

    Returns:
        `NOTHING` where the text has no letters. Chinese is `zh-Hans` or `zh-Hant`.
    """
    found = probabilities(text)
    if not found:
        return NOTHING
    best = max(found, key=found.__getitem__)
    return Detection(tag_of(best, text), round(found[best], 4))


def probabilities(text: str) -> dict[str, float]:
    """How likely a text is in each of the 130 languages that the model knows.

    Returns:
        Probabilities that add up to 1, by the labels of `family`; empty for a text without letters.
    """
    sample = NOISE.sub(" ", _beginning(text))
    letters = scripts_of_text(sample)
    if not letters:
        return {}
    # The model's features include the blanks around words; the dot of "İ" is no letter.
    words = WORD.findall(sample.replace("İ", "i").lower())
    found: dict[str, float] = {}
    for code, share in _identifier().rank(f" {' '.join(words)} "):
        code = family(code)
        weighed = (share * _odds().get(code, RARE_ODDS)) ** SHARPNESS
        found[code] = found.get(code, 0.0) + weighed
    del found["zxx"]
    if letters.most_common(1)[0][0] == "Devanagari":
        _weigh_words(words, found)
    total = sum(found.values())
    return {code: weighed / total for code, weighed in found.items()}


def family(tag: str) -> str:
    """The language of `probabilities` that a tag belongs to: `no` for `nb`, `zh` for all Chinese."""
    code = label(tag)
    return "zh" if code in CHINESE else "tl" if code == "fil" else code


def tag_of(code: str, text: str) -> str:
    """The tag of a language of `probabilities` that a text is in."""
    if code == "zh" and chinese_script(text[:MAX_CHARS]) == "Hant":
        return "zh-Hant"
    return BCP47.get(code, code)


def shares(text: str) -> dict[str, float]:
    """The model's own answer, the likeliest first, by the primary subtags of `label`; empty without letters."""
    sample = NOISE.sub(" ", text[:MAX_CHARS])
    if not scripts_of_text(sample):
        return {}
    return {str(code): float(share) for code, share in _identifier().rank(sample)}


def likeliest(text: str) -> str:
    """The label of the model that `shares` would have first, in half the time; empty without letters."""
    sample = NOISE.sub(" ", text[:MAX_CHARS])
    return str(_identifier().classify(sample)[0]) if scripts_of_text(sample) else ""


def label(tag: str) -> str:
    """The model's name of a language: its primary subtag, `no` for all of Norwegian but `nn`."""
    code = tag.split("-")[0].lower()
    return {"nb": "no", "iw": "he", "in": "id", "cmn": "zh"}.get(code, code)


@cache
def _identifier() -> Any:
    """The model; loading it takes a second and 120 MB, so it is loaded on first use."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _beginning(text: str) -> str:
    """The part of a text that is looked at: its first characters, or those after more digits than these."""
    first = LETTER.search(text) if len(text) > MAX_CHARS else None
    start = first.start() if first is not None and first.start() > MAX_CHARS // 2 else 0
    return text[start : start + MAX_CHARS]


@cache
def _odds() -> dict[str, float]:
    return {code: odds for codes, odds in zip(FREQUENT, ODDS, strict=True) for code in codes.split()}


def _weigh_words(words: list[str], found: dict[str, float]) -> None:
    """Give the language whose words a text in Devanagari has the share of the first."""
    counts = {code: sum(word in known for word in words) for code, known in DEVANAGARI_WORDS.items()}
    best = max(counts, key=counts.__getitem__)
    if sum(count == counts[best] for count in counts.values()) == 1:
        first = max(found, key=found.__getitem__)
        found[best], found[first] = found[first], found[best]
