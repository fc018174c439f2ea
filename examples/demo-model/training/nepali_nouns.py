"""Nepali noun phrases: classifiers, agreement in -ो, -ी, -ा, postpositions."""

from .lexicon import Adjective
from .syntax import POSSESSIVES, UNCHANGED_BY_NEGATION, Determiner, NounPhrase, Pronoun, Where

_POSSESSIVES = {Determiner.MY: "मेर", Determiner.OUR: "हाम्र", Determiner.YOUR: "तपाईंक"}
_PRONOUNS = {
    Pronoun.I: "म",
    Pronoun.WE: "हामी",
    Pronoun.HE: "उनी",
    Pronoun.SHE: "उनी",
    Pronoun.THEY: "उनीहरू",
    Pronoun.YOU: "तपाईं",
    Pronoun.WHO: "को",
}
_ERGATIVE = {Pronoun.I: "मैले", Pronoun.HE: "उनले", Pronoun.SHE: "उनले", Pronoun.WHO: "कसले"}
_DATIVE = {Pronoun.I: "मलाई", Pronoun.HE: "उनलाई", Pronoun.SHE: "उनलाई"}
_GENITIVE = {Pronoun.I: "मेर", Pronoun.WE: "हाम्र", Pronoun.HE: "उनक", Pronoun.SHE: "उनक"}


def agreement(phrase: NounPhrase) -> str:
    """The vowel sign of agreeing adjectives: ो, ी or ा (plural and respectful)."""
    if phrase.also is not None:
        return "ा"
    if phrase.pronoun is not None:
        return {Pronoun.I: "ो", Pronoun.SHE: "ी"}.get(phrase.pronoun, "ा")
    if phrase.name is not None:
        return "ो" if not phrase.name.human else "ी" if phrase.name.gender == "f" else "ा"
    assert phrase.noun is not None
    if phrase.noun.ne_class in ("f", "hf") and not phrase.is_plural:
        return "ी"
    return "ो" if phrase.noun.ne_class == "l" and not phrase.is_plural else "ा"


def adjective(word: Adjective, vowel: str) -> str:
    """An adjective; only those in -ो agree."""
    return word.ne.removesuffix("ो") + vowel if word.ne.endswith("ो") else word.ne


def _number(phrase: NounPhrase) -> str:
    """The numeral with its classifier: दुई वटा, 42 जना, एक कप."""
    assert phrase.noun is not None
    if phrase.measure is not None:
        count = phrase.numeral.ne if phrase.numeral is not None else "एक"
        return f"{count} {phrase.measure['ne']}"
    assert phrase.numeral is not None
    return f"{phrase.numeral.ne} {'जना' if phrase.noun.human else 'वटा'}"


def _determiner(phrase: NounPhrase, oblique: bool, negated: bool) -> str:
    assert phrase.noun is not None
    match phrase.determiner:
        case Determiner.A if not negated:
            return "एक जना" if phrase.noun.human else "एउटा"
        case Determiner.THIS:
            return "यी" if phrase.plural else "यस" if oblique else "यो"
        case Determiner.NUMBER | Determiner.MEASURE:
            return _number(phrase)
        case Determiner.MANY:
            return "धेरै"
        case determiner if determiner in POSSESSIVES:
            return _POSSESSIVES[determiner] + agreement(phrase)
    return ""


def marks_plural(phrase: NounPhrase) -> bool:
    """Whether the noun takes -हरू: not after a number, and not for things in general ("apples")."""
    if phrase.noun is None or not phrase.plural or "plural_only" in phrase.noun.tags:
        return False
    if phrase.determiner is Determiner.BARE:
        return phrase.noun.human or "animal" in phrase.noun.tags
    return phrase.determiner not in UNCHANGED_BY_NEGATION | {Determiner.GENERIC}


def _noun(phrase: NounPhrase) -> str:
    assert phrase.noun is not None
    word = phrase.noun.ne
    if not marks_plural(phrase):
        return word
    return (word.removesuffix("ो") + "ा" if word.endswith("ो") else word) + "हरू"


def noun_phrase(phrase: NounPhrase, postposition: str = "", negated: bool = False) -> str:
    """A noun phrase with a postposition written on ("ले", "लाई", "मा") or after a space ("सँग").

    `negated` leaves out the "a" that English says in "does not have a car".
    """
    if phrase.also is not None:
        first = NounPhrase(phrase.noun, phrase.name, phrase.pronoun, phrase.determiner)
        return f"{noun_phrase(first)} र {noun_phrase(phrase.also, postposition)}"
    if phrase.pronoun is not None:
        return _pronoun(phrase.pronoun, postposition)
    if phrase.name is not None:
        return phrase.name.ne + postposition
    words = [_determiner(phrase, bool(postposition), negated)]
    if phrase.adjective is not None:
        words.append(adjective(phrase.adjective, agreement(phrase)))
    words.append(_noun(phrase) + postposition)
    return " ".join(word for word in words if word)


def _pronoun(pronoun: Pronoun, postposition: str) -> str:
    if postposition == "ले" and pronoun in _ERGATIVE:
        return _ERGATIVE[pronoun]
    if postposition == "लाई" and pronoun in _DATIVE:
        return _DATIVE[pronoun]
    return _PRONOUNS[pronoun] + postposition


def genitive(owner: NounPhrase, vowel: str) -> str:
    """The owner of something that agrees in `vowel`: मेरो, आनाको, आनाकी."""
    if owner.also is None and owner.pronoun in _GENITIVE:
        return _GENITIVE[owner.pronoun] + vowel
    return noun_phrase(owner, "क" + vowel)


def where(place: Where) -> str:
    """A place with its postposition; motion towards a place leaves it bare."""
    if place.town is not None:
        return place.town["ne_to"] if place.to else place.town["ne_in"]
    assert place.phrase is not None
    if place.relation is not None:
        return noun_phrase(place.phrase, place.relation["ne"])
    return noun_phrase(place.phrase, "" if place.to else "मा")
