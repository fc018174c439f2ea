"""Values that pass between the stages of a translation: prepare, generate, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_contract.metrics import Metric
from dragoman_protocols.errors import RequestError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import Pair
from dragoman_protocols.translation import Warned
from dragoman_service.engine.protocol import Finish
from dragoman_service.prompts.family import PromptOptions
from dragoman_service.text.guards import Finding
from dragoman_service.text.restoring import MarkerProblem
from dragoman_service.text.segmented_text import Segment, SegmentedText

Priority = Callable[[Pair | None, int], int]
"""From the pair, None for a chat, and the tokens of a segment, or of an answer, to the priority in the engine; lower
goes first."""


@dataclass(frozen=True)
class Origin:
    """Properties of the request that a generation belongs to.

    Args:
        api: The request's API: a label of metrics.
        priority: Called for each generation; None is 0 for all. Used by engines that schedule by priority.
        trace_headers: W3C trace context of the request's span.
        added: Called with the tokens of each generation beyond those that were admitted.
    """

    api: str = ""
    priority: Priority | None = None
    trace_headers: Mapping[str, str] | None = None
    added: Callable[[int], None] | None = None


NO_ORIGIN = Origin()


class Observer:
    """Counts the work of the core; this one counts nothing.

    Called on the event loop, for every segment: methods must be fast and must not raise.
    """

    def count(self, metric: Metric, *labels: str) -> None:
        """Add one to a counter of `metric_definitions`."""

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        """A segment is complete, after `duration_s` in the engine and its queue, retries included."""

    def generation_started(self, sequences: int) -> Any:
        """A generation starts in the engine, which runs so many at once, or its queue.

        Returns:
            What `generation_ended` gets.
        """

    def generation_ended(self, started: Any, output_tokens: int) -> None:
        """It ended; without output tokens: it failed or was cancelled."""


@dataclass(frozen=True)
class SourceLanguage:
    """The language of a text, as given or as detected.

    Args:
        tag: BCP-47 tag, `und` if the text has no letters.
        confidence: 0 to 1; None if the caller named the language.
        pair: The pair to translate with; None if the text is returned unchanged.
        warnings: What a caller should know of the detection.
    """

    tag: str
    confidence: float | None
    pair: Pair | None
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class SegmentTask:
    """One segment to generate; equal tasks have interchangeable outcomes.

    Args:
        options: What the prompt states beside it, terms included.
        terms: Terms that apply, for the check.
        alternatives: Number of further translations.
    """

    segment: Segment
    pair: Pair
    options: PromptOptions
    terms: tuple[Term, ...] = ()
    alternatives: int = 0


@dataclass(frozen=True)
class PreparedText:
    """A text as tasks for the engine.

    Args:
        index: Index in the request's texts.
        tasks: One per segment.
        warnings: Those that concern no single segment.
    """

    index: int
    source: SourceLanguage
    document: SegmentedText
    tasks: tuple[SegmentTask, ...]
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class GeneratedText:
    """The engine's output for a segment."""

    text: str
    finish: Finish
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Evaluation:
    """A generated text, cleaned, and what the checks found.

    Args:
        missing: Terms whose translation is missing.
        names: Everything found, by its label in metrics, each once; empty if nothing was.
        is_usable: Whether it can be returned, possibly with warnings.
    """

    text: str
    problems: tuple[MarkerProblem, ...]
    findings: tuple[Finding, ...]
    missing: tuple[Term, ...]
    finish: Finish
    output_tokens: int
    names: tuple[str, ...]
    is_usable: bool


@dataclass(frozen=True)
class Outcome:
    """The result of a segment's generations.

    Args:
        evaluation: Of the text to return.
        names: Everything found on the way, by its label in metrics.
        retried: Whether it was generated twice.
        alternatives: Further texts, all usable and different.
        aligned: Whether the text has tags that were put back by alignment.
    """

    evaluation: Evaluation
    names: tuple[str, ...] = ()
    retried: bool = False
    alternatives: tuple[str, ...] = ()
    prompt_tokens: int = 0
    output_tokens: int = 0
    aligned: bool = False


@dataclass(frozen=True)
class SegmentResult:
    """What is returned for a segment.

    Args:
        text: In the form of the source.
        alternatives: Further translations, all different.
        source_kept: Whether it is the source, unchanged.
        failure: Set if the model gave no answer at all.
        from_memory: Whether it is the translation memory's.
    """

    text: str
    alternatives: tuple[str, ...]
    warnings: tuple[Warned, ...]
    outcome: Outcome
    source_kept: bool = False
    failure: RequestError | None = None
    from_memory: bool = False
