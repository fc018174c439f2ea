"""What is thought of a model's answer: its markers, the guards, the glossary; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman_protocols.glossaries.matching import Term, missing
from dragoman_protocols.languages import Pair
from dragoman_service.engine.protocol import Decoding, Finish
from dragoman_service.text.guards import Expectation, Finding, Guard, cleaned
from dragoman_service.text.preparation import Segment
from dragoman_service.text.restoring import MarkerProblem, verify

NO_ANSWER = frozenset({Guard.EMPTY, Guard.TRUNCATED})
"""Guards after which there is nothing that could be given as a translation."""


@dataclass(frozen=True)
class Answer:
    """What the engine gave for a segment.

    Args:
        text: Of the model, as it came.
        finish: Why it ended.
        prompt_tokens: Read for it.
        output_tokens: Written for it.
    """

    text: str
    finish: Finish
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Verdict:
    """An answer, and what is wrong with it.

    Args:
        answer: The model's words, cleaned.
        problems: What became of the markers.
        findings: Of the guards.
        missing: Terms whose translation is not there.
        finish: Why the engine ended it.
        output_tokens: Written for it.
    """

    answer: str
    problems: tuple[MarkerProblem, ...]
    findings: tuple[Finding, ...]
    missing: tuple[Term, ...]
    finish: Finish
    output_tokens: int

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to say against it."""
        return not (self.problems or self.findings or self.missing)

    @property
    def is_usable(self) -> bool:
        """Whether it can be given, be it with warnings."""
        return (
            not self.problems
            and self.finish is Finish.STOP
            and not any(found.guard in NO_ANSWER for found in self.findings)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What fired, by the names that metrics have for it; each once."""
        names = [f"marker_{problem.fault}" for problem in self.problems]
        names += [found.guard.value for found in self.findings]
        return tuple(dict.fromkeys([*names, *(["glossary"] if self.missing else [])]))


def output_of(segment: Segment, answer: Answer) -> str:
    """The model's words as they are judged and given."""
    # A text about thoughts and special tokens keeps them.
    ours = cleaned(segment.text) == segment.text.strip()
    return cleaned(answer.text) if ours else answer.text.strip()


def expectation(answer: Answer, pair: Pair) -> Expectation:
    """What the quality checks need beside the texts."""
    return Expectation(pair.source.tag, pair.target.tag, answer.finish, markers=True)


def verdict_of(
    segment: Segment, answer: Answer, terms: Sequence[Term], output: str, findings: tuple[Finding, ...]
) -> Verdict:
    """What the guards found, and what is wrong beside that; what takes time, about a millisecond a sentence, is theirs.

    Args:
        segment: What was asked for.
        answer: What came.
        terms: Those that apply to the segment.
        output: See `output_of`.
        findings: Of the guards.
    """
    return Verdict(
        output,
        verify(segment, output),
        findings,
        missing(terms, output) if terms else (),
        answer.finish,
        answer.output_tokens,
    )


def better(first: Verdict, second: Verdict) -> Verdict:
    """The one of two answers to the same segment that is to be given."""
    return min(first, second, key=lambda each: (not each.is_usable, len(each.names)))


def other_sampling(decoding: Decoding, names: Sequence[str]) -> Decoding:
    """How a segment is tried again: the same prompt sampled in the same way tends to fail in the same way.

    Args:
        decoding: Of the first answer.
        names: What was wrong with it, as `Verdict.names` has it.
    """
    looped = {Guard.REPETITION, Guard.TRUNCATED, Guard.RUNAWAY} & set(names)
    penalty = max(decoding.repetition_penalty, 1.1) if looped else decoding.repetition_penalty
    if decoding.temperature > 0 and not looped:
        return replace(decoding, temperature=0.0, top_p=1.0, top_k=0, seed=None)
    return replace(
        decoding,
        temperature=0.5 if decoding.temperature == 0 else decoding.temperature + 0.2,
        top_p=0.9,
        top_k=decoding.top_k or 50,
        repetition_penalty=penalty,
        seed=1,
    )


def alternative_sampling(decoding: Decoding, number: int) -> Decoding:
    """How another translation of the same segment is made, repeatably.

    Args:
        decoding: Of the first.
        number: From 1.
    """
    warmer = max(decoding.temperature, 0.7) + 0.05 * number
    return replace(
        decoding, temperature=min(warmer, 1.2), top_p=0.95, top_k=decoding.top_k or 50, seed=number
    )
