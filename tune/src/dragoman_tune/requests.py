"""Requests of a load and their responses, independent of the server; a sample of real ones from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from dragoman_tune.errors import RequestsFileError

FIELDS = ("text", "source_lang", "target_lang")


@dataclass(frozen=True)
class SampleRequest:
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
        content: The body of an answer with status 200.
    """

    queue_s: float | None = None
    compute_s: float | None = None
    error: str | None = None
    content: bytes = b""

    @property
    def document(self) -> dict[str, Any]:
        """The content as JSON."""
        return dict(json.loads(self.content))


def read_requests(path: Path) -> list[SampleRequest]:
    """Requests from lines such as `{"text": "Hello", "source_lang": "en", "target_lang": "de"}`.

    Args:
        path: A UTF-8 file; empty lines are skipped, fields beside the three are ignored.

    Raises:
        RequestsFileError: It cannot be read, a line is not such an object, or there is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestsFileError(f"cannot read {path}: {error}") from error
    found = [_request(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise RequestsFileError(f"{path} holds no request")
    return found


def _request(path: Path, number: int, line: str) -> SampleRequest:
    try:
        document = json.loads(line)
    except json.JSONDecodeError as error:
        raise RequestsFileError(f"{path}, line {number}: not JSON: {error.msg}") from None
    if not isinstance(document, dict):
        raise RequestsFileError(f"{path}, line {number}: not a JSON object")
    for field in FIELDS:
        if not isinstance(document.get(field), str) or not document[field].strip():
            raise RequestsFileError(f"{path}, line {number}: {field} must be a string that is not empty")
    return SampleRequest(*(document[field] for field in FIELDS))


def repeated(requests: Sequence[SampleRequest], seed: int) -> Iterator[SampleRequest]:
    """Real requests over and over, each time in another order."""
    draw = Random(seed)
    while True:
        yield from draw.sample(requests, len(requests))
