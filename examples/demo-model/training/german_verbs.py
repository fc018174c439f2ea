"""German conjugation: present, perfect, past of sein and haben, separable prefixes."""

from dataclasses import dataclass
from functools import cache

from .lexicon import table
from .syntax import NounPhrase, Pronoun

_PAST = {
    "sein": {"ich": "war", "er": "war", "wir": "waren"},
    "haben": {"ich": "hatte", "er": "hatte", "wir": "hatten"},
}


@dataclass(frozen=True)
class Conjugation:
    """The principal parts of a verb; `present` is keyed by ich, er and wir (which also serves sie)."""

    prefix: str
    infinitive: str
    present: dict[str, str]
    participle: str
    auxiliary: str

    def past(self, person: str) -> str:
        """The simple past, which the grammar needs for sein and haben only."""
        return _PAST[self.infinitive][person]


@cache
def _irregular() -> dict[str, dict[str, str]]:
    return {row["infinitive"]: row for row in table("de_verbs")}


@cache
def conjugation(verb: str) -> Conjugation:
    """The parts of a verb written with a bar after a separable prefix ("an|rufen")."""
    prefix, _, base = verb.rpartition("|")
    stem = base[:-2] if base.endswith("en") else base[:-1]
    linked = stem + ("e" if stem.endswith(("d", "t", "ffn", "chn")) else "")
    row = _irregular().get(base, {})
    return Conjugation(
        prefix,
        prefix + base,
        {
            "ich": row.get("ich") or stem + "e",
            "er": row.get("er") or linked + "t",
            "wir": "sind" if base == "sein" else base,
        },
        prefix + (row.get("participle") or f"ge{linked}t"),
        row.get("auxiliary") or "haben",
    )


def person(subject: NounPhrase) -> str:
    """The row of the conjugation table that a subject takes."""
    if subject.also is None and subject.pronoun is Pronoun.I:
        return "ich"
    return "wir" if subject.is_plural else "er"
