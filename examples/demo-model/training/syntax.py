"""Abstract sentences: what is said, before any language says it.

Each language module turns these trees into text. A tree fixes everything the four languages need
(tense, polarity, number, which time phrase stands first), so every tree has exactly one rendering
per language.
"""

from dataclasses import dataclass
from enum import Enum

from .lexicon import Adjective, Name, Noun, Place, Row, Verb


class Tense(Enum):
    """When the clause happens."""

    PRESENT = "present"
    PAST = "past"
    FUTURE = "future"


class Modal(Enum):
    """What stands before an infinitive: can, want to, must."""

    CAN = "can"
    WANT = "want"
    MUST = "must"


class Question(Enum):
    """What a question asks for; WHAT replaces the object."""

    YES_NO = "yes or no"
    WHY = "why"
    WHEN = "when"
    WHERE = "where"
    WHAT = "what"


class Pronoun(Enum):
    """A personal pronoun, or `who`. `you` is always the polite form; `they` is masculine in French."""

    I = "I"  # noqa: E741
    WE = "we"
    HE = "he"
    SHE = "she"
    THEY = "they"
    YOU = "you"
    WHO = "who"


class Determiner(Enum):
    """What stands before a noun.

    BARE is "apples, bread" (some); GENERIC is "apples, bread" in general, as after "like".
    """

    THE = "the"
    A = "a"
    BARE = "some"
    GENERIC = "in general"
    THIS = "this"
    MY = "my"
    OUR = "our"
    YOUR = "your"
    NUMBER = "number"
    MANY = "many"
    MEASURE = "measure"


POSSESSIVES = frozenset({Determiner.MY, Determiner.OUR, Determiner.YOUR})
INDEFINITE = frozenset({Determiner.A, Determiner.BARE, Determiner.GENERIC})
UNCHANGED_BY_NEGATION = frozenset({Determiner.NUMBER, Determiner.MANY, Determiner.MEASURE})


@dataclass(frozen=True)
class Numeral:
    """A number in words per language, or one token that all four languages copy ("42", "{count}")."""

    en: str
    fr: str
    de: str
    ne: str
    one: bool = False


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its determiner, a name, or a pronoun; `also` is the second half of "A and B".

    `numeral` counts the noun (NUMBER) or the measure (MEASURE: "two cups of tea").
    """

    noun: Noun | None = None
    name: Name | None = None
    pronoun: Pronoun | None = None
    determiner: Determiner = Determiner.THE
    plural: bool = False
    adjective: Adjective | None = None
    numeral: Numeral | None = None
    measure: Row | None = None
    also: "NounPhrase | None" = None

    @property
    def is_plural(self) -> bool:
        """Whether a verb with this subject is plural."""
        if self.also is not None:
            return True
        if self.pronoun is not None:
            return self.pronoun in (Pronoun.WE, Pronoun.THEY, Pronoun.YOU)
        if self.measure is not None:
            return self.numeral is not None and not self.numeral.one
        return self.plural

    @property
    def human(self) -> bool:
        """Whether the phrase names people."""
        if self.noun is not None:
            return self.noun.human
        return self.pronoun is not None or (self.name is not None and self.name.human)

    @property
    def definite(self) -> bool:
        """Whether the phrase points at something known (the, this, my, a name)."""
        return self.determiner not in INDEFINITE | UNCHANGED_BY_NEGATION


@dataclass(frozen=True)
class Where:
    """A place: a fixed town row, a place with a noun phrase, or a relation ("under the table").

    `to` means motion towards it. Exactly one of `town`, `place`, `relation` is set; the latter two
    come with `phrase`.
    """

    town: Row | None = None
    place: Place | None = None
    relation: Row | None = None
    phrase: NounPhrase | None = None
    to: bool = False


@dataclass(frozen=True)
class Adverb:
    """A time phrase or another adverbial that is a fixed string in each language.

    `manner` marks "by train", which German and Nepali say after the time.
    """

    en: str
    fr: str
    de: str
    ne: str
    negative: bool = False
    manner: bool = False


@dataclass(frozen=True)
class Job:
    """A profession as predicate: "Anna is a doctor"."""

    row: Row


@dataclass(frozen=True)
class Age:
    """An age in whole years as predicate, written in digits."""

    years: str


@dataclass(frozen=True)
class Feeling:
    """Hunger or thirst: "is hungry", which French and German have and Nepali feels."""

    row: Row


Predicate = Adjective | Job | Age | Feeling | Where


@dataclass(frozen=True)
class Clause:
    """One clause. Exactly one of `verb` and `predicate` (said of the subject with "to be") is set.

    `simple` chooses "reads" over "is reading". `front` puts the first time phrase first.
    """

    subject: NounPhrase
    verb: Verb | None = None
    predicate: Predicate | None = None
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    where: Where | None = None
    times: tuple[Adverb, ...] = ()
    front: bool = False
    frequency: Adverb | None = None
    tense: Tense = Tense.PRESENT
    modal: Modal | None = None
    negative: bool = False
    simple: bool = False
    question: Question | None = None


@dataclass(frozen=True)
class Existence:
    """There is something somewhere; present or past."""

    thing: NounPhrase
    where: Where
    tense: Tense = Tense.PRESENT
    negative: bool = False
    question: bool = False


@dataclass(frozen=True)
class Weather:
    """A fixed weather phrase with optional time and town; `degrees` fills {n}."""

    row: Row
    time: Adverb | None = None
    town: Where | None = None
    front: bool = False
    degrees: str = ""


@dataclass(frozen=True)
class Request:
    """A polite command: "Please open the window." `can` asks: "Can you open the window, please?"."""

    verb: Verb
    object: NounPhrase
    can: bool = False
    negative: bool = False


@dataclass(frozen=True)
class Order:
    """I would like something, please."""

    thing: NounPhrase


@dataclass(frozen=True)
class WhereIs:
    """Where is something?"""

    thing: NounPhrase


@dataclass(frozen=True)
class Price:
    """Something costs an amount; without an amount, the question how much it costs."""

    thing: NounPhrase
    amount: str = ""
    currency: Row | None = None


@dataclass(frozen=True)
class WhatTime:
    """What time does something leave, arrive, open …?"""

    subject: NounPhrase
    verb: Verb


@dataclass(frozen=True)
class Phrase:
    """A fixed phrase with its own punctuation."""

    row: Row


@dataclass(frozen=True)
class Pair:
    """Two statements joined by `and`, `but` or `because`."""

    first: Clause
    conjunction: str
    second: Clause


Sentence = Clause | Existence | Weather | Request | Order | WhereIs | Price | WhatTime | Phrase | Pair
Text = tuple[Sentence, ...]
