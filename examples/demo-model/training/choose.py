"""Choosing people and things that fit together. All choices come from the caller's generator."""

from dataclasses import replace
from functools import cache
from random import Random

from .lexicon import Adjective, Name, Noun, adjectives, matches, names, nouns, table
from .syntax import Determiner, Feeling, NounPhrase, Numeral, Pronoun

PLACEHOLDER_SHARE = 0.04
_PEOPLE = ("{name}", "{user}", "{0}", "%s", "%1$s")
_THINGS = ("{item}", "{title}", "{0}", "%s", "%1$s")
_PRONOUNS = (Pronoun.I, Pronoun.WE, Pronoun.HE, Pronoun.SHE, Pronoun.THEY)


@cache
def nouns_like(wanted: frozenset[str]) -> tuple[Noun, ...]:
    """Every noun with one of the wanted tags (or named as `=noun`)."""
    return tuple(noun for noun in nouns().values() if matches(noun, wanted))


def tags(text: str) -> frozenset[str]:
    """A set of tags from words."""
    return frozenset(text.split())


def marker(rng: Random, usual: tuple[str, ...] = _PEOPLE) -> str:
    """A placeholder: `<x1/>` to `<x30/>`, or one of the usual ones, such as `{name}` or `%s`."""
    return f"<x{rng.randint(1, 30)}/>" if rng.random() < 0.4 else rng.choice(usual)


def numeral(rng: Random, low: int = 2, high: int = 99, words: float = 0.5) -> Numeral:
    """A number from 2 up: in words to twelve with probability `words`, else digits or `{count}`."""
    if low == 2 and rng.random() < words:
        row = rng.choice(table_of("numbers"))
        return Numeral(row["en"], row["fr"], row["de"], row["ne"])
    if high == 99 and rng.random() < 0.1:
        low, high = 100, 9999
    digits = "{count}" if rng.random() < PLACEHOLDER_SHARE else str(rng.randint(low, high))
    return Numeral(digits, digits, digits, digits)


@cache
def table_of(name: str) -> tuple[dict[str, str], ...]:
    """A table of plain rows, read once."""
    return tuple(table(name))


def name(rng: Random) -> NounPhrase:
    """A given name, now and then a placeholder."""
    if rng.random() < PLACEHOLDER_SHARE * 2:
        text = marker(rng)
        return NounPhrase(name=Name(text, "m", text))
    return NounPhrase(name=rng.choice(names()))


def unknown(rng: Random) -> NounPhrase:
    """A placeholder in place of a thing."""
    text = marker(rng, _THINGS)
    return NounPhrase(name=Name(text, "m", text, human=False))


def relative(
    rng: Random, wanted: str = "kin circle", is_question: bool = False, plural: float = 0.12
) -> NounPhrase:
    """Somebody of ours: my sister, our neighbours; in questions also your brother."""
    noun = rng.choice(nouns_like(tags(wanted)))
    owner = rng.choice((Determiner.MY, Determiner.OUR))
    if is_question and rng.random() < 0.6:
        owner = Determiner.YOUR
    if "only_my" in noun.tags and owner is Determiner.OUR:
        owner = Determiner.MY
    many = "plural_only" in noun.tags or (noun.has_plural and rng.random() < plural)
    return NounPhrase(noun=noun, determiner=owner, plural=many)


def person(rng: Random, wanted: str = "person", plural: float = 0.25, described: float = 0.1) -> NounPhrase:
    """Somebody by their role: the teacher, the tourists, the young doctor."""
    noun = rng.choice(nouns_like(tags(wanted)))
    adjective = attribute(rng, noun) if rng.random() < described else None
    return NounPhrase(noun=noun, plural=rng.random() < plural, adjective=adjective)


def people(rng: Random, is_question: bool = False) -> NounPhrase:
    """A human subject."""
    chance = rng.random()
    if is_question and chance < 0.35:
        return NounPhrase(pronoun=Pronoun.YOU)
    if chance < 0.33 and not is_question:
        return NounPhrase(pronoun=rng.choice(_PRONOUNS))
    if chance < 0.55:
        return name(rng)
    if chance < 0.60:
        first, second = rng.sample(names(), 2)
        return NounPhrase(name=first, also=NounPhrase(name=second))
    return relative(rng, is_question=is_question) if chance < 0.82 else person(rng)


def subject(rng: Random, kinds: frozenset[str], is_question: bool = False) -> NounPhrase:
    """The subject of a verb whose table names the kinds that may do it."""
    animal = 0.3 if "animal" in kinds else 0.05 if "animal_rare" in kinds else 0.0
    if rng.random() < animal:
        return thing(rng, tags("animal"), definite=True)
    if "children" in kinds:
        if rng.random() < 0.5:
            return person(rng, "=child =boy =girl", 0.4)
        return relative(rng, "=son =daughter =brother =sister", is_question, 0.3)
    if "adults" in kinds:
        while True:
            found = people(rng, is_question)
            if found.noun is None or "young" not in found.noun.tags:
                return found
    return people(rng, is_question)


def attribute(rng: Random, noun: Noun) -> Adjective | None:
    """An adjective that can stand before the noun, if there is one."""
    return _pick(rng, tuple(word for word in fitting(noun) if word.use == "both"))


def _pick(rng: Random, words: tuple[Adjective, ...]) -> Adjective | None:
    return rng.choice(words) if words else None


@cache
def fitting(noun: Noun) -> tuple[Adjective, ...]:
    """Every adjective that makes sense with the noun."""
    return tuple(word for word in adjectives() if matches(noun, word.nouns) and not noun.tags & word.exclude)


@cache
def _bearers(adjective: Adjective) -> tuple[Noun, ...]:
    """Every noun, people we know aside, that the adjective can be said of."""
    return tuple(
        noun for noun in nouns().values() if adjective in fitting(noun) and not noun.tags & {"kin", "circle"}
    )


def quality(rng: Random) -> Adjective:
    """An adjective that is said of things or of people by their role."""
    return rng.choice([word for word in adjectives() if _bearers(word)])


def described_by(rng: Random, adjective: Adjective) -> NounPhrase:
    """Something definite that the adjective can be said of."""
    noun = rng.choice(_bearers(adjective))
    found = thing(rng, frozenset({f"={noun.en}"}), definite=True, described=0.08)
    return replace(found, adjective=None) if found.adjective is adjective else found


@cache
def feelings_of_people() -> tuple[Adjective, ...]:
    """The adjectives that anybody can be: tired, ready, happy."""
    return tuple(word for word in adjectives() if "people" in word.nouns)


def thing(
    rng: Random,
    wanted: frozenset[str],
    definite: bool = False,
    negative: bool = False,
    described: float = 0.3,
) -> NounPhrase:
    """A noun phrase from the wanted classes.

    `definite` keeps to the, this and my; `negative` avoids numbers and quantities.
    """
    noun = rng.choice(nouns_like(wanted))
    if noun.tags & {"kin", "circle"} and "person" not in noun.tags:
        return relative(rng, f"={noun.en}")
    if noun.human:
        known = definite or rng.random() < 0.8
        many = rng.random() < 0.25
        kind = Determiner.THE if known else Determiner.BARE if many else Determiner.A
        return NounPhrase(noun=noun, determiner=kind, plural=many)
    adjective = attribute(rng, noun) if rng.random() < described else None
    chance = rng.random()
    if definite:
        determiner = Determiner.THE if chance < 0.6 else Determiner.THIS
        if chance > 0.8 and noun.tags & {"small", "had", "fixed", "pet"} and not noun.mass:
            determiner = rng.choice((Determiner.MY, Determiner.OUR))
        rarely = bool(noun.tags & {"building", "outdoor", "room", "event"})
        many = noun.has_plural and rng.random() < (0.05 if rarely else 0.25)
        return NounPhrase(noun=noun, determiner=determiner, plural=many, adjective=adjective)
    if noun.mass or not noun.has_plural:
        return _mass(rng, noun, adjective, negative)
    if not negative and chance < 0.16:
        return _counted(rng, noun, adjective)
    if chance < 0.30:
        return NounPhrase(noun=noun, determiner=Determiner.BARE, plural=True, adjective=adjective)
    if chance < (0.36 if "food" in noun.tags else 0.52):
        return NounPhrase(noun=noun, determiner=Determiner.A, adjective=adjective)
    return thing(rng, frozenset({f"={noun.en}"}), definite=True, described=described)


def _mass(rng: Random, noun: Noun, adjective: Adjective | None, negative: bool) -> NounPhrase:
    if not noun.mass or rng.random() < 0.35:
        return NounPhrase(noun=noun, adjective=adjective)
    found = None if negative or rng.random() < 0.5 else measured(rng, noun)
    return found or NounPhrase(noun=noun, determiner=Determiner.BARE, adjective=adjective)


def _counted(rng: Random, noun: Noun, adjective: Adjective | None) -> NounPhrase:
    chance = rng.random()
    if chance < 0.25:
        found = measured(rng, noun)
        if found is not None:
            return found
    if chance < 0.4:
        return NounPhrase(noun=noun, determiner=Determiner.MANY, plural=True, adjective=adjective)
    return NounPhrase(
        noun, determiner=Determiner.NUMBER, plural=True, adjective=adjective, numeral=numeral(rng)
    )


def measured(rng: Random, noun: Noun) -> NounPhrase | None:
    """A cup of tea, two kilos of potatoes; None when the noun is not measured.

    In the table of measures `=noun` is measured in the singular and `+noun` in the plural.
    """
    singly, many = f"={noun.en}", f"+{noun.en}"
    rows = [row for row in table_of("measures") if {singly, many} & tags(row["nouns"])]
    if not rows:
        return None
    row = rng.choice(rows)
    return NounPhrase(
        noun,
        determiner=Determiner.MEASURE,
        plural=many in tags(row["nouns"]),
        numeral=numeral(rng, high=20, words=0.8) if rng.random() < 0.4 else None,
        measure=row,
    )


@cache
def table_of_feelings() -> tuple[Feeling, ...]:
    """Hunger and thirst."""
    return tuple(Feeling(row) for row in table("feelings"))
