"""Requests of a load, and their responses, independent of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """One translation to request.

    Args:
        text: Not empty.
        output_tokens: Tokens that the answer will have, where the load knows; None where the model decides.
    """

    text: str
    source_lang: str
    target_lang: str
    output_tokens: int | None = None


@dataclass(frozen=True)
class Answer:
    """What one request came to.

    Args:
        queue_s: Seconds that it waited within the server, where the server says so.
        compute_s: Seconds that the model worked on it, where the server says so.
        error: Why it failed, in a word or two; None where it did not.
    """

    queue_s: float | None = None
    compute_s: float | None = None
    error: str | None = None
