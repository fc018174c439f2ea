"""Which language a text is in.

py3langid names 88 of 92 short texts of `tests/unit/protocols/languages.txt` rightly, pycld2 82; it is pure Python
with a bundled model of 4.6 MB (lingua's wheel has 96 MB; gcld3 has no wheel), 0.35 ms a short text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex

from dragoman_protocols.scripts import chinese_script, scripts_of_text

MAX_CHARS = 1000
"""More text does not change the answer."""

NOISE = regex.compile(r"https?://\S+|[\w.+\-]{1,64}@[\w.\-]+|<[^<>]{1,200}>|[\d_]+")

BCP47 = {"no": "nb", "zh": "zh-Hans", "cmn": "zh-Hans", "iw": "he", "in": "id"}
"""Labels of the model that stand for a more exact tag here."""

CHINESE = frozenset({"zh", "yue", "wuu", "cmn", "lzh", "nan"})

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
        confidence: From 0 to 1.
    """

    tag: str
    confidence: float


NOTHING = Detection("und", 0.0)


def shares(text: str) -> dict[str, float]:
    """How likely each language of the model is, the likeliest first; empty for a text without letters.

    Returns:
        Probabilities that add up to 1, by the primary subtags of `label`.
    """
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
    return {"nb": "no", "iw": "he", "cmn": "zh"}.get(code, code)


def detect(text: str, among: Iterable[str] = ()) -> Detection:
    """The most likely language of a text.

    Args:
        text: Any; the first letters of a long one decide.
        among: BCP-47 tags that come into question; empty means all 140 that the model knows. Tags that the
            model does not know are left out.

    Returns:
        `NOTHING` where the text has no letters. Chinese is `zh-Hans` or `zh-Hant`.
    """
    sample = NOISE.sub(" ", text[:MAX_CHARS])
    letters = scripts_of_text(sample)
    if not letters:
        return NOTHING
    wanted: dict[str, str] = {}
    for tag in among:
        wanted.setdefault(label(tag), tag)
    ranked = [(code, share) for code, share in shares(text).items() if not wanted or code in wanted]
    if not ranked:
        return NOTHING
    code, share = ranked[0]
    if wanted:
        total = sum(each for _, each in ranked)
        share = share / total if total > 0 else 1 / len(ranked)
    if letters.most_common(1)[0][0] == "Devanagari":
        code, share = _by_words(sample, code, share, wanted)
    if code in CHINESE:
        return _chinese(sample, share, wanted)
    return Detection(wanted.get(code, BCP47.get(code, code)), round(share, 4))


@cache
def _identifier() -> Any:
    """The model; loading it takes a second and 90 MB, so it is loaded on first use."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _by_words(sample: str, code: str, share: float, wanted: dict[str, str]) -> tuple[str, float]:
    words = sample.replace("।", " ").replace("?", " ").split()
    counts = {each: sum(word in known for word in words) for each, known in DEVANAGARI_WORDS.items()}
    best = max(counts, key=lambda each: counts[each])
    clear = sum(count == counts[best] for count in counts.values()) == 1
    if best == code or not clear or (wanted and best not in wanted):
        return code, share
    return best, max(0.6, 1 - share)


def _chinese(sample: str, share: float, wanted: dict[str, str]) -> Detection:
    script = chinese_script(sample)
    tag = "zh-Hant" if script == "Hant" else "zh-Hans"
    named = [each for code, each in wanted.items() if code in CHINESE]
    return Detection(named[0] if len(named) == 1 and "-" not in named[0] else tag, round(share, 4))
