"""Nepali: verb last, -ले in the past, experiencers in -लाई, possession with सँग."""

from dataclasses import replace

from .lexicon import Adjective, Row
from .nepali_nouns import adjective, agreement, genitive, marks_plural, noun_phrase, where
from .nepali_verbs import (
    CHHA,
    CHHA_NOT,
    HO,
    HO_NOT,
    THIYO,
    THIYO_NOT,
    command,
    form_of,
    future,
    infinitive,
    past,
    present,
    progressive,
)
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
    Question,
    Request,
    Sentence,
    Tense,
    Weather,
    WhatTime,
    WhereIs,
)

_CONJUNCTIONS = {"and": " र ", "but": ", तर ", "because": " किनभने "}
_QUESTION_WORDS = {
    Question.WHY: "किन",
    Question.WHEN: "कहिले",
    Question.WHERE: "कहाँ",
    Question.WHAT: "के",
}


def _is_negative(clause: Clause) -> bool:
    return clause.negative or (clause.frequency is not None and clause.frequency.negative)


def _verb(clause: Clause, verb: str, form: str) -> str:
    """The verb in its tense, or as infinitive before सक्नु, चाहनु, पर्नु."""
    negative = _is_negative(clause)
    if clause.modal is Modal.CAN:
        return f"{infinitive(verb)} {present('सक्नु', form, negative)}"
    if clause.modal is Modal.WANT:
        return f"{infinitive(verb)} {present('चाहनु', form, negative)}"
    if clause.modal is Modal.MUST:
        return f"{verb}पर्छ"
    if clause.tense is Tense.FUTURE:
        return future(verb, form, negative)
    if clause.tense is Tense.PAST:
        return past(verb, form, negative)
    return (present if clause.simple else progressive)(verb, form, negative)


def _be(form: str, tense: Tense, negative: bool, identity: bool = False) -> str:
    """छ, or हो when one thing is said to be another."""
    if tense is Tense.FUTURE:
        return future("हुनु", form, negative)
    if tense is Tense.PAST:
        return (THIYO_NOT if negative else THIYO)[form]
    if identity:
        return (HO_NOT if negative else HO)[form]
    return (CHHA_NOT if negative else CHHA)[form]


def _predicate(clause: Clause, predicate: Predicate) -> str:
    """Predicate and copula."""
    form, vowel = form_of(clause.subject), agreement(clause.subject)
    copula = _be(form, clause.tense, _is_negative(clause), isinstance(predicate, Job))
    match predicate:
        case Adjective():
            return f"{adjective(predicate, vowel)} {copula}"
        case Job(row):
            return f"{row['ne']} {copula}"
        case Age(years):
            return f"{years} वर्षक{vowel} {copula}"
        case Feeling(row):
            felt = _be("3s", clause.tense, _is_negative(clause))
            return f"{row['ne']} लागेको {felt}"
        case _:
            return f"{where(predicate)} {copula}"


def _object(clause: Clause, thing: NounPhrase) -> str:
    assert clause.verb is not None
    mark = clause.verb.ne_mark
    if not mark and thing.human and clause.verb.aspect != "like":
        mark = "लाई"
    negated = _is_negative(clause)
    if mark == "लाई" and not thing.human and not thing.definite:
        mark = "लाई" if thing.determiner is Determiner.A else ""
    return noun_phrase(thing, mark, negated)


def _owning(clause: Clause, thing: NounPhrase) -> tuple[str, str]:
    """Having: relatives by genitive and with agreement, other things with सँग."""
    negative = _is_negative(clause)
    verb = _be(form_of(thing), clause.tense, negative)
    owned = noun_phrase(thing, "", negative)
    if thing.human:
        return genitive(clause.subject, agreement(thing)), f"{owned} {verb}"
    return noun_phrase(clause.subject, "सँग"), f"{owned} {verb}"


def _core(clause: Clause) -> tuple[str, str]:
    """The subject with its postposition; and object and verb."""
    verb = clause.verb
    if verb is None:
        assert clause.predicate is not None
        dative = "लाई" if isinstance(clause.predicate, Feeling) else ""
        return noun_phrase(clause.subject, dative), _predicate(clause, clause.predicate)
    if verb.aspect == "own":
        assert clause.object is not None
        return _owning(clause, clause.object)
    thing = ""
    if clause.question is Question.WHAT:
        thing = "के"
    elif clause.object is not None:
        thing = _object(clause, clause.object)
    if verb.aspect in ("like", "need"):
        assert clause.object is not None
        many = verb.aspect == "like" and marks_plural(clause.object)
        feeling = present(verb.ne, "3p" if many else "3s", _is_negative(clause))
        return noun_phrase(clause.subject, "लाई"), f"{thing} {feeling}"
    past_agent = clause.tense is Tense.PAST and verb.ne_ergative and clause.modal is None
    agent = "ले" if past_agent or clause.modal is Modal.MUST else ""
    return noun_phrase(clause.subject, agent), f"{thing} {_verb(clause, verb.ne, form_of(clause.subject))}"


def clause_text(clause: Clause) -> str:
    """A clause without full stop."""
    subject, core = _core(clause)
    times = [time.ne for time in sorted(clause.times, key=lambda time: time.manner)]
    words = [times.pop(0) if clause.front else "", subject, *times]
    if clause.question is Question.YES_NO and "कसले" not in subject:
        words.insert(0, "के")
    if clause.question in (Question.WHY, Question.WHEN, Question.WHERE):
        words.append(_QUESTION_WORDS[clause.question])
    if clause.frequency is not None:
        words.append(clause.frequency.ne)
    if clause.where is not None:
        words.append(where(clause.where))
    if clause.recipient is not None:
        words.append(noun_phrase(clause.recipient, "लाई"))
    return " ".join([*words, core])


def _finish(text: str, mark: str = "।") -> str:
    return " ".join(text.split()) + mark


def _weather(row: Row, tree: Weather) -> str:
    time = tree.time.ne if tree.time is not None else ""
    town = where(tree.town) if tree.town is not None else ""
    return _finish(f"{time} {town} {row['ne'].replace('{n}', tree.degrees)}")


def _request(tree: Request) -> str:
    verb = tree.verb
    mark = verb.ne_mark or ("लाई" if tree.object.human else "")
    thing = noun_phrase(tree.object, mark)
    if tree.can:
        return _finish(f"के तपाईं {thing} {infinitive(verb.ne)} सक्नुहुन्छ", "?")
    return _finish(f"कृपया {thing} {command(verb.ne, tree.negative)}")


def sentence(tree: Sentence) -> str:
    """A whole sentence with its punctuation."""
    match tree:
        case Clause():
            return _finish(clause_text(tree), "?" if tree.question is not None else "।")
        case Pair(first, conjunction, second):
            return _finish(clause_text(first) + _CONJUNCTIONS[conjunction] + clause_text(second))
        case Existence(thing, place, tense, negative, question):
            verb = _be(form_of(thing), tense, negative)
            if thing.determiner is Determiner.BARE:
                thing = replace(thing, determiner=Determiner.THE)
            text = f"{where(place)} {noun_phrase(thing, '', negative)} {verb}"
            return _finish(f"के {text}", "?") if question else _finish(text)
        case Weather(row):
            return _weather(row, tree)
        case Request():
            return _request(tree)
        case Order(thing):
            return _finish(f"कृपया मलाई {noun_phrase(thing)} दिनुहोस्")
        case WhereIs(thing):
            return _finish(f"{noun_phrase(thing)} कहाँ {CHHA[form_of(thing)]}", "?")
        case Price(thing, amount, currency):
            price = f"{noun_phrase(thing, 'को')} मूल्य"
            if currency is None:
                return _finish(f"{price} कति हो", "?")
            return _finish(f"{price} {amount} {currency['ne']} हो")
        case WhatTime(subject, verb):
            return _finish(f"{noun_phrase(subject)} कति बजे {present(verb.ne, form_of(subject), False)}", "?")
        case Phrase(row):
            return row["ne"]
