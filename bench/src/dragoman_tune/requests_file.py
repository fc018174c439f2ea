"""Reads a sample of real requests: JSON lines in the pod's own dialect."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman_tune.errors import RequestsFileError
from dragoman_tune.request import Request

FIELDS = ("text", "source_lang", "target_lang")


def read_requests(path: Path) -> list[Request]:
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


def _request(path: Path, number: int, line: str) -> Request:
    try:
        document = json.loads(line)
    except json.JSONDecodeError as error:
        raise RequestsFileError(f"{path}, line {number}: not JSON: {error.msg}") from None
    if not isinstance(document, dict):
        raise RequestsFileError(f"{path}, line {number}: not a JSON object")
    for field in FIELDS:
        if not isinstance(document.get(field), str) or not document[field].strip():
            raise RequestsFileError(f"{path}, line {number}: {field} must be a string that is not empty")
    return Request(*(document[field] for field in FIELDS))
