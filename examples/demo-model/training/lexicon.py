"""The words of the grammar, read from the tables in `data/`.

A row of a table is one word or phrase in four languages. The field `tags` (or `nouns`, `objects`,
`subjects`, `places`) holds semantic classes: they say which words go together, so that people read
books and repair bicycles and not the other way round.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True)
class Noun:
    """A common noun. Genders are m, f or n; `ne_class` is the Nepali grade of agreement.

    `ne_class`: l (low: animals, things, children), m (middle), f (feminine), h (honorific) or
    hf (honorific feminine).
    """

    en: str
    en_pl: str
    fr: str
    fr_gender: str
    fr_pl: str
    de: str
    de_gender: str
    de_pl: str
    de_oblique: str
    ne: str
    ne_class: str
    tags: frozenset[str]

    @property
    def mass(self) -> bool:
        """Whether the noun cannot be counted (bread, water)."""
        return "mass" in self.tags

    @property
    def human(self) -> bool:
        """Whether the noun names a person."""
        return bool(self.tags & {"person", "kin", "circle"})

    @property
    def has_plural(self) -> bool:
        """Whether the grammar uses the noun's plural."""
        return not self.mass and self.en_pl != self.en and bool(self.en_pl)


@dataclass(frozen=True)
class Name:
    """A proper name or a placeholder that is copied; gender m or f, `human` false for a thing."""

    en: str
    gender: str
    ne: str
    human: bool = True


@dataclass(frozen=True)
class Adjective:
    """An adjective; `use` is `both` (attribute and predicate) or `state` (predicate only)."""

    en: str
    fr: str
    fr_f: str
    fr_position: str
    de: str
    de_stem: str
    ne: str
    use: str
    nouns: frozenset[str]
    exclude: frozenset[str]


@dataclass(frozen=True)
class Verb:
    """A verb with its fixed companions in each language.

    `en_rest`, `fr_rest`, `de_rest` follow the verb ("to music"); the `_negative` forms replace them
    under negation. `ne_mark` is the postposition of the object; `ne_ergative` says whether the
    subject takes -le in the past.
    """

    en: str
    en_past: str
    en_rest: str
    fr: str
    fr_rest: str
    fr_rest_negative: str
    fr_prep: str
    de: str
    de_rest: str
    de_rest_negative: str
    de_prep: str
    de_case: str
    ne: str
    ne_mark: str
    ne_ergative: bool
    aspect: str
    subjects: frozenset[str]
    objects: frozenset[str]
    places: frozenset[str]


@dataclass(frozen=True)
class Place:
    """A place where things happen: its noun and the preposition each language wants."""

    noun: Noun
    en_prep: str
    fr_prep: str
    de_prep: str
    de_to: str
    tags: frozenset[str]


Row = dict[str, str]
T = TypeVar("T")


def table(name: str) -> list[Row]:
    """The rows of `data/<name>.csv`."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _tags(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _english_plural(noun: str) -> str:
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


@cache
def nouns() -> dict[str, Noun]:
    """Every common noun, by its English singular. A plural of `-` means there is none."""
    found = {}
    for row in table("nouns"):
        plural = row["en_pl"] or _english_plural(row["en"])
        found[row["en"]] = Noun(
            **{
                **row,
                "en_pl": "" if plural == "-" else plural,
                "fr_pl": row["fr_pl"] or row["fr"] + "s",
                "tags": _tags(row["tags"]),
            }  # type: ignore[arg-type]
        )
    return found


@cache
def names() -> tuple[Name, ...]:
    """The given names."""
    return tuple(Name(row["en"], row["gender"], row["ne"]) for row in table("names"))


@cache
def adjectives() -> tuple[Adjective, ...]:
    """Every adjective; an empty feminine or stem means the basic form serves."""
    return tuple(
        Adjective(
            **{
                **row,
                "fr_f": row["fr_f"] or row["fr"],
                "de_stem": row["de_stem"] or row["de"],
                "nouns": _tags(row["nouns"]),
                "exclude": _tags(row["exclude"]),
            }  # type: ignore[arg-type]
        )
        for row in table("adjectives")
    )


def _verb(row: Row) -> Verb:
    """Build a verb; `look for`, `répondre à`, `warten auf` and `helfen +dat` are taken apart here."""
    en, _, en_rest = row["en"].partition(" ")
    fr = row["fr"].split()
    fr_prep = fr.pop() if fr[-1] in ("à", "de") else ""
    de = row["de"].split()
    ne, _, ergative = row["ne"].partition(" +") if " +" in row["ne"] else row["ne"].partition(" -")
    objects = _tags(row.get("objects", ""))
    takes_object = bool(objects) or "en_rest" in row
    return Verb(
        en=en,
        en_past=row["en_past"].partition(" ")[0],
        en_rest=row.get("en_rest", en_rest),
        fr=fr[0],
        fr_rest=row.get("fr_rest", " ".join(fr[1:])),
        fr_rest_negative=row.get("fr_rest_negative", "") or row.get("fr_rest", " ".join(fr[1:])),
        fr_prep=fr_prep,
        de=de[0],
        de_rest=row.get("de_rest", ""),
        de_rest_negative=row.get("de_rest_negative", ""),
        de_prep=de[1] if len(de) > 1 and de[1] != "+dat" else "",
        de_case="dat" if "+dat" in de else "acc",
        ne=ne,
        ne_mark=row.get("ne_mark", ""),
        ne_ergative=(" +" in row["ne"]) if ergative else takes_object,
        aspect=row.get("aspect", "event"),
        subjects=_tags(row.get("subjects", "people")),
        objects=objects,
        places=_tags(row.get("places", "")),
    )


@cache
def verbs(name: str = "verbs") -> tuple[Verb, ...]:
    """The verbs of a table: `verbs`, `gifts`, `idioms` or `schedules`."""
    return tuple(_verb(row) for row in table(name))


@cache
def places() -> tuple[Place, ...]:
    """Every place."""
    return tuple(
        Place(
            nouns()[row["noun"]],
            row["en_prep"],
            row["fr_prep"],
            row["de_prep"],
            row["de_to"],
            _tags(row["tags"]),
        )
        for row in table("places")
    )


def matches(noun: Noun, wanted: frozenset[str]) -> bool:
    """Whether a noun has one of the wanted tags, or is named itself as `=noun`."""
    return bool(noun.tags & wanted) or f"={noun.en}" in wanted


def content_words() -> set[str]:
    """The English nouns, verbs, adjectives and adverbs of the grammar (names and numbers left out)."""
    words = set(nouns())
    words |= {adjective.en for adjective in adjectives()}
    words |= {
        f"{verb.en} {verb.en_rest}".strip()
        for name in ("verbs", "gifts", "schedules")
        for verb in verbs(name)
    }
    words |= {row["en"] for row in table("frequencies")}
    words |= {row["en"] for row in table("professions")}
    return words
