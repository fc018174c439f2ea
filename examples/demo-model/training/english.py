"""English, the language every other one is translated from or to."""

import re

from .lexicon import Adjective, Verb
from .syntax import (
    Age,
    Clause,
    Determiner,
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

_DOUBLING = {"swim": "swimming", "run": "running"}
_A_NOT_AN = ("university",)


def _third_person(verb: str) -> str:
    """reads, watches, studies, has."""
    if verb == "have":
        return "has"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "ch", "sh", "o")) else "s")


def _ing(verb: str) -> str:
    """reading, writing, swimming."""
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return _DOUBLING.get(verb, verb + "ing")


def _article(following: str) -> str:
    vowel = following[0] in "aeiou" and not following.startswith(_A_NOT_AN)
    return f"an {following}" if vowel else f"a {following}"


def noun_phrase(phrase: NounPhrase) -> str:
    """A noun phrase, the same as subject and as object."""
    if phrase.also is not None:
        first = NounPhrase(phrase.noun, phrase.name, phrase.pronoun, phrase.determiner)
        return f"{noun_phrase(first)} and {noun_phrase(phrase.also)}"
    if phrase.pronoun is not None:
        return phrase.pronoun.value
    if phrase.name is not None:
        return phrase.name.en
    assert phrase.noun is not None
    noun = phrase.noun.en_pl if phrase.plural else phrase.noun.en
    if phrase.adjective is not None:
        noun = f"{phrase.adjective.en} {noun}"
    match phrase.determiner:
        case Determiner.A:
            return _article(noun)
        case Determiner.BARE | Determiner.GENERIC:
            return noun
        case Determiner.THIS:
            return f"these {noun}" if phrase.plural else f"this {noun}"
        case Determiner.NUMBER:
            assert phrase.numeral is not None
            return f"{phrase.numeral.en} {noun}"
        case Determiner.MEASURE:
            assert phrase.measure is not None
            if phrase.numeral is None:
                return f"{_article(phrase.measure['en'])} {noun}"
            return f"{phrase.numeral.en} {phrase.measure['en_pl']} {noun}"
        case determiner:
            return f"{determiner.value} {noun}"


def _where(where: Where) -> str:
    if where.town is not None:
        return where.town["en_to"] if where.to else where.town["en_in"]
    assert where.phrase is not None
    if where.relation is not None:
        return f"{where.relation['en']} {noun_phrase(where.phrase)}"
    assert where.place is not None
    return f"{'to' if where.to else where.place.en_prep} {noun_phrase(where.phrase)}"


def _predicate(predicate: Predicate) -> str:
    match predicate:
        case Adjective():
            return predicate.en
        case Job(row):
            return _article(row["en"])
        case Age(years):
            return f"{years} years old"
        case Feeling(row):
            return row["en"]
        case Where():
            return _where(predicate)


def _be(subject: NounPhrase, tense: Tense) -> str:
    first = subject.pronoun is Pronoun.I
    if tense is Tense.PAST:
        return "were" if subject.is_plural else "was"
    return "am" if first else "are" if subject.is_plural else "is"


def _verb_group(clause: Clause) -> tuple[str, str]:
    """The first auxiliary, and what follows the subject in a question; "" as auxiliary needs do."""
    subject, verb = clause.subject, clause.verb
    if verb is None:
        return ("will", "be") if clause.tense is Tense.FUTURE else (_be(subject, clause.tense), "")
    singular = not subject.is_plural and subject.pronoun is not Pronoun.I
    if clause.modal is Modal.CAN:
        return "can", verb.en
    if clause.modal is Modal.MUST:
        return "must", verb.en
    if clause.modal is Modal.WANT:
        return ("does" if singular else "do"), f"want to {verb.en}"
    if clause.tense is Tense.FUTURE:
        return "will", verb.en
    if clause.tense is Tense.PAST:
        return "did", verb.en
    if clause.simple:
        return ("does" if singular else "do"), verb.en
    return _be(subject, Tense.PRESENT), _ing(verb.en)


def _finite(auxiliary: str, rest: str, verb: Verb | None) -> str:
    """Join auxiliary and verb in a positive statement, where "do" melts into the verb."""
    if auxiliary == "did":
        assert verb is not None
        return verb.en_past
    if auxiliary == "does":
        head, _, tail = rest.partition(" ")
        return f"{_third_person(head)} {tail}".strip()
    return rest if auxiliary == "do" else f"{auxiliary} {rest}".strip()


def _tail(clause: Clause) -> list[str]:
    """Everything after the verb."""
    parts = []
    if clause.verb is not None:
        parts.append(clause.verb.en_rest)
    if clause.predicate is not None:
        parts.append(_predicate(clause.predicate))
    if clause.object is not None and clause.question is not Question.WHAT:
        parts.append(noun_phrase(clause.object))
    if clause.recipient is not None:
        parts.append(f"to {noun_phrase(clause.recipient)}")
    if clause.where is not None:
        parts.append(_where(clause.where))
    return parts + [time.en for time in clause.times[1 if clause.front else 0 :]]


def clause_text(clause: Clause) -> str:
    """A clause without capital and full stop."""
    auxiliary, rest = _verb_group(clause)
    subject = noun_phrase(clause.subject)
    frequency = clause.frequency.en if clause.frequency is not None else ""
    negation = "not" if clause.negative else ""
    if clause.question is not None and clause.subject.pronoun is not Pronoun.WHO:
        asking = "" if clause.question is Question.YES_NO else clause.question.value
        words = [asking, auxiliary, subject, negation, frequency, rest]
    elif clause.negative:
        words = [subject, "cannot" if auxiliary == "can" else f"{auxiliary} not", rest]
    elif auxiliary in ("do", "does", "did"):
        words = [subject, frequency, _finite(auxiliary, rest, clause.verb)]
    else:
        words = [subject, auxiliary, frequency, rest]
    if clause.front:
        words.insert(0, clause.times[0].en)
    return " ".join(word for word in words + _tail(clause) if word)


def _finish(text: str, mark: str) -> str:
    text = " ".join(text.split())
    return text[0].upper() + text[1:] + mark


def sentence(tree: Sentence) -> str:
    """A whole sentence with its capital and punctuation."""
    match tree:
        case Clause():
            return _finish(clause_text(tree), "?" if tree.question is not None else ".")
        case Pair(first, conjunction, second):
            comma = "," if conjunction == "but" else ""
            return _finish(f"{clause_text(first)}{comma} {conjunction} {clause_text(second)}", ".")
        case Existence(thing, where, tense):
            be = _be(thing, tense)
            what = noun_phrase(thing)
            if tree.question:
                return _finish(f"{be} there {what} {_where(where)}", "?")
            return _finish(f"there {be} {'no ' if tree.negative else ''}{what} {_where(where)}", ".")
        case Weather(row, time, town, front, degrees):
            text = row["en"].replace("{n}", degrees) + (f" {_where(town)}" if town is not None else "")
            if time is not None:
                text = f"{time.en} {text[0].lower()}{text[1:]}" if front else f"{text} {time.en}"
            return _finish(text, ".")
        case Request(verb, thing, can, negative):
            what = f"{verb.en} {verb.en_rest} {noun_phrase(thing)}"
            if can:
                return _finish(f"can you {what}, please", "?")
            return _finish(f"please {'do not ' if negative else ''}{what}", ".")
        case Order(thing):
            return _finish(f"I would like {noun_phrase(thing)}, please", ".")
        case WhereIs(thing):
            return _finish(f"where {_be(thing, Tense.PRESENT)} {noun_phrase(thing)}", "?")
        case Price(thing, amount, currency):
            plural = thing.is_plural
            if currency is None:
                return _finish(f"how much {'do' if plural else 'does'} {noun_phrase(thing)} cost", "?")
            return _finish(
                f"{noun_phrase(thing)} {'cost' if plural else 'costs'} {amount} {currency['en']}", "."
            )
        case WhatTime(subject, verb):
            do = "do" if subject.is_plural else "does"
            return _finish(f"what time {do} {noun_phrase(subject)} {verb.en}", "?")
        case Phrase(row):
            return row["en"]
