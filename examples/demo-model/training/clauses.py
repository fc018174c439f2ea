"""Clauses with a verb: what people do, like, have and want, with time and place."""

from random import Random

from . import choose, circumstances
from .lexicon import Verb, verbs
from .syntax import Adverb, Clause, Determiner, Modal, NounPhrase, Question, Tense, Where

_STATES = ("state", "own", "like", "need", "want")
_PAST_ONLY = ("lose", "forget", "miss")
_EVENTS = tuple(verb for verb in verbs() if verb.aspect in ("event", "done") and verb.objects)
_ALONE = tuple(verb for verb in verbs() if verb.aspect == "event" and not verb.objects)
_LOCATED = tuple(verb for verb in verbs() if verb.aspect == "located")
_STATIVE = tuple(verb for verb in verbs() if verb.aspect in _STATES)
_IDIOMS = verbs("idioms")
_GIFTS = verbs("gifts")
_MOTION = verbs("motion")
_SCHEDULES = verbs("schedules")
# What happens to one known thing rather than to some: the train that was missed, the lost key.
_PARTICULAR = (
    "miss",
    "lose",
    "forget",
    "park",
    "feed",
    "clean",
    "explain",
    "answer",
    "open",
    "close",
    "repair",
    "use",
)
_NO_MODAL = (*_PAST_ONLY, "cry", "laugh")
_HOURS = {"open": (6, 11), "close": (16, 22), "start": (7, 20), "end": (9, 23)}
_LIKED = next(verb for verb in _STATIVE if verb.aspect == "like")


class Frame:
    """When and how an event happens: tense, modal, polarity, times; drawn so that they agree."""

    def __init__(
        self, rng: Random, verb: Verb, is_question: bool = False, tense: Tense | None = None
    ) -> None:
        self.modal: Modal | None = None
        self.tense = tense or self._draw_tense(rng, verb)
        self.negative = not is_question and rng.random() < 0.18
        self.simple = False
        self.frequency: Adverb | None = None
        self.times: tuple[Adverb, ...] = ()
        if tense is None and verb.en not in _NO_MODAL and rng.random() < 0.14:
            self.tense, self.modal = Tense.PRESENT, rng.choice((Modal.CAN, Modal.WANT, Modal.MUST))
            self.negative = self.negative and self.modal is not Modal.MUST
            if is_question and self.modal is Modal.MUST:
                self.modal = Modal.WANT
            if rng.random() < 0.35:
                self.times = (circumstances.time(rng, "future"),)
        elif self.tense is Tense.PRESENT:
            self._draw_present(rng, verb)
        elif rng.random() < (0.75 if self.tense is Tense.FUTURE else 0.6):
            self.times = (circumstances.time(rng, circumstances.TIME_USE[self.tense]),)
            if rng.random() < 0.1:
                self.times += (circumstances.clock(rng),)

    @staticmethod
    def _draw_tense(rng: Random, verb: Verb) -> Tense:
        if verb.en in _PAST_ONLY:
            return Tense.PAST
        if verb.aspect == "done":
            return Tense.PAST if rng.random() < 0.65 else Tense.FUTURE
        return rng.choices((Tense.PRESENT, Tense.PAST, Tense.FUTURE), (0.45, 0.33, 0.22))[0]

    def _draw_present(self, rng: Random, verb: Verb) -> None:
        chance = rng.random()
        if verb.aspect == "done" or chance < 0.22:
            self.simple, self.negative, self.frequency = True, False, circumstances.frequency(rng)
        elif chance < 0.42:
            self.simple, self.negative, self.times = True, False, (circumstances.time(rng, "habit"),)
        elif chance < 0.6:
            self.times = (circumstances.time(rng, "now"),)

    def front(self, rng: Random, is_question: bool) -> bool:
        """Whether the time phrase stands first."""
        return not is_question and len(self.times) == 1 and self.times[0].en != "now" and rng.random() < 0.22


def _clause(
    rng: Random,
    verb: Verb,
    frame: Frame,
    who: NounPhrase,
    is_question: bool,
    what: NounPhrase | None = None,
    to_whom: NounPhrase | None = None,
    where: Where | None = None,
) -> Clause:
    return Clause(
        subject=who,
        verb=verb,
        object=what,
        recipient=to_whom,
        where=where,
        times=frame.times,
        front=frame.front(rng, is_question),
        frequency=frame.frequency,
        tense=frame.tense,
        modal=frame.modal,
        negative=frame.negative,
        simple=frame.simple,
        question=Question.YES_NO if is_question else None,
    )


def transitive(
    rng: Random, is_question: bool = False, tense: Tense | None = None, who: NounPhrase | None = None
) -> Clause:
    """Somebody does something to something: "Anna bought two apples at the market yesterday." """
    verb = rng.choice([verb for verb in _EVENTS if tense is None or _allows(verb, tense)])
    frame = Frame(rng, verb, is_question, tense)
    doer = who or (
        choose.people(rng, is_question) if frame.modal else choose.subject(rng, verb.subjects, is_question)
    )
    known = verb.en in _PARTICULAR and rng.random() < 0.85
    what = choose.thing(rng, verb.objects, definite=known, negative=frame.negative or is_question)
    if what.noun == doer.noun:
        what = choose.thing(rng, verb.objects, definite=True, negative=True)
    if "person" in verb.objects or "seen" in verb.objects:
        what = choose.name(rng) if rng.random() < 0.25 and doer.name is None else what
    elif rng.random() < choose.PLACEHOLDER_SHARE:
        what = choose.unknown(rng)
    where = None
    if verb.places and rng.random() < 0.4:
        where = circumstances.place(rng, verb.places) if rng.random() < 0.85 else circumstances.town(rng)
    return _clause(rng, verb, frame, doer, is_question, what, where=where)


def _allows(verb: Verb, tense: Tense) -> bool:
    if verb.en in _PAST_ONLY:
        return tense is Tense.PAST
    return tense is not Tense.PRESENT or verb.aspect != "done"


def alone(
    rng: Random, is_question: bool = False, tense: Tense | None = None, who: NounPhrase | None = None
) -> Clause:
    """Somebody does something without an object: "The children are playing in the garden." """
    if rng.random() < 0.55:
        verb = rng.choice(_IDIOMS)
        if verb.aspect == "state":
            if tense not in (None, Tense.PRESENT):
                verb = next(other for other in _IDIOMS if other.aspect == "event")
            else:
                negative = not is_question and rng.random() < 0.25
                doer = who or choose.people(rng, is_question)
                mode = Question.YES_NO if is_question else None
                return Clause(doer, verb, negative=negative, simple=True, question=mode)
        return _clause(
            rng,
            verb,
            Frame(rng, verb, is_question, tense),
            who or choose.people(rng, is_question),
            is_question,
        )
    verb = rng.choice(_ALONE)
    frame = Frame(rng, verb, is_question, tense)
    doer = who or (
        choose.people(rng, is_question) if frame.modal else choose.subject(rng, verb.subjects, is_question)
    )
    where = None
    if verb.places and rng.random() < 0.55:
        where = circumstances.place(rng, verb.places)
    elif verb.en in ("stay", "sleep", "study", "work") and rng.random() < 0.7:
        where = circumstances.home()
    if verb.en == "stay" and where is None:
        where = circumstances.town(rng)
    return _clause(rng, verb, frame, doer, is_question, where=where)


def located(rng: Random, is_question: bool = False) -> Clause:
    """Where a person works or lives: "My brother lives in Vienna." """
    verb = rng.choice(_LOCATED)
    doer = choose.subject(rng, verb.subjects, is_question)
    in_town = rng.random() < (0.8 if verb.en == "live" else 0.2)
    where = circumstances.town(rng) if in_town else circumstances.place(rng, verb.places)
    negative = not is_question and rng.random() < 0.15
    mode = Question.YES_NO if is_question else None
    return Clause(doer, verb, where=where, negative=negative, simple=True, question=mode)


def giving(rng: Random, is_question: bool = False) -> Clause:
    """Somebody gives, sends or shows something: "Paul gave the key to my sister." """
    verb = rng.choice(_GIFTS)
    frame = Frame(rng, verb, is_question)
    doer = choose.people(rng, is_question)
    receiver = choose.name(rng)
    if doer.name is not None or rng.random() < 0.75:
        while receiver.noun in (None, doer.noun):
            receiver = choose.relative(rng) if rng.random() < 0.5 else choose.person(rng, described=0.05)
    what = choose.thing(rng, verb.objects, negative=frame.negative or is_question, described=0.1)
    return _clause(rng, verb, frame, doer, is_question, what, receiver)


def moving(rng: Random, is_question: bool = False) -> Clause:
    """Somebody goes or comes somewhere: "We will go to Paris by train tomorrow." """
    verb = rng.choice(_MOTION)
    frame = Frame(rng, verb, is_question)
    where = (
        circumstances.town(rng, to=True)
        if verb.aspect == "far"
        else circumstances.place(rng, verb.places, to=True)
    )
    clause = _clause(rng, verb, frame, choose.people(rng, is_question), is_question, where=where)
    rides = verb.aspect == "far" or verb.en == "come"
    if rides and not clause.front and frame.frequency is None and rng.random() < 0.3:
        vehicle = circumstances.transport(rng, verb.aspect)
        return Clause(**{**clause.__dict__, "times": (vehicle, *clause.times)})
    return clause


def having(rng: Random, is_question: bool = False) -> Clause:
    """What a person has, likes, needs, wants, knows or understands."""
    verb = rng.choice(_STATIVE)
    doer = choose.people(rng, is_question)
    negative = not is_question and rng.random() < 0.22
    if verb.aspect == "like":
        what = liked(rng)
    elif verb.aspect == "own":
        return _owning(rng, verb, doer, negative, is_question)
    elif verb.aspect == "state":
        what = choose.thing(rng, verb.objects, definite=True)
    else:
        what = choose.thing(rng, verb.objects, negative=negative or is_question)
    mode = Question.YES_NO if is_question else None
    return Clause(doer, verb, object=what, negative=negative, simple=True, question=mode)


def liked(rng: Random) -> NounPhrase:
    """What one can like: things in general, or something in particular (one, so that French is clear)."""
    noun = rng.choice(choose.nouns_like(_LIKED.objects))
    if noun.mass or rng.random() < 0.5:
        return NounPhrase(noun=noun, determiner=Determiner.GENERIC, plural=not noun.mass)
    determiner = rng.choice((Determiner.THE, Determiner.THIS))
    return NounPhrase(noun=noun, determiner=determiner)


def _owning(rng: Random, verb: Verb, doer: NounPhrase, negative: bool, is_question: bool) -> Clause:
    what = choose.thing(rng, verb.objects, negative=negative or is_question)
    noun = what.noun
    assert noun is not None
    if noun.human:
        what = NounPhrase(noun=noun, determiner=Determiner.A)
        if not is_question and not negative and rng.random() < 0.6:
            number = choose.numeral(rng, high=6, words=0.9)
            what = NounPhrase(noun=noun, determiner=Determiner.NUMBER, plural=True, numeral=number)
    tense = Tense.PAST if rng.random() < 0.15 else Tense.PRESENT
    mode = Question.YES_NO if is_question else None
    return Clause(doer, verb, object=what, tense=tense, negative=negative, simple=True, question=mode)


def scheduled(rng: Random, is_question: bool = False) -> Clause:
    """Trains leave, shops open, meetings start: "The train to Berlin leaves at 8:30." """
    verb = rng.choice(_SCHEDULES)
    what = NounPhrase(noun=rng.choice(choose.nouns_like(verb.subjects)), plural=False)
    tense = rng.choices((Tense.PRESENT, Tense.PAST, Tense.FUTURE), (0.6, 0.2, 0.2))[0]
    use = "habit" if tense is Tense.PRESENT else circumstances.TIME_USE[tense]
    dated = 0.5 if use != "habit" else 0.0 if verb.en in ("start", "end") else 0.15
    day = (circumstances.time(rng, use),) if rng.random() < dated else ()
    hour = (circumstances.clock(rng, *_HOURS.get(verb.en, (5, 23))),) if not day or rng.random() < 0.6 else ()
    where = None
    if verb.en == "arrive" and rng.random() < 0.5:
        where = circumstances.town(rng)
    return Clause(
        what,
        verb,
        where=where,
        times=day + hour,
        front=not is_question and bool(day) and not hour and rng.random() < 0.4,
        tense=tense,
        negative=not is_question and not hour and tense is not Tense.PRESENT and rng.random() < 0.2,
        simple=True,
        question=Question.YES_NO if is_question else None,
    )


VERBAL = {
    transitive: 8,
    alone: 4,
    located: 1.5,
    giving: 2.5,
    moving: 2.5,
    having: 4,
    scheduled: 2,
}
