"""German: verb second, verb last after weil, the order of the middle field, nicht and kein.

The middle field of the grammar: subject (when something else stands first), recipient, definite
object, time, frequency, nicht, place, indefinite object, fixed companions of the verb. A definite
object stands after the time instead when neither nicht nor a place would follow it.
"""

import re

from .german_nouns import noun_phrase
from .german_verbs import conjugation, person
from .lexicon import Adjective
from .syntax import (
    UNCHANGED_BY_NEGATION,
    Age,
    Clause,
    Existence,
    Feeling,
    Job,
    Modal,
    NounPhrase,
    Order,
    Pair,
    Phrase,
    Predicate,
    Price,
    Pronoun,
    Question,
    Request,
    Sentence,
    Tense,
    Weather,
    WhatTime,
    Where,
    WhereIs,
)

_MODALS = {Modal.CAN: "können", Modal.WANT: "möchten", Modal.MUST: "müssen"}
_QUESTION_WORDS = {
    Question.YES_NO: "",
    Question.WHY: "warum",
    Question.WHEN: "wann",
    Question.WHERE: "wo",
    Question.WHAT: "was",
}
_CONTRACTIONS = {
    r"\bin dem ": "im ",
    r"\bin das ": "ins ",
    r"\ban dem ": "am ",
    r"\ban das ": "ans ",
    r"\bbei dem ": "beim ",
    r"\bvon dem ": "vom ",
    r"\bzu dem ": "zum ",
    r"\bzu der ": "zur ",
}


def _contract(text: str) -> str:
    text = " ".join(text.split())
    for pattern, joined in _CONTRACTIONS.items():
        text = re.sub(pattern, joined, text)
    return text


def _where(where: Where) -> str:
    if where.town is not None:
        return where.town["de_to"] if where.to else where.town["de_in"]
    assert where.phrase is not None
    if where.relation is not None:
        return f"{where.relation['de']} {noun_phrase(where.phrase, 'dat')}"
    assert where.place is not None
    if where.to:
        case = "dat" if where.place.de_to == "zu" else "acc"
        return f"{where.place.de_to} {noun_phrase(where.phrase, case)}"
    return f"{where.place.de_prep} {noun_phrase(where.phrase, 'dat')}"


def _female(subject: NounPhrase) -> bool:
    if subject.noun is not None:
        return subject.noun.ne_class in ("f", "hf")
    return subject.pronoun is Pronoun.SHE or (subject.name is not None and subject.name.gender == "f")


def _predicate(predicate: Predicate, subject: NounPhrase, negative: bool) -> list[str]:
    """A predicate with its negation."""
    negation = "nicht" if negative else ""
    match predicate:
        case Adjective():
            return [negation, predicate.de]
        case Job(row):
            job = row["de_f" if _female(subject) else "de_m"]
            return [("keine" if _female(subject) else "kein") if negative else "", job]
        case Age(years):
            return [negation, f"{years} Jahre alt"]
        case Feeling(row):
            return ["keinen" if negative else "", row["de"]]
        case Where():
            return [negation, _where(predicate)]


def _verbs(clause: Clause) -> tuple[str, list[str]]:
    """The finite verb and what stands at the end of the clause."""
    who = person(clause.subject)
    if clause.verb is None:
        verb = conjugation("haben" if isinstance(clause.predicate, Feeling) else "sein")
    else:
        verb = conjugation(clause.verb.de)
    if clause.modal is not None:
        return conjugation(_MODALS[clause.modal]).present[who], [verb.infinitive]
    if clause.tense is Tense.FUTURE:
        return conjugation("werden").present[who], [verb.infinitive]
    if clause.tense is Tense.PAST:
        if verb.infinitive in ("sein", "haben"):
            return verb.past(who), []
        return conjugation(verb.auxiliary).present[who], [verb.participle]
    return verb.present[who], [verb.prefix]


def _object(clause: Clause, negated: bool) -> str:
    if clause.object is None or clause.question is Question.WHAT:
        return ""
    assert clause.verb is not None
    return f"{clause.verb.de_prep} {noun_phrase(clause.object, clause.verb.de_case, negated)}".strip()


def _middle(clause: Clause) -> list[str]:
    """The middle field without the subject."""
    adverbs = sorted(clause.times[1 if clause.front else 0 :], key=lambda time: time.manner)
    times = [time.de for time in adverbs]
    times.append(clause.frequency.de if clause.frequency is not None else "")
    place = _where(clause.where) if clause.where is not None else ""
    if clause.predicate is not None:
        return [*times, place, *_predicate(clause.predicate, clause.subject, clause.negative)]
    assert clause.verb is not None
    nicht = "nicht" if clause.negative else ""
    if clause.object is None:
        if clause.negative and clause.verb.de_rest_negative:
            return [*times, place, clause.verb.de_rest_negative]
        return [*times, nicht, place, clause.verb.de_rest]
    kein = clause.negative and not clause.object.definite and not clause.verb.de_prep
    thing = _object(clause, kein)
    recipient = noun_phrase(clause.recipient, "dat") if clause.recipient is not None else ""
    if recipient:
        return [recipient, *times, thing, "" if kein else nicht]
    if kein or not clause.object.definite:
        return [*times, place, "" if kein else nicht, thing]
    if clause.verb.de_prep:
        return [*times, nicht, place, thing]
    if nicht or place:
        return [thing, *times, nicht, place]
    return [*times, thing]


def _clause(clause: Clause, last: bool) -> str:
    """A clause; `last` puts the finite verb at the end, as after weil."""
    finite, tail = _verbs(clause)
    subject = noun_phrase(clause.subject)
    middle = _middle(clause)
    if last:
        simple = clause.tense is Tense.PRESENT and clause.modal is None
        end = "".join([*tail, finite]) if simple else " ".join([*tail, finite])
        return _contract(" ".join([subject, *middle, end]))
    if clause.question is not None and clause.subject.pronoun is not Pronoun.WHO:
        words = [_QUESTION_WORDS[clause.question], finite, subject]
    elif clause.front:
        words = [clause.times[0].de, finite, subject]
    else:
        words = [subject, finite]
    return _contract(" ".join([*words, *middle, *tail]))


def _finish(text: str, mark: str) -> str:
    text = _contract(text)
    return text[0].upper() + text[1:] + mark


def _pair(tree: Pair) -> str:
    first, second = tree.first, tree.second
    if tree.conjunction == "because":
        return f"{_clause(first, False)}, weil {_clause(second, True)}"
    joint = ", aber" if tree.conjunction == "but" else " und"
    return f"{_clause(first, False)}{joint} {_clause(second, False)}"


def _request(tree: Request) -> str:
    verb = tree.verb
    parts = conjugation(verb.de)
    thing = f"{verb.de_prep} {noun_phrase(tree.object, verb.de_case)}"
    if tree.can:
        return _finish(f"können Sie bitte {thing} {parts.infinitive}", "?")
    finite = parts.present["wir"]
    if tree.negative:
        order = f"bitte nicht {thing}" if verb.de_prep else f"{thing} bitte nicht"
        return _finish(f"{finite} Sie {order} {parts.prefix}", ".")
    return _finish(f"{finite} Sie bitte {thing} {parts.prefix}", ".")


def _weather(tree: Weather) -> str:
    row = tree.row
    subject, verb = row["de_subject"], row["de_finite"]
    time = tree.time.de if tree.time is not None else ""
    town = _where(tree.town) if tree.town is not None else ""
    rest = row["de_rest"].replace("{n}", tree.degrees)
    if tree.front:
        return _finish(f"{time} {verb} {subject} {town} {rest}", ".")
    if town:
        return _finish(f"{town} {verb} {subject} {time} {rest}", ".")
    return _finish(f"{subject} {verb} {time} {rest}", ".")


def sentence(tree: Sentence) -> str:
    """A whole sentence with its capital and punctuation."""
    match tree:
        case Clause():
            return _finish(_clause(tree, False), "?" if tree.question is not None else ".")
        case Pair():
            return _finish(_pair(tree), ".")
        case Existence(thing, where, tense, negative, question):
            verb = "gab" if tense is Tense.PAST else "gibt"
            negated = negative and thing.determiner not in UNCHANGED_BY_NEGATION
            what = f"{noun_phrase(thing, 'acc', negated)} {_where(where)}"
            return _finish(f"{verb} es {what}" if question else f"es {verb} {what}", "?" if question else ".")
        case Weather():
            return _weather(tree)
        case Request():
            return _request(tree)
        case Order(thing):
            return _finish(f"ich möchte {noun_phrase(thing, 'acc')}, bitte", ".")
        case WhereIs(thing):
            return _finish(f"wo {'sind' if thing.is_plural else 'ist'} {noun_phrase(thing)}", "?")
        case Price(thing, amount, currency):
            cost = "kosten" if thing.is_plural else "kostet"
            if currency is None:
                return _finish(f"wie viel {cost} {noun_phrase(thing)}", "?")
            return _finish(f"{noun_phrase(thing)} {cost} {amount} {currency['de']}", ".")
        case WhatTime(subject, verb):
            parts = conjugation(verb.de)
            finite = parts.present[person(subject)]
            return _finish(f"um wie viel Uhr {finite} {noun_phrase(subject)} {parts.prefix}", "?")
        case Phrase(row):
            return row["de"]
