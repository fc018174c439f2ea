"""French: gender, articles and the partitive, elision, ne … pas, est-ce que and inversion.

`vous` questions invert, all others use est-ce que. A plain space stands before `?` and `!`.
"""

import re

from .french_verbs import Conjugation, conjugation, person
from .lexicon import Adjective, Noun
from .syntax import (
    POSSESSIVES,
    UNCHANGED_BY_NEGATION,
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

_VOWEL = r"[aeiuyàâéèêëîïôûœ]|o(?!nze)|h(?!uit|ari)"
_PRONOUNS = {
    Pronoun.I: "je",
    Pronoun.WE: "nous",
    Pronoun.HE: "il",
    Pronoun.SHE: "elle",
    Pronoun.THEY: "ils",
    Pronoun.YOU: "vous",
    Pronoun.WHO: "qui",
}
_BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}
_POSSESSIVES = {
    Determiner.MY: ("mon", "ma", "mes"),
    Determiner.OUR: ("notre", "notre", "nos"),
    Determiner.YOUR: ("votre", "votre", "vos"),
}
_MODALS = {Modal.CAN: "pouvoir", Modal.WANT: "vouloir", Modal.MUST: "devoir"}
_CONJUNCTIONS = {"and": " et ", "but": ", mais ", "because": " parce que "}
_CONTRACTIONS = {"à le ": "au ", "à les ": "aux ", "de le ": "du ", "de les ": "des "}


def _vowel(text: str) -> bool:
    return re.match(_VOWEL, text, re.IGNORECASE) is not None


def _smooth(text: str) -> str:
    """Elide (l'eau, j'ai, n'a) and contract (au, du, aux, des)."""
    text = " ".join(text.split())
    text = re.sub(
        rf"\b(je|ne|le|la|de|que) (?={_VOWEL})", lambda m: m[1][:-1] + "'", text, flags=re.IGNORECASE
    )
    for separate, joined in _CONTRACTIONS.items():
        text = re.sub(rf"\b{separate}", joined, text)
    return text


def _adjective(adjective: Adjective, feminine: bool, plural: bool) -> str:
    form = adjective.fr_f if feminine else adjective.fr
    if not plural or " " in form or "'" in form or form.endswith(("s", "x")):
        return form
    return form + ("x" if form.endswith("eau") else "s")


def _described(noun: Noun, adjective: Adjective | None, plural: bool) -> str:
    """The noun with its adjective on the right side."""
    word = noun.fr_pl if plural else noun.fr
    if adjective is None:
        return word
    form = _adjective(adjective, noun.fr_gender == "f", plural)
    if adjective.fr_position == "after":
        return f"{word} {form}"
    if not plural and _vowel(word):
        form = _BEFORE_VOWEL.get(form, form)
    return f"{form} {word}"


def noun_phrase(phrase: NounPhrase, negated: bool = False, after_de: bool = False) -> str:
    """A noun phrase; `negated` turns un, du, des into de; `after_de` drops du and des after "de"."""
    if phrase.also is not None:
        first = NounPhrase(phrase.noun, phrase.name, phrase.pronoun, phrase.determiner)
        return f"{noun_phrase(first)} et {noun_phrase(phrase.also)}"
    if phrase.pronoun is not None:
        return _PRONOUNS[phrase.pronoun]
    if phrase.name is not None:
        return phrase.name.en
    noun, plural = phrase.noun, phrase.plural
    assert noun is not None
    feminine = noun.fr_gender == "f"
    body = _described(noun, phrase.adjective, plural)
    determiner = phrase.determiner
    if negated and determiner in (Determiner.A, Determiner.BARE):
        return f"de {body}"
    if determiner in (Determiner.THE, Determiner.GENERIC):
        return ("les " if plural else "la " if feminine else "le ") + body
    if determiner is Determiner.A:
        return ("une " if feminine else "un ") + body
    if determiner is Determiner.BARE:
        if after_de:
            return body
        if plural:
            preposed = phrase.adjective is not None and phrase.adjective.fr_position == "before"
            return ("de " if preposed else "des ") + body
        return ("de la " if feminine else "de le ") + body
    if determiner is Determiner.THIS:
        if plural:
            return f"ces {body}"
        return ("cette " if feminine else "cet " if _vowel(body) else "ce ") + body
    if determiner in POSSESSIVES:
        masculine_form, feminine_form, plural_form = _POSSESSIVES[determiner]
        singular = feminine_form if feminine and not _vowel(body) else masculine_form
        return f"{plural_form if plural else singular} {body}"
    if determiner is Determiner.MANY:
        return f"beaucoup de {body}"
    assert determiner in UNCHANGED_BY_NEGATION
    if phrase.measure is None:
        assert phrase.numeral is not None
        return f"{phrase.numeral.fr} {body}"
    if phrase.numeral is not None:
        head, _, of = phrase.measure["fr"].partition(" ")
        mark = "x" if head.endswith("eau") else "s"
        return f"{phrase.numeral.fr} {head}{mark} {of} {body}"
    return ("une " if phrase.measure["fr_gender"] == "f" else "un ") + f"{phrase.measure['fr']} {body}"


def _feminine(phrase: NounPhrase) -> bool:
    if phrase.also is not None:
        first = NounPhrase(phrase.noun, phrase.name, phrase.pronoun, phrase.determiner)
        return _feminine(first) and _feminine(phrase.also)
    if phrase.noun is not None:
        return phrase.noun.fr_gender == "f"
    return phrase.pronoun is Pronoun.SHE or (phrase.name is not None and phrase.name.gender == "f")


def _agree(form: str, subject: NounPhrase) -> str:
    """A participle after être; vous counts as one man."""
    plural = subject.is_plural and subject.pronoun is not Pronoun.YOU
    return form + ("e" if _feminine(subject) else "") + ("s" if plural else "")


def _where(where: Where) -> str:
    if where.town is not None:
        return where.town["fr"]
    assert where.phrase is not None
    if where.relation is not None:
        return f"{where.relation['fr']} {noun_phrase(where.phrase)}"
    assert where.place is not None
    inside = where.phrase.determiner is Determiner.A and not where.to and where.place.fr_prep == "à"
    preposition = "à" if where.to else "dans" if inside else where.place.fr_prep
    return f"{preposition} {noun_phrase(where.phrase)}"


def _predicate(predicate: Predicate, subject: NounPhrase) -> str:
    match predicate:
        case Adjective():
            plural = subject.is_plural and subject.pronoun is not Pronoun.YOU
            return _adjective(predicate, _feminine(subject), plural)
        case Job(row):
            return row["fr_f" if _feminine(subject) else "fr_m"]
        case Age(years):
            return f"{years} ans"
        case Feeling(row):
            return row["fr"]
        case Where():
            return _where(predicate)


def _parts(clause: Clause) -> tuple[str, str]:
    """The finite verb, and the participle or infinitive that follows it."""
    who = person(clause.subject)
    if clause.verb is None:
        verb = conjugation("avoir" if isinstance(clause.predicate, Age | Feeling) else "être")
    else:
        verb = conjugation(clause.verb.fr)
    if clause.modal is not None:
        return conjugation(_MODALS[clause.modal]).present[who], verb.infinitive
    if clause.tense is Tense.FUTURE:
        return verb.future(who), ""
    if clause.tense is Tense.PAST:
        return _past(verb, clause, who)
    return verb.present[who], ""


def _past(verb: Conjugation, clause: Clause, who: str) -> tuple[str, str]:
    """The compound past, but the imperfect for states (was, had)."""
    if verb.infinitive in ("être", "avoir"):
        return verb.imperfect(who), ""
    auxiliary = conjugation(verb.auxiliary).present[who]
    return auxiliary, _agree(verb.participle, clause.subject) if verb.auxiliary == "être" else verb.participle


def _rest(clause: Clause) -> list[str]:
    """Everything after the verb group."""
    never = clause.frequency is not None and clause.frequency.negative
    negated = clause.negative or never
    words = []
    verb = clause.verb
    if verb is not None:
        words.append(verb.fr_rest_negative if negated else verb.fr_rest)
    if clause.predicate is not None:
        words.append(_predicate(clause.predicate, clause.subject))
    if clause.object is not None and clause.question is not Question.WHAT:
        assert verb is not None
        plain = negated and not verb.fr_prep
        words += [verb.fr_prep, noun_phrase(clause.object, plain, verb.fr_prep == "de")]
    if clause.recipient is not None:
        words.append(f"à {noun_phrase(clause.recipient)}")
    if clause.where is not None:
        words.append(_where(clause.where))
    return words + [time.fr for time in clause.times[1 if clause.front else 0 :]]


_QUESTION_WORDS = {Question.WHY: "pourquoi", Question.WHEN: "quand", Question.WHERE: "où"}


def clause_text(clause: Clause) -> str:
    """A clause without capital and full stop."""
    finite, second = _parts(clause)
    subject = noun_phrase(clause.subject)
    frequency = clause.frequency.fr if clause.frequency is not None else ""
    never = clause.frequency is not None and clause.frequency.negative
    ne = "ne" if clause.negative or never else ""
    pas = "pas" if clause.negative else ""
    if clause.question is not None and clause.subject.pronoun is Pronoun.YOU:
        asking = "que" if clause.question is Question.WHAT else _QUESTION_WORDS.get(clause.question, "")
        words = [asking, f"{finite}-vous", frequency, second]
    else:
        words = [subject, ne, finite, pas, frequency, second]
        if clause.question is Question.WHAT:
            words.insert(0, "qu'est-ce que")
        elif clause.question is not None and clause.subject.pronoun is not Pronoun.WHO:
            words.insert(0, f"{_QUESTION_WORDS.get(clause.question, '')} est-ce que")
    if clause.front:
        words.insert(0, f"{clause.times[0].fr},")
    return _smooth(" ".join(words + _rest(clause)))


def _finish(text: str, mark: str) -> str:
    text = _smooth(text)
    return text[0].upper() + text[1:] + mark


def _request(tree: Request) -> str:
    verb = tree.verb
    what = f"{verb.fr_rest} {verb.fr_prep} {noun_phrase(tree.object, tree.negative)}"
    if tree.can:
        return _finish(f"pouvez-vous {verb.fr} {what}, s'il vous plaît", " ?")
    form = conjugation(verb.fr).present["vous"]
    form = f"ne {form} pas" if tree.negative else form
    return _finish(f"{form} {what}, s'il vous plaît", ".")


def sentence(tree: Sentence) -> str:
    """A whole sentence with its capital and punctuation."""
    match tree:
        case Clause():
            return _finish(clause_text(tree), " ?" if tree.question is not None else ".")
        case Pair(first, conjunction, second):
            return _finish(clause_text(first) + _CONJUNCTIONS[conjunction] + clause_text(second), ".")
        case Existence(thing, where, tense, negative, question):
            there = "y avait" if tense is Tense.PAST else "y a"
            there = f"il ne {there} pas" if negative else f"il {there}"
            text = f"{there} {noun_phrase(thing, negative)} {_where(where)}"
            return _finish(f"est-ce que {text}" if question else text, " ?" if question else ".")
        case Weather(row, time, town, front, degrees):
            text = row["fr"].replace("{n}", degrees) + (f" {_where(town)}" if town is not None else "")
            if time is not None:
                text = f"{time.fr}, {text}" if front else f"{text} {time.fr}"
            return _finish(text, ".")
        case Request():
            return _request(tree)
        case Order(thing):
            return _finish(f"je voudrais {noun_phrase(thing)}, s'il vous plaît", ".")
        case WhereIs(thing):
            return _finish(f"où {'sont' if thing.is_plural else 'est'} {noun_phrase(thing)}", " ?")
        case Price(thing, amount, currency):
            cost = "coûtent" if thing.is_plural else "coûte"
            if currency is None:
                return _finish(f"combien {cost} {noun_phrase(thing)}", " ?")
            return _finish(f"{noun_phrase(thing)} {cost} {amount} {currency['fr']}", ".")
        case WhatTime(subject, verb):
            form = conjugation(verb.fr).present[person(subject)]
            return _finish(f"à quelle heure {form} {noun_phrase(subject)}", " ?")
        case Phrase(row):
            return row["fr"]
