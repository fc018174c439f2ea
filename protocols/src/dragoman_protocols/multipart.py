"""Multipart forms, read as their bytes arrive: only the fields are copied, and the file on request."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from dragoman_protocols.errors import MalformedRequestError
from dragoman_protocols.forms import FieldValues

MULTIPART = b"multipart/form-data"
MAX_PARTS = 100
FILE_PART = "file"
"""Name of the part that is a file even without a file name: DeepL has a field for that."""
ATTACHED_PARTS = ("memory", "terms", "glossary")
"""Names of the parts with files beside the one to translate: a translation memory, and a glossary, which is Azure's
`glossary`."""
MAX_FIELD_BYTES = 4096
MAX_PARAMETERS = 32
"""Of a header, semicolons in quotes included: reading them costs the square of their number."""
STALLED_BYTES = 1024
"""So many bytes in one piece that are neither a header nor content: padding, which the parser takes byte by byte."""

TEXT_ENDINGS = (".txt", ".md", ".srt", ".vtt", ".html", ".htm", ".csv", ".tsv")
SAMPLE_BYTES = 8192
_MARKUP = re.compile(r"<[^<>]*>|[\d:,>-]{3,}")
"""What would pass for a language: tags, and the times of subtitles."""

_EXTENDED_NAME = re.compile(rb"filename\*[ \t]*=", re.I)
_EXTENDED_VALUE = re.compile(rb"utf-8'[^']*'((?:[^%]|%[0-9a-f]{2})+)", re.I)
"""Source: RFC 5987, section 3.2."""
_ENCODED_WORD = re.compile(rb"=\?utf-8\?b\?([a-z0-9+/]+=*)\?=", re.I)
"""Source: RFC 2047, section 2."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What a multipart form has.

    Args:
        fields: Values by name.
        sample: The beginning of the file where that is text, to detect its language by.
        file_name: Of the first file in no attached part, empty where it has none; None without a file, or if not kept.
        content: That part's content.
        memory: Content of the file in the part `memory`, where it was kept.
        terms: The same of the part `terms`.
        glossary: The same of the parts `glossary`, with a line break between them.
        positions: Of each field's values in the body: where their bytes begin and end, in one piece or more.
    """

    fields: FieldValues
    sample: str = ""
    file_name: str | None = None
    content: bytes = b""
    memory: bytes = b""
    terms: bytes = b""
    glossary: bytes = b""
    positions: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict, compare=False)


def masked(body: bytes, positions: Sequence[tuple[int, int]]) -> bytes:
    """A form with some bytes overwritten, so that its length and its other parts stay as they are."""
    if not positions:
        return body
    changed = bytearray(body)
    for begin, end in positions:
        changed[begin:end] = b"-" * (end - begin)
    return bytes(changed)


def read_form(content_type: bytes | None, body: bytes, keep_file: bool = False) -> Upload:
    """A form that is there as a whole.

    Raises:
        MalformedRequestError: It is no multipart form, is not whole, or has too much of something.
    """
    reader = MultipartReader(content_type, keep_file, len(body))
    reader.feed(body)
    return reader.finish()


class MultipartReader:
    """Reads one form; what is wrong with it is raised by `finish`, when its sender can receive the answer.

    Args:
        content_type: Of the request; None where it has none.
        keep_file: Whether the content of the file is kept; else only a sample of a text.
        max_field_bytes: Of one field.
    """

    def __init__(
        self, content_type: bytes | None, keep_file: bool = False, max_field_bytes: int = MAX_FIELD_BYTES
    ) -> None:
        self._keep_file = keep_file
        self._max_field_bytes = max_field_bytes
        self._file_name: str | None = None
        self._file = bytearray()
        self._attached = {name: bytearray() for name in ATTACHED_PARTS}
        self._target: bytearray | None = None
        """What the part's content is added to."""
        self.fields: dict[str, list[str]] = {}
        """What was found until now."""
        self._positions: dict[str, list[tuple[int, int]]] = {}
        self._fed, self._fed_bytes = b"", 0
        self._header: dict[bytes, bytes] = {}
        self._name, self._value = bytearray(), bytearray()
        self._field: str | None = None
        self._content = bytearray()
        self._most_bytes = 0
        self._sample: bytes | None = None
        self._sampled = False
        self._parts = 0
        self._moved = self._ended = False
        self._error: str | None = None
        self._delimiter = b""
        self._parser = self._parser_for(content_type)

    def feed(self, data: bytes) -> None:
        """See the next part of the body."""
        if self._parser is None or self._error is not None or not data:
            return
        # Each costs the parser time though it may begin no part.
        self._parts += data.count(self._delimiter)
        self._moved, self._fed = False, data
        try:
            self._check_parts()
            self._parser.write(data)
            if len(data) > STALLED_BYTES and not (self._moved or self._ended):
                raise MalformedRequestError("there is more between two parts than a line end")
        except (FormParserError, MalformedRequestError) as error:
            self._error = f"the form cannot be read: {str(error)[:200]}"
        self._fed_bytes += len(data)

    @property
    def spoiled(self) -> bool:
        """Whether it cannot be read, so that nothing more will be found."""
        return self._parser is None or self._error is not None

    def finish(self) -> Upload:
        """What the form has.

        Raises:
            MalformedRequestError: It is none, or is not whole.
        """
        if self._parser is None:
            raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
        if self._error is None and not self._ended:
            self._error = "the form cannot be read: it has no end"
        if self._error is not None:
            raise MalformedRequestError(self._error)
        sample = _text(self._sample) if self._sample else ""
        attached = {name: bytes(content) for name, content in self._attached.items()}
        return Upload(
            self.fields, sample, self._file_name, bytes(self._file), **attached, positions=self._positions
        )

    def _parser_for(self, content_type: bytes | None) -> MultipartParser | None:
        if content_type is not None and content_type.count(b";") > MAX_PARAMETERS:
            return None
        media, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if media != MULTIPART or not boundary:
            return None
        self._delimiter = b"--" + boundary
        called: dict[str, Callable[..., Any]] = {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_part_data,
            "on_part_end": self._on_part_end,
            "on_end": self._on_end,
        }
        try:
            return MultipartParser(boundary, called)  # type: ignore[arg-type]
        except FormParserError:
            return None

    def _check_parts(self) -> None:
        if self._parts > MAX_PARTS:
            raise MalformedRequestError(f"it has more than {MAX_PARTS} parts")

    # What the parser calls.
    def _on_part_begin(self) -> None:
        self._moved = True
        self._header.clear()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._moved = True
        self._name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._moved = True
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        self._header[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _on_headers_finished(self) -> None:
        disposition = self._header.get(b"content-disposition", b"")
        if disposition.count(b";") > MAX_PARAMETERS:
            raise MalformedRequestError(
                f"a part's Content-Disposition has more than {MAX_PARAMETERS} parameters"
            )
        _, options = parse_options_header(disposition)
        name = options.get(b"name", b"").decode("latin-1")
        file_name = _file_name(disposition, options)
        if file_name is None and name == FILE_PART:
            file_name = ""
        self._field, self._most_bytes, self._target = None, 0, None
        if file_name is None:
            self._field, self._most_bytes = name, self._max_field_bytes + 1
            return
        if name in self._attached:
            self._target = self._attached[name] if self._keep_file else None
            if self._attached[name]:
                self._attached[name] += b"\n"
            return
        if self._keep_file and self._file_name is None:
            self._file_name, self._target = file_name, self._file
        if not self._sampled and file_name.lower().endswith(TEXT_ENDINGS):
            self._sampled, self._most_bytes = True, SAMPLE_BYTES

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._moved = True
        if self._target is not None:
            self._target += data[start:end]
        room = self._most_bytes - len(self._content)
        if room > 0:
            self._content += data[start : min(end, start + room)]
            # Other data than what was fed is a line end that might have begun a delimiter, of an earlier piece.
            if self._field is not None and data is self._fed:
                piece = self._fed_bytes + start, self._fed_bytes + end
                self._positions.setdefault(self._field, []).append(piece)

    def _on_part_end(self) -> None:
        content = bytes(self._content)
        self._content.clear()
        if self._field is None:
            if self._most_bytes:
                self._sample = content
            return
        if len(content) > self._max_field_bytes:
            raise MalformedRequestError(f"{self._field} is longer than {self._max_field_bytes} bytes")
        try:
            self.fields.setdefault(self._field, []).append(content.decode())
        except UnicodeDecodeError:
            raise MalformedRequestError(f"{self._field} is not UTF-8") from None

    def _on_end(self) -> None:
        self._ended = True


def _file_name(disposition: bytes, options: Mapping[bytes, bytes]) -> str | None:
    """A part's file name; None where it has none. .NET writes one beyond ASCII in both encodings."""
    plain, extended = options.get(b"filename"), None
    if _EXTENDED_NAME.search(disposition):
        # The parser ignores names with an asterisk.
        _, renamed = parse_options_header(_EXTENDED_NAME.sub(b"extended=", disposition))
        extended = renamed.get(b"extended")
    if plain is None and extended is None:
        return None
    # Errors: wrong base64, and other bytes than UTF-8.
    with suppress(ValueError):
        if match := _EXTENDED_VALUE.fullmatch(extended or b""):
            return unquote_to_bytes(match[1]).decode()
    with suppress(ValueError):
        if match := _ENCODED_WORD.fullmatch(plain or b""):
            return b64decode(match[1]).decode()
    return (plain or b"").decode("utf-8", "replace")


def _text(sample: bytes) -> str:
    """The words of a file's beginning; what is not UTF-8 is left out."""
    return _MARKUP.sub(" ", sample.decode(errors="ignore")).strip()
