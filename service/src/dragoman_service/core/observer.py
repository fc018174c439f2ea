"""What the core tells about its work, to whoever counts it; and what it is told about a request's sender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dragoman_protocols.languages import Pair

Priority = Callable[[Pair | None, int], int]
"""From the pair, None for a chat, and the tokens of a segment, or of an answer, to the priority in the engine; lower
goes first."""


@dataclass(frozen=True)
class Origin:
    """Where a request comes from, as far as the core passes it on.

    Args:
        dialect: The API it came by: a label of metrics.
        priority: Asked for each generation; None is 0 for all. Only engines that schedule by priority look.
        trace_headers: W3C trace context of the request's span.
        added: Called with the tokens of each generation beyond those that were admitted.
    """

    dialect: str = ""
    priority: Priority | None = None
    trace_headers: Mapping[str, str] | None = None
    added: Callable[[int], None] | None = None


NOWHERE = Origin()


class Observer(Protocol):
    """Counts what the core does. Called on the event loop, for every segment: quick, and never raising."""

    def finding(self, guard: str, origin: Origin) -> None:
        """A guard fired on an answer.

        Args:
            guard: A `text.guards.Guard`, a `text.restoring.Fault` with `marker_` before it, or `glossary`:
                17 values in all.
            origin: Of the request.
        """
        ...

    def retried(self, origin: Origin) -> None:
        """A segment is generated once more, by other sampling."""
        ...

    def untouched(self, origin: Origin) -> None:
        """A segment was left as it was, for no answer could be used."""
        ...

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        """A segment is done.

        Args:
            pair: Its languages.
            duration_s: Seconds in the engine and its queue, retries included.
            prompt_tokens: Read by the engine for it.
            output_tokens: Written by the engine for it.
            origin: Of the request.
        """
        ...

    def reused(self, how: str, origin: Origin) -> None:
        """A segment needed no generation of its own.

        Args:
            how: `cache`, or `in_flight` where this request or another one in flight has the same segment.
            origin: Of the request.
        """
        ...


class Silent:
    """Counts nothing."""

    def finding(self, guard: str, origin: Origin) -> None:
        """Nothing."""

    def retried(self, origin: Origin) -> None:
        """Nothing."""

    def untouched(self, origin: Origin) -> None:
        """Nothing."""

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        """Nothing."""

    def reused(self, how: str, origin: Origin) -> None:
        """Nothing."""
