"""Longer texts: two clauses joined, two sentences about the same person, a greeting and what follows."""

from dataclasses import replace
from random import Random

from . import choose, circumstances
from .clauses import alone, liked, transitive
from .grammar import STATEMENTS, one
from .lexicon import Verb, verbs
from .syntax import (
    Clause,
    Modal,
    NounPhrase,
    Pair,
    Phrase,
    Pronoun,
    Sentence,
    Tense,
    Text,
)

_LIKE: Verb = next(verb for verb in verbs() if verb.aspect == "like")
_BY_NAME = {verb.en: verb for verb in verbs() if verb.aspect == "event"}
_MOODS = ("tired", "sick", "busy", "happy", "sad", "nervous")
_FEELINGS = {word.en: word for word in choose.feelings_of_people()} | {
    feeling.row["en"]: feeling for feeling in choose.table_of_feelings()
}
# An action and the moods that explain it; "not" stands for anything that is not done.
_REASONS = (
    ("not", "tired sick busy"),
    ("stay", "tired sick sad"),
    ("sleep", "tired sick"),
    ("cry", "sad nervous"),
    ("laugh", "happy nervous"),
    ("sing", "happy"),
    ("dance", "happy"),
    ("eat", "hungry"),
    ("cook", "hungry"),
    ("drink", "thirsty tired"),
)


def pronoun_for(who: NounPhrase) -> NounPhrase | None:
    """The pronoun that refers to a person again, where all four languages agree on it; else None."""
    if who.pronoun is not None:
        return who if who.also is None else None
    if who.also is not None:
        both = who.name, who.also.name
        masculine = any(name is not None and name.gender == "m" for name in both)
        return NounPhrase(pronoun=Pronoun.THEY) if masculine else None
    if who.name is not None:
        return NounPhrase(pronoun=Pronoun.SHE if who.name.gender == "f" else Pronoun.HE)
    noun = who.noun
    if noun is None or not noun.human or noun.ne_class not in ("m", "f"):
        return None
    if who.plural:
        return NounPhrase(pronoun=Pronoun.THEY) if noun.fr_gender == "m" else None
    return NounPhrase(pronoun=Pronoun.SHE if noun.ne_class == "f" else Pronoun.HE)


def _person(rng: Random) -> tuple[NounPhrase, NounPhrase]:
    """Somebody and their pronoun."""
    while True:
        who = choose.people(rng)
        again = pronoun_for(who)
        if again is not None:
            return who, again


def _action(rng: Random, who: NounPhrase, tense: Tense | None = None) -> Clause:
    """What the person does; no time phrase in front."""
    family = rng.choice((transitive, alone))
    return replace(family(rng, tense=tense, who=who), front=False)


def _mood(rng: Random, who: NounPhrase, tense: Tense) -> Clause:
    """How the person feels."""
    if rng.random() < 0.2:
        return Clause(who, predicate=rng.choice(choose.table_of_feelings()), tense=tense)
    feelings = [word for word in choose.feelings_of_people() if word.en in _MOODS]
    return Clause(who, predicate=rng.choice(feelings), tense=tense)


def because(rng: Random) -> Pair:
    """Anna is staying at home because she is sick."""
    who, again = _person(rng)
    tense = Tense.PAST if rng.random() < 0.4 else Tense.PRESENT
    action, reasons = rng.choice(_REASONS)
    first = _omission(rng, who, tense) if action == "not" else _doing(rng, who, action, tense)
    reason = rng.choice(reasons.split())
    return Pair(first, "because", Clause(again, predicate=_FEELINGS[reason], tense=tense))


def _omission(rng: Random, who: NounPhrase, tense: Tense) -> Clause:
    """Something the person is not doing or did not do."""
    while True:
        clause = _action(rng, who, tense)
        if clause.verb is not None and clause.verb.aspect == "event" and clause.frequency is None:
            if clause.simple:
                clause = replace(clause, simple=False, times=())
            return replace(clause, negative=True)


def _doing(rng: Random, who: NounPhrase, action: str, tense: Tense) -> Clause:
    """A plain action of the person: something eaten, a song sung, a day at home."""
    verb = _BY_NAME[action]
    what = choose.thing(rng, verb.objects) if verb.objects else None
    use = "past" if tense is Tense.PAST else "now"
    times = (circumstances.time(rng, use),) if rng.random() < 0.5 else ()
    where = circumstances.home() if action == "stay" else None
    return Clause(who, verb, object=what, where=where, times=times, tense=tense)


def but(rng: Random) -> Pair:
    """I like tea, but I do not like coffee; or she wants to sing, but she is tired."""
    who, again = _person(rng)
    if rng.random() < 0.4:
        first, second = liked(rng), liked(rng)
        while first.noun == second.noun:
            second = liked(rng)
        positive = Clause(who, _LIKE, object=first, simple=True)
        return Pair(positive, "but", Clause(again, _LIKE, object=second, negative=True, simple=True))
    wish = _action(rng, who, Tense.PRESENT)
    wish = replace(wish, modal=Modal.WANT, frequency=None, times=(), negative=False, simple=False)
    obstacle = _FEELINGS[rng.choice(("tired", "sick", "busy"))]
    return Pair(wish, "but", Clause(again, predicate=obstacle))


def meanwhile(rng: Random) -> Pair:
    """Paul is reading a book and Anna is sleeping."""
    tense = Tense.PAST if rng.random() < 0.4 else Tense.PRESENT
    first = _action(rng, choose.people(rng), tense)
    second = _action(rng, choose.people(rng), tense)
    while second.subject == first.subject:
        second = _action(rng, choose.people(rng), tense)
    return (
        Pair(replace(first, times=()), "and", second) if tense is Tense.PAST else Pair(first, "and", second)
    )


def same_person(rng: Random) -> Text:
    """My neighbour is sick. He is not working today."""
    who, again = _person(rng)
    first = _mood(rng, who, Tense.PRESENT) if rng.random() < 0.5 else _action(rng, who)
    second = _action(rng, again) if rng.random() < 0.7 else _mood(rng, again, Tense.PRESENT)
    return first, second


def _fixed(rng: Random, use: str) -> Phrase:
    return Phrase(rng.choice([row for row in choose.table_of("phrases") if row["use"] in (use, "both")]))


def _statement(rng: Random) -> Sentence:
    return rng.choices(tuple(STATEMENTS), tuple(STATEMENTS.values()))[0](rng)


def _fresh(rng: Random) -> Sentence:
    """A sentence that does not open with a pronoun whose owner was never named."""
    while True:
        sentence = one(rng)
        pronoun = sentence.subject.pronoun if isinstance(sentence, Clause) else None
        if pronoun not in (Pronoun.HE, Pronoun.SHE, Pronoun.THEY):
            return sentence


def text(rng: Random) -> Text:
    """One text of the grammar: a sentence, or two."""
    chance = rng.random()
    if chance < 0.70:
        return (one(rng),)
    if chance < 0.79:
        return (rng.choice((because, but, meanwhile))(rng),)
    if chance < 0.85:
        return same_person(rng)
    if chance < 0.95:
        return _statement(rng), _fresh(rng)
    if chance < 0.975:
        return _fixed(rng, "opening"), _fresh(rng)
    return one(rng), _fixed(rng, "closing")
