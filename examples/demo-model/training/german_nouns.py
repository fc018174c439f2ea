"""German noun phrases: case, gender, article and adjective endings."""

from .lexicon import Noun
from .syntax import POSSESSIVES, UNCHANGED_BY_NEGATION, Determiner, NounPhrase, Pronoun

# Keyed by case, then m, f, n, pl.
_GENDERS = ("m", "f", "n", "pl")
_DER = {
    "nom": dict(zip(_GENDERS, ("der", "die", "das", "die"), strict=True)),
    "acc": dict(zip(_GENDERS, ("den", "die", "das", "die"), strict=True)),
    "dat": dict(zip(_GENDERS, ("dem", "der", "dem", "den"), strict=True)),
}
_EIN = {
    "nom": dict(zip(_GENDERS, ("", "e", "", "e"), strict=True)),
    "acc": dict(zip(_GENDERS, ("en", "e", "", "e"), strict=True)),
    "dat": dict(zip(_GENDERS, ("em", "er", "em", "en"), strict=True)),
}
_STRONG = {
    "nom": dict(zip(_GENDERS, ("er", "e", "es", "e"), strict=True)),
    "acc": dict(zip(_GENDERS, ("en", "e", "es", "e"), strict=True)),
    "dat": dict(zip(_GENDERS, ("em", "er", "em", "en"), strict=True)),
}
_POSSESSIVES = {Determiner.MY: "mein", Determiner.OUR: "unser", Determiner.YOUR: "Ihr"}
_PRONOUNS = {
    Pronoun.I: "ich",
    Pronoun.WE: "wir",
    Pronoun.HE: "er",
    Pronoun.SHE: "sie",
    Pronoun.THEY: "sie",
    Pronoun.YOU: "Sie",
    Pronoun.WHO: "wer",
}


def _noun(noun: Noun, case: str, plural: bool) -> str:
    if plural:
        adds_n = case == "dat" and not noun.de_pl.endswith(("n", "s"))
        return noun.de_pl + ("n" if adds_n else "")
    return noun.de_oblique if case != "nom" and noun.de_oblique else noun.de


def _weak_ending(case: str, gender: str) -> str:
    """The ending after der and dieser."""
    short = (case == "nom" and gender != "pl") or (case == "acc" and gender in ("f", "n"))
    return "e" if short else "en"


def _mixed_ending(case: str, gender: str) -> str:
    """The ending after ein, kein and mein."""
    return _STRONG[case][gender] if not _EIN[case][gender] else _weak_ending(case, gender)


def noun_phrase(phrase: NounPhrase, case: str = "nom", negated: bool = False) -> str:
    """A noun phrase in nominative, accusative or dative; `negated` turns ein and no article into kein."""
    if phrase.also is not None:
        first = NounPhrase(phrase.noun, phrase.name, phrase.pronoun, phrase.determiner)
        return f"{noun_phrase(first, case)} und {noun_phrase(phrase.also, case)}"
    if phrase.pronoun is not None:
        return _PRONOUNS[phrase.pronoun]
    if phrase.name is not None:
        return phrase.name.en
    noun = phrase.noun
    assert noun is not None
    gender = "pl" if phrase.plural else noun.de_gender
    determiner = phrase.determiner
    if determiner is Determiner.THE:
        article, ending = _DER[case][gender], _weak_ending(case, gender)
    elif determiner is Determiner.THIS:
        article, ending = "dies" + _STRONG[case][gender], _weak_ending(case, gender)
    elif determiner in POSSESSIVES:
        article, ending = _POSSESSIVES[determiner] + _EIN[case][gender], _mixed_ending(case, gender)
    elif negated and determiner not in UNCHANGED_BY_NEGATION:
        article, ending = "kein" + _EIN[case][gender], _mixed_ending(case, gender)
    elif determiner is Determiner.A:
        article, ending = "ein" + _EIN[case][gender], _mixed_ending(case, gender)
    else:
        article, ending = _quantity(phrase, case), _STRONG[case][gender]
    adjective = phrase.adjective.de_stem + ending if phrase.adjective is not None else ""
    return " ".join(word for word in (article, adjective, _noun(noun, case, phrase.plural)) if word)


def _quantity(phrase: NounPhrase, case: str) -> str:
    """What counts or measures the noun: nothing, viele, a number, "eine Tasse"."""
    if phrase.determiner is Determiner.MANY:
        return "viele" + ("n" if case == "dat" else "")
    if phrase.measure is not None:
        if phrase.numeral is not None:
            return f"{phrase.numeral.de} {phrase.measure['de_pl']}"
        return f"ein{_EIN[case][phrase.measure['de_gender']]} {phrase.measure['de']}"
    return phrase.numeral.de if phrase.numeral is not None else ""
