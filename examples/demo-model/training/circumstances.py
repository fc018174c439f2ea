"""Choosing where and when. All choices come from the caller's generator."""

from dataclasses import replace
from functools import cache
from random import Random

from .choose import attribute, nouns_like, table_of, tags, thing
from .lexicon import Place, Row, places, table
from .syntax import Adverb, Determiner, NounPhrase, Tense, Where

_CITIES = [row for row in table("towns") if row["kind"] != "home"]
_HOME = next(row for row in table("towns") if row["kind"] == "home")
TIME_USE = {Tense.PAST: "past", Tense.FUTURE: "future", Tense.PRESENT: "now"}
ANYWHERE = frozenset({"work", "meet", "outside", "inside", "study", "eat"})


def town(rng: Random, to: bool = False) -> Where:
    """A city or a country, or the placeholder `{city}`."""
    return Where(town=rng.choice(_CITIES), to=to)


def home() -> Where:
    """At home."""
    return Where(town=_HOME)


@cache
def places_for(activity: frozenset[str]) -> tuple[Place, ...]:
    """The places with one of the tags."""
    return tuple(place for place in places() if place.tags & activity)


def place(rng: Random, activity: frozenset[str], to: bool = False) -> Where:
    """Where an activity happens, or goes to."""
    found = rng.choice(places_for(activity))
    phrase = NounPhrase(noun=found.noun)
    if not to and rng.random() < 0.15 and found.noun.tags & {"building", "outdoor"} and found.noun.has_plural:
        phrase = NounPhrase(noun=found.noun, determiner=Determiner.A, adjective=attribute(rng, found.noun))
    return Where(place=found, phrase=phrase, to=to)


def relation(rng: Random) -> tuple[NounPhrase, Where]:
    """Something and where it is: the cat under the table."""
    row = rng.choice(table_of("relations"))
    noun = rng.choice(nouns_like(tags(row["landmarks"])))
    while True:
        what = thing(rng, tags(row["subjects"]), definite=True, described=0.1)
        if what.noun is not noun and not ("kin" in what.noun.tags if what.noun is not None else False):
            return what, Where(relation=row, phrase=NounPhrase(noun=noun))


def adverb(row: Row, number: int = 0) -> Adverb:
    """The adverbial of a table's row, with `number` in place of {n}."""
    en, fr, de, ne = (row[language].replace("{n}", str(number)) for language in ("en", "fr", "de", "ne"))
    return Adverb(en, fr, de, ne, negative=bool(row.get("negative")))


def time(rng: Random, use: str) -> Adverb:
    """A time phrase for the past, the future, now, or a habit."""
    row = rng.choice([row for row in table_of("times") if use in row["use"].split()])
    return adverb(row, rng.randint(2, 10))


def frequency(rng: Random) -> Adverb:
    """always, often, sometimes, rarely, never."""
    return adverb(rng.choice(table_of("frequencies")))


def transport(rng: Random, distance: str) -> Adverb:
    """by train, by bicycle; `distance` is near or far."""
    row = rng.choice([row for row in table_of("transport") if distance in row["use"].split()])
    return replace(adverb(row), manner=True)


def clock(rng: Random, first: int = 6, last: int = 22) -> Adverb:
    """at 8:30, or at eight o'clock; `first` and `last` bound the hour."""
    if rng.random() < 0.35:
        row = rng.choice(table_of("numbers"))
        return Adverb(
            f"at {row['en']} o'clock", f"à {row['fr']} heures", f"um {row['de']} Uhr", f"{row['ne']} बजे"
        )
    hour, minute = rng.randint(first, last), f"{rng.randrange(5, 60, 5):02d}"
    shown = f"{hour}:{minute}"
    return Adverb(f"at {shown}", f"à {hour} h {minute}", f"um {shown} Uhr", f"{shown} बजे")
