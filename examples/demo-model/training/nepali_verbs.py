"""Nepali conjugation.

Six forms answer to the subject: `1s` (म), `1p` (हामी), `3s` (low grade), `3p` (plural and middle
grade), `3f` (feminine) and `h` (honorific, which also serves तपाईं).
"""

from .syntax import NounPhrase, Pronoun

VIRAMA = "्"
# Written after र so that र् + य keeps the eyelash form: गर्‍यो.
_EYELASH = "\u200d"

_PRESENT = {"1s": "छु", "1p": "छौँ", "3s": "छ", "3p": "छन्", "3f": "छिन्"}
_PRESENT_NEGATIVE = {"1s": "दिनँ", "1p": "दैनौँ", "3s": "दैन", "3p": "दैनन्", "3f": "दिनन्"}
_FUTURE_NEGATIVE = {"1s": "छैनँ", "1p": "छैनौँ", "3s": "छैन", "3p": "छैनन्", "3f": "छैनन्"}
_PAST_VOWEL = {"1s": "एँ", "1p": "यौँ", "3s": "यो", "3p": "ए", "3f": "इन्"}
_PAST_CONSONANT = {"1s": "ेँ", "1p": "्यौँ", "3s": "्यो", "3p": "े", "3f": "िन्"}
_PAST_NEGATIVE_VOWEL = {"1s": "इनँ", "1p": "एनौँ", "3s": "एन", "3p": "एनन्", "3f": "इनन्"}
_PAST_NEGATIVE_CONSONANT = {"1s": "िनँ", "1p": "ेनौँ", "3s": "ेन", "3p": "ेनन्", "3f": "िनन्"}
_PAST_STEMS = {"जा": "ग", "धु": "धो", "रु": "रो", "हु": "भ"}

# छ says where and how something is, हो says what it is.
CHHA = {**_PRESENT, "h": "हुनुहुन्छ"}
CHHA_NOT = {**_FUTURE_NEGATIVE, "h": "हुनुहुन्न"}
HO = {"1s": "हुँ", "1p": "हौँ", "3s": "हो", "3p": "हुन्", "3f": "हुन्", "h": "हुनुहुन्छ"}
HO_NOT = {"1s": "होइनँ", "1p": "होइनौँ", "3s": "होइन", "3p": "होइनन्", "3f": "होइनन्", "h": "हुनुहुन्न"}
THIYO = {"1s": "थिएँ", "1p": "थियौँ", "3s": "थियो", "3p": "थिए", "3f": "थिइन्", "h": "हुनुहुन्थ्यो"}
THIYO_NOT = {
    "1s": "थिइनँ",
    "1p": "थिएनौँ",
    "3s": "थिएन",
    "3p": "थिएनन्",
    "3f": "थिइनन्",
    "h": "हुनुहुन्नथ्यो",
}


def _split(verb: str) -> tuple[str, str]:
    """The words before the verb ("मर्मत "), and its stem without -नु."""
    head, space, last = verb.rpartition(" ")
    return head + space, last.removesuffix("नु")


def _is_consonant_stem(stem: str) -> bool:
    return stem.endswith(VIRAMA)


def _past_stem(stem: str) -> tuple[str, bool]:
    """The stem of the past, and whether it ends in a consonant."""
    if stem in _PAST_STEMS:
        return _PAST_STEMS[stem], False
    if stem.endswith("उ"):
        return stem[:-1], False
    bare = stem.removesuffix(VIRAMA)
    return bare, "क" <= bare[-1] <= "ह"


def _dental(stem: str) -> str:
    """The stem before -दै, -दैन: खाँ, पकाउँ, but गर्."""
    return stem if _is_consonant_stem(stem) else stem + "ँ"


def infinitive(verb: str) -> str:
    """The infinitive before सक्नु and चाहनु: किन्न."""
    head, stem = _split(verb)
    return f"{head}{stem}न"


def present(verb: str, form: str, negative: bool) -> str:
    """The habitual present: पढ्छ, खान्छ, पकाउँछ."""
    head, stem = _split(verb)
    if form == "h":
        return f"{head}{stem}नुहुन्न" if negative else f"{head}{stem}नुहुन्छ"
    if negative:
        return head + _dental(stem) + _PRESENT_NEGATIVE[form]
    link = "" if _is_consonant_stem(stem) else "ँ" if stem.endswith("उ") else "न्"
    return head + stem + link + _PRESENT[form]


def progressive(verb: str, form: str, negative: bool) -> str:
    """What is going on: पढ्दै छ."""
    head, stem = _split(verb)
    return f"{head}{_dental(stem)}दै {(CHHA_NOT if negative else CHHA)[form]}"


def future(verb: str, form: str, negative: bool) -> str:
    """The definite future: पढ्नेछ."""
    head, stem = _split(verb)
    if form == "h":
        return f"{head}{stem}नुहुने{'छैन' if negative else 'छ'}"
    return f"{head}{stem}ने{(_FUTURE_NEGATIVE if negative else _PRESENT)[form]}"


def past(verb: str, form: str, negative: bool) -> str:
    """The simple past: पढ्यो, खायो, गयो."""
    head, stem = _split(verb)
    if form == "h":
        return f"{head}{stem}नु{'भएन' if negative else 'भयो'}"
    base, consonant = _past_stem(stem)
    if negative:
        return head + base + (_PAST_NEGATIVE_CONSONANT if consonant else _PAST_NEGATIVE_VOWEL)[form]
    ending = (_PAST_CONSONANT if consonant else _PAST_VOWEL)[form]
    if base.endswith("र") and ending.startswith(VIRAMA):
        ending = VIRAMA + _EYELASH + ending[1:]
    return head + base + ending


def command(verb: str, negative: bool) -> str:
    """The polite command: खोल्नुहोस्, नखोल्नुहोस्."""
    head, stem = _split(verb)
    return f"{head}{'न' if negative else ''}{stem}नुहोस्"


def form_of(subject: NounPhrase) -> str:
    """The form a subject asks for."""
    if subject.also is not None:
        first = NounPhrase(subject.noun, subject.name, subject.pronoun, subject.determiner)
        return "h" if form_of(first) == form_of(subject.also) == "h" else "3p"
    if subject.pronoun is not None:
        return {
            Pronoun.I: "1s",
            Pronoun.WE: "1p",
            Pronoun.YOU: "h",
            Pronoun.SHE: "3f",
            Pronoun.WHO: "3s",
        }.get(subject.pronoun, "3p")
    if subject.name is not None:
        return "3s" if not subject.name.human else "3f" if subject.name.gender == "f" else "3p"
    assert subject.noun is not None
    grade = subject.noun.ne_class
    if grade in ("h", "hf"):
        return "h"
    if subject.is_plural or grade == "m":
        return "3p"
    return "3f" if grade == "f" else "3s"
