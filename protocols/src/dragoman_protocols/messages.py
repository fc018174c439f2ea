"""One HTTP request and its answer, as values; answers in JSON, and as server-sent events.

Source for events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from dragoman_contract.routing import CHARACTERS_HEADER, TIMEOUT_HEADER
from dragoman_protocols.errors import InvalidFieldError, RequestError, closes, headers_of
from dragoman_protocols.forms import FORM_TYPE, MAX_FIELDS, MAX_QUERY_FIELDS, FieldValues, fields_of
from dragoman_protocols.multipart import MULTIPART, Upload, read_form


@dataclass(slots=True)
class Request:
    """One HTTP request.

    Args:
        path: Decoded.
        query: Encoded.
        headers: Names in lower case; complete before the first is looked up.
        body: Empty until it is read.
        upload: The form, where the endpoint expects a file.
        variables: What the endpoint's path has in braces.
        scheme: Of the connection: http or https.
    """

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    upload: Upload | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    scheme: str = "http"
    _by_name: dict[bytes, bytes] | None = field(default=None, init=False)
    _query_fields: FieldValues | None = field(default=None, init=False)
    _form_fields: FieldValues | None = field(default=None, init=False)

    def header(self, name: bytes) -> bytes | None:
        """The first header of a name in lower case."""
        if self._by_name is None:
            self._by_name = dict(reversed(self.headers))
        return self._by_name.get(name)

    def text_header(self, name: str) -> str | None:
        """The same as text, of a name in any casing."""
        value = self.header(name.lower().encode())
        return None if value is None else value.decode("latin-1")

    def query_fields(self) -> FieldValues:
        """The fields of the query.

        Raises:
            MalformedRequestError: There are too many, or they are not UTF-8.
        """
        if self._query_fields is None:
            self._query_fields = fields_of(self.query, MAX_QUERY_FIELDS, "query")
        return self._query_fields

    def form_fields(self) -> FieldValues:
        """The fields of the body, where it is a form of either kind.

        Raises:
            MalformedRequestError: There are too many, or they are not UTF-8, or the form is broken.
        """
        if self._form_fields is None:
            if self.is_form:
                self._form_fields = fields_of(self.body, MAX_FIELDS, "form")
            elif self.is_multipart:
                self._form_fields = read_form(self.header(b"content-type"), self.body).fields
            else:
                self._form_fields = {}
        return self._form_fields

    @property
    def is_json(self) -> bool:
        """Whether the body looks like JSON: curl labels it as a form."""
        return self.body.lstrip()[:1] in (b"{", b"[")

    @property
    def is_form(self) -> bool:
        """Whether the body is an urlencoded form, and no JSON that is labelled as one."""
        kind = self.header(b"content-type")
        return kind is not None and kind.lower().startswith(FORM_TYPE) and not self.is_json

    @property
    def is_multipart(self) -> bool:
        """Whether the body is a multipart form."""
        kind = self.header(b"content-type")
        return kind is not None and kind.lower().startswith(MULTIPART)


def time_limit_s(value: str | bytes | None) -> float:
    """Seconds in `TIMEOUT_HEADER`; infinite without the header.

    Raises:
        InvalidFieldError: The value is not a positive number.
    """
    if value is None:
        return float("inf")
    try:
        limit_s = float(value)
    except ValueError:
        limit_s = 0.0
    if not limit_s > 0:
        raise InvalidFieldError(f"{TIMEOUT_HEADER}: must be a positive number of seconds")
    return limit_s


WITHOUT_BODY = (204, 304)


class Answer(NamedTuple):
    """A whole HTTP answer: JSON, unless `headers` have another Content-Type.

    Args:
        close: Whether the connection ends with it.
        delivered: Called once all of it was handed to the connection; the client may not have received it.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False
    delivered: Callable[[], object] | None = None

    def head(self) -> list[tuple[bytes, bytes]]:
        """The headers as they are sent, with the type and the length of the body.

        Raises:
            ValueError: A header has a line end.
        """
        found = []
        for name, value in self.headers:
            if "\n" in value or "\r" in value:
                raise ValueError(f"the header {name} has a line end")
            found.append((name.lower().encode(), value.encode("latin-1")))
        if self.status not in WITHOUT_BODY:
            if all(name != b"content-type" for name, _ in found):
                found.append((b"content-type", b"application/json"))
            found.append((b"content-length", b"%d" % len(self.body)))
        return found


def json_answer(
    document: object,
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    only_ascii: bool = False,
) -> Answer:
    """An answer in JSON; `only_ascii` escapes all other characters."""
    body = (
        json.dumps(document, separators=(",", ":")).encode() if only_ascii else msgspec.json.encode(document)
    )
    return Answer(status, body, headers)


def error_answer(
    error: RequestError, status: int, document: object, headers: tuple[tuple[str, str], ...] = ()
) -> Answer:
    """An error in JSON, with these headers and those that are the same in every API."""
    return json_answer(document, status, headers_of(error) + headers)._replace(close=closes(error))


def charge_headers(characters: int) -> tuple[tuple[str, str], ...]:
    """The header by which a router charges for characters, or refunds them; none for 0."""
    return ((CHARACTERS_HEADER, str(characters)),) if characters else ()


CORS_HEADERS = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Headers", "Authorization, Content-Type"),
    ("Access-Control-Expose-Headers", "Authorization"),
    ("Access-Control-Allow-Methods", "GET, POST"),
    ("Access-Control-Allow-Credentials", "true"),
    ("Access-Control-Max-Age", str(60 * 60 * 24 * 20)),
)
"""As LibreTranslate sends them, on every answer of an API with `cors`."""


def cors_answer(document: object, status: int = 200) -> Answer:
    """An answer in JSON to pages of any origin.

    In ASCII: OmegaT's plugin for LibreTranslate reads JSON whose type has no charset as Latin-1.
    """
    return json_answer(document, status, CORS_HEADERS, only_ascii=True)


EVENT_STREAM = "text/event-stream"

LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Not line ends of the protocol, but of Python's `str.splitlines`, by which many clients read."""


def event(data: object, name: str | None = None) -> bytes:
    """One event.

    Args:
        data: What it carries, written as JSON on one line.
        name: Its type; None is what clients call `message`.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(LINE_ENDS)
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {text}\n\n".encode()
