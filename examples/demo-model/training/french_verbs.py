"""French conjugation: present, compound past, imperfect of être and avoir, future."""

from dataclasses import dataclass
from functools import cache

from .lexicon import table
from .syntax import NounPhrase, Pronoun

_FUTURE = {"je": "ai", "il": "a", "nous": "ons", "vous": "ez", "ils": "ont"}
_IMPERFECT = {"je": "ais", "il": "ait", "nous": "ions", "vous": "iez", "ils": "aient"}
_IMPERFECT_STEMS = {"être": "ét", "avoir": "av"}


@dataclass(frozen=True)
class Conjugation:
    """The principal parts of a verb; `present` is keyed by je, il, nous, vous, ils."""

    infinitive: str
    present: dict[str, str]
    participle: str
    future_stem: str
    auxiliary: str

    def future(self, person: str) -> str:
        """The simple future."""
        return self.future_stem + _FUTURE[person]

    def imperfect(self, person: str) -> str:
        """The imperfect, which the grammar needs for être and avoir only."""
        return _IMPERFECT_STEMS[self.infinitive] + _IMPERFECT[person]


@cache
def _irregular() -> dict[str, Conjugation]:
    return {
        row["infinitive"]: Conjugation(
            row["infinitive"],
            {person: row[person] for person in _FUTURE},
            row["participle"],
            row["future"],
            row["auxiliary"],
        )
        for row in table("fr_verbs")
    }


_WITH_ETRE = frozenset({"arriver", "rester", "rentrer"})


@cache
def conjugation(infinitive: str) -> Conjugation:
    """The parts of a verb: from the table, or regular in -er."""
    if infinitive in _irregular():
        return _irregular()[infinitive]
    if not infinitive.endswith("er"):
        raise ValueError(f"{infinitive} is not in the table and does not end in -er")
    stem = infinitive[:-2]
    endings = {"je": "e", "il": "e", "nous": "ons", "vous": "ez", "ils": "ent"}
    return Conjugation(
        infinitive,
        {person: stem + ending for person, ending in endings.items()},
        stem + "é",
        infinitive,
        "être" if infinitive in _WITH_ETRE else "avoir",
    )


def person(subject: NounPhrase) -> str:
    """The row of the conjugation table that a subject takes."""
    match subject.pronoun:
        case Pronoun.I if subject.also is None:
            return "je"
        case Pronoun.WE:
            return "nous"
        case Pronoun.YOU:
            return "vous"
    return "ils" if subject.is_plural else "il"
