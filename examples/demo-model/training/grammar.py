"""The grammar: draws what to say, as trees that every language can render.

`text(rng)` is the whole grammar; the functions above it are its sentence families.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from . import choose, circumstances
from .choose import tags
from .clauses import VERBAL, transitive
from .lexicon import verbs
from .syntax import (
    Adverb,
    Age,
    Clause,
    Determiner,
    Existence,
    Feeling,
    Job,
    NounPhrase,
    Order,
    Predicate,
    Price,
    Pronoun,
    Question,
    Request,
    Sentence,
    Tense,
    Weather,
    WhatTime,
    WhereIs,
)

_BY_NAME = {verb.en: verb for verb in verbs() if verb.objects}
_REQUESTS = "open close read buy bring clean wash repair look pay carry translate explain feed call help wait"
_REQUESTED = tuple(_BY_NAME[name] for name in _REQUESTS.split())
_WHATS = "read write buy eat drink cook look find forget bring order see"
_WHAT_VERBS = tuple(_BY_NAME[name] for name in _WHATS.split())


def verbal(rng: Random, is_question: bool = False) -> Clause:
    """A clause with a verb, of any kind."""
    family = rng.choices(tuple(VERBAL), tuple(VERBAL.values()))[0]
    return family(rng, is_question)


def _when(rng: Random, is_question: bool) -> tuple[Tense, tuple[Adverb, ...], bool]:
    """Tense, time and fronting of a clause with "to be"."""
    tense = rng.choices((Tense.PRESENT, Tense.PAST, Tense.FUTURE), (0.6, 0.25, 0.15))[0]
    likely = 0.3 if tense is Tense.PRESENT else 0.7
    if rng.random() >= likely:
        return tense, (), False
    when = circumstances.time(rng, "state" if tense is Tense.PRESENT else circumstances.TIME_USE[tense])
    return tense, (when,), not is_question and rng.random() < 0.25


def being(rng: Random, is_question: bool = False) -> Clause:
    """How a thing or a person is: "The soup is too hot", "My sister was tired yesterday"."""
    tense, times, front = _when(rng, is_question)
    predicate: Predicate | None
    if rng.random() < 0.45:
        who = choose.people(rng, is_question)
        pool = choose.feelings_of_people()
        predicate = rng.choice(choose.table_of_feelings()) if rng.random() < 0.15 else rng.choice(pool)
        if isinstance(predicate, Feeling) and rng.random() < 0.6:
            tense, times, front = Tense.PRESENT, (), False
    else:
        predicate = choose.quality(rng)
        who = choose.described_by(rng, predicate)
        if predicate.use == "both":
            tense, times, front = (Tense.PAST if rng.random() < 0.15 else Tense.PRESENT), (), False
    negative = not is_question and rng.random() < 0.18
    mode = Question.YES_NO if is_question else None
    return Clause(
        who, predicate=predicate, times=times, front=front, tense=tense, negative=negative, question=mode
    )


def being_somewhere(rng: Random, is_question: bool = False) -> Clause:
    """Where a person or a thing is: "The cat is under the table"."""
    mode = Question.YES_NO if is_question else None
    negative = not is_question and rng.random() < 0.12
    if rng.random() < 0.55:
        what, where = circumstances.relation(rng)
        return Clause(what, predicate=where, negative=negative, question=mode)
    tense, times, front = _when(rng, is_question)
    chance = rng.random()
    place = circumstances.place(rng, circumstances.ANYWHERE)
    where = circumstances.home() if chance < 0.2 else circumstances.town(rng) if chance < 0.4 else place
    who = choose.people(rng, is_question)
    return Clause(
        who, predicate=where, times=times, front=front, tense=tense, negative=negative, question=mode
    )


def being_something(rng: Random, is_question: bool = False) -> Clause:
    """What a person does for a living, or how old they are."""
    mode = Question.YES_NO if is_question else None
    if rng.random() < 0.4:
        young = choose.relative(rng, "=son =daughter =brother =sister", is_question, 0.0)
        who, oldest = (young, 29) if rng.random() < 0.6 else (choose.name(rng), 99)
        return Clause(who, predicate=Age(str(rng.randint(2, oldest))), question=mode)
    chance = rng.random()
    if chance < 0.3:
        who = NounPhrase(pronoun=rng.choice((Pronoun.HE, Pronoun.SHE)))
    elif chance < 0.65:
        who = choose.relative(
            rng, "=brother =sister =son =daughter =mother =father =uncle =aunt", is_question, 0.0
        )
    else:
        who = choose.name(rng)
    negative = not is_question and rng.random() < 0.2
    return Clause(
        who, predicate=Job(rng.choice(choose.table_of("professions"))), negative=negative, question=mode
    )


def existing(rng: Random) -> Existence:
    """There is something somewhere."""
    kinds = tags(rng.choice(("food drink", "small", "person animal", "landmark nature", "furniture")))
    activity = {
        "food": "inside",
        "small": "inside",
        "person": "outside meet",
        "landmark": "live",
        "furniture": "inside",
    }
    where = circumstances.place(rng, tags(next(activity[kind] for kind in activity if kind in kinds)))
    while True:
        what = choose.thing(rng, kinds, described=0.2)
        if not what.definite and what.noun is not where.place.noun:  # type: ignore[union-attr]
            break
    negative = (what.determiner is Determiner.BARE) and rng.random() < 0.4
    tense = Tense.PAST if rng.random() < 0.2 else Tense.PRESENT
    return Existence(what, where, tense, negative, not negative and rng.random() < 0.25)


def weather(rng: Random) -> Weather:
    """It is raining in Paris today."""
    row = rng.choice(choose.table_of("weather"))
    time = None
    if row["tense"] != "now":
        time = circumstances.time(rng, row["tense"])
    elif rng.random() < 0.45:
        time = circumstances.time(rng, "state")
    town = circumstances.town(rng) if rng.random() < 0.6 else None
    return Weather(row, time, town, time is not None and rng.random() < 0.35, str(rng.randint(2, 39)))


def requesting(rng: Random) -> Request:
    """Please open the window."""
    verb = rng.choice(_REQUESTED)
    what = choose.thing(rng, verb.objects, definite=True, described=0.12)
    can = rng.random() < 0.5
    return Request(verb, what, can, not can and rng.random() < 0.15)


def ordering(rng: Random) -> Order:
    """I would like two cups of tea, please."""
    while True:
        what = choose.thing(rng, tags("dish drink fresh =ticket =room =map =umbrella"), described=0.15)
        if not what.definite and what.determiner is not Determiner.MANY:
            return Order(what)


def asking_where(rng: Random) -> WhereIs:
    """Where is the station?"""
    chance = rng.random()
    if chance < 0.4:
        return WhereIs(choose.thing(rng, tags("landmark hours"), definite=True, described=0.05))
    if chance < 0.75:
        return WhereIs(choose.thing(rng, tags("asked small pet"), definite=True, described=0.1))
    if chance < 0.85:
        return WhereIs(choose.name(rng))
    return WhereIs(choose.relative(rng, is_question=True))


def pricing(rng: Random) -> Price:
    """The umbrella costs 12 euros; or the question."""
    what = choose.thing(rng, tags("priced fresh dish"), definite=True)
    if rng.random() < 0.35:
        return Price(what)
    assert what.noun is not None
    highest = 20 if what.noun.tags & {"food", "drink", "fresh", "mass"} else rng.choice((99, 999, 9999))
    amount = "%d" if rng.random() < choose.PLACEHOLDER_SHARE else str(rng.randint(2, highest))
    return Price(what, amount, rng.choice(choose.table_of("currencies")))


def asking_when(rng: Random) -> WhatTime:
    """What time does the train leave?"""
    verb = rng.choice(verbs("schedules"))
    plural = rng.random() < 0.15
    return WhatTime(NounPhrase(noun=rng.choice(choose.nouns_like(verb.subjects)), plural=plural), verb)


def asking(rng: Random) -> Clause:
    """Why, when, where, what, who."""
    kind = rng.random()
    if kind < 0.25:
        who = NounPhrase(pronoun=Pronoun.WHO)
        while True:
            clause = transitive(rng, True, Tense.PAST, who)
            if clause.verb is not None and clause.verb.en not in ("lose", "miss"):
                return clause
    if kind < 0.5:
        verb = rng.choice(_WHAT_VERBS)
        tense = Tense.PRESENT if verb.aspect == "event" and rng.random() < 0.4 else Tense.PAST
        times = (circumstances.time(rng, "past"),) if tense is Tense.PAST and rng.random() < 0.4 else ()
        what = NounPhrase(noun=choose.nouns_like(verb.objects)[0])
        who = choose.people(rng, True)
        return Clause(who, verb, object=what, times=times, tense=tense, question=Question.WHAT)
    mode = rng.choice((Question.WHY, Question.WHEN, Question.WHERE))
    while True:
        clause = verbal(rng, True)
        if _askable(clause, mode):
            return replace(
                clause,
                question=mode,
                times=() if mode is Question.WHEN else clause.times,
                where=None if mode is Question.WHERE else clause.where,
            )


def _askable(clause: Clause, mode: Question) -> bool:
    """Whether the clause leaves open what the question is about."""
    if clause.verb is None or clause.frequency is not None:
        return False
    if mode is Question.WHY:
        return clause.verb.aspect in ("event", "near", "far", "need", "like")
    if mode is Question.WHEN:
        return clause.tense is not Tense.PRESENT and clause.modal is None
    if clause.verb.aspect == "located":
        return clause.where is not None
    return (
        clause.where is None
        and clause.object is not None
        and clause.verb.en in ("buy", "find", "see", "meet")
    )


STATEMENTS: dict[Callable[[Random], Sentence], float] = {
    verbal: 24.5,
    being: 8,
    being_somewhere: 5,
    being_something: 2.5,
    existing: 3,
    weather: 2.5,
    pricing: 2.5,
    ordering: 1.5,
}
QUESTIONS: dict[Callable[[Random], Sentence], float] = {
    lambda rng: verbal(rng, True): 5,
    lambda rng: being(rng, True): 2,
    lambda rng: being_somewhere(rng, True): 1,
    lambda rng: being_something(rng, True): 0.7,
    requesting: 3,
    asking_where: 1.5,
    asking_when: 1,
    asking: 4.5,
}


def one(rng: Random) -> Sentence:
    """One sentence of any family."""
    families = STATEMENTS | QUESTIONS
    return rng.choices(tuple(families), tuple(families.values()))[0](rng)
