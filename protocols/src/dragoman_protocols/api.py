"""What an API is to the programs that serve it: a table of endpoints, and pure functions that read and answer.

The engine pod serves an endpoint with `read` or `respond`, the router with `peek` or `respond`; `peek` and `read` are
written over the same types, and `tests/unit/protocols/test_peek_agrees.py` holds that they agree.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Union

import msgspec

from dragoman_contract.languages import Languages
from dragoman_contract.routing import TIMEOUT_HEADER
from dragoman_protocols.errors import InvalidFieldError, RequestError, causes, closes, headers_of
from dragoman_protocols.forms import FORM_TYPE, MAX_FIELDS, MAX_QUERY_FIELDS, FieldValues, fields_of
from dragoman_protocols.multipart import MULTIPART, Upload, read_form
from dragoman_protocols.offer import Offer
from dragoman_protocols.openapi import Operation
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult

if TYPE_CHECKING:
    from dragoman_protocols.chat import Chat
    from dragoman_protocols.detection import Detection
    from dragoman_protocols.page.fleet import ObservedFleet


@dataclass(slots=True)
class Request:
    """One HTTP request.

    Args:
        path: Decoded.
        query: Encoded.
        headers: Names in lower case.
        body: Empty until it is read.
        upload: The form, where the endpoint expects a file.
        variables: What the endpoint's path has in braces.
    """

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    upload: Upload | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    _query_fields: FieldValues | None = field(default=None, init=False)
    _form_fields: FieldValues | None = field(default=None, init=False)

    def header(self, name: bytes) -> bytes | None:
        """The first header of a name in lower case."""
        for known, value in self.headers:
            if known == name:
                return value
        return None

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

    `close`: whether the connection ends with it.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False

    def head(self) -> list[tuple[bytes, bytes]]:
        """The headers as they are sent, with the type and the length of the body."""
        found = [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers]
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


class Kind(Enum):
    """What an endpoint is for, which decides who answers."""

    TRANSLATE = "translate"
    """The pod reads and translates; the router peeks, and picks a deployment that serves the pair."""
    FILE = "file"
    """The same for a form with a file."""
    DETECT = "detect"
    """The pod detects languages; the router picks any deployment."""
    GLOSSARIES = "glossaries"
    """Answered over a store of glossaries by who has one; a router without one picks any deployment."""
    DOCUMENT = "document"
    """A file that a pod has translated: the router picks the replica that has it."""
    RESPOND = "respond"
    """Answered from a `Site` by who receives it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may have; `max_texts` None: no limit of this program's own."""

    max_texts: int | None
    max_body_bytes: int

    def check_texts(self, texts: int, most: int | None = None) -> None:
        """Keep to the maximum number of texts, and to the API's own.

        Raises:
            InvalidFieldError: There are more.
        """
        known = [each for each in (self.max_texts, most) if each is not None]
        if known and texts > min(known):
            raise InvalidFieldError(f"{texts} texts in one request; send at most {min(known)}")


@dataclass(frozen=True, slots=True)
class Usage:
    """Characters that a key has used, and its limit; None: there is none."""

    characters: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """What the program that answers has to offer: a pod its own model, a router all deployments.

    Args:
        served: The pairs as they are listed; empty means every pair.
        ready: Whether translations are possible now.
        usage: Of the caller's key, or the pod's own count.
        page: Whether the web page is served.
        sees_fleet: Whether the caller may see the fleet view.
        fleet: For the fleet view, where it is requested; None: there is none.
    """

    offer: Offer
    served: tuple[Languages, ...]
    models: tuple[str, ...]
    limits: Limits
    keys_required: bool = False
    ready: bool = True
    usage: Usage = Usage(0)
    page: bool = True
    sees_fleet: bool = False
    fleet: ObservedFleet | None = None


class Need(NamedTuple):
    """A source and the targets that one deployment has to serve.

    Args:
        source: BCP-47 tag in its canonical form; None where it has to be detected.
        targets: The same for the translations.
        texts: To detect the source by.
    """

    source: str | None
    targets: tuple[str, ...]
    texts: tuple[str, ...] = ()

    @property
    def characters(self) -> int:
        """Code points of the texts."""
        return sum(map(len, self.texts))


class Peek(NamedTuple):
    """What a router has to know of a translation request.

    Args:
        needs: What the deployment has to serve; empty: any deployment can answer.
        characters: What the request is charged for.
        sample: The beginning of a file, to detect its language by.
    """

    needs: tuple[Need, ...]
    characters: int
    model: str | None = None
    glossary_ids: tuple[str, ...] = ()
    sample: str = ""


NOTHING = Peek((), 0)
"""Of a request that needs no pair and is charged for nothing."""

Results = Sequence[Sequence[TranslationResult]]
"""For each `TranslationRequest` of a call, its texts' results."""


class Events(Protocol):
    """Writes a streamed translation."""

    def delta(self, delta: Delta) -> bytes:
        """The events for a piece of a translation."""
        ...

    def end(self) -> bytes:
        """The events after the last piece."""
        ...

    def failed(self, error: RequestError) -> bytes:
        """The last event of a translation that cannot be finished."""
        ...


@dataclass(frozen=True, slots=True)
class Translate:
    """A call for translations.

    Args:
        requests: One, or one for each target language, done side by side; none where nothing is to be translated.
        characters: What it is charged for: code points of all texts, once for each target.
        render: Makes the answer of the results; linear in their length.
        needs: What a deployment has to serve for it: what `Endpoint.peek` must find.
        events: Set where the one request's translation is to be streamed.
        glossary_ids: Glossaries whose terms the pod adds to the requests.
    """

    requests: tuple[TranslationRequest, ...]
    characters: int
    render: Callable[[Results], Answer]
    needs: tuple[Need, ...]
    events: Events | None = None
    glossary_ids: tuple[str, ...] = ()
    model: str | None = None

    def peek(self) -> Peek:
        """What a router must find in the same request."""
        return Peek(self.needs, self.characters, self.model, self.glossary_ids)


@dataclass(frozen=True, slots=True)
class TranslateFile:
    """A call for the translation of a file; see `Translate` for `needs` and `glossary_ids`.

    Args:
        name: Of the file; its ending names its kind.
        request: The options; without texts, which the pod reads in the file.
        render: Makes the answer of the `Document`, where it is translated in the background; else of its
            `libretranslate.files.FileAnswer`.
        sample: The beginning of the file, to detect its language by.
    """

    name: str
    content: bytes
    request: TranslationRequest
    needs: tuple[Need, ...]
    render: Callable[[Any], Answer]
    sample: str = ""
    glossary_ids: tuple[str, ...] = ()

    def peek(self) -> Peek:
        """What a router must find in the same request; the pod counts the characters."""
        return Peek(self.needs, 0, glossary_ids=self.glossary_ids, sample=self.sample)


class Detect(NamedTuple):
    """A call for the languages of texts.

    Args:
        render: Makes the answer of what is found for each.
        among: Tags that come into question; empty: all.
    """

    texts: tuple[str, ...]
    render: Callable[[Sequence[Detection]], Answer]
    among: tuple[str, ...] = ()


Call = Union[Translate, TranslateFile, Detect, "Chat"]
"""`Chat` is a string because its module imports this one."""

Handler = Callable[[Request], Callable[[Any], Awaitable[Answer]]]
"""Reads a request; what it returns answers over the store of glossaries, or the documents, of the program."""


class Api(ABC):
    """What the endpoints of one API have in common."""

    name: ClassVar[str]
    """A label of metrics."""
    error_type: ClassVar[type | None] = None
    """Type of the errors' bodies, for the OpenAPI document; None: the API's publisher documents them."""
    key_headers: ClassVar[tuple[bytes, ...]] = ()
    """Headers in which its clients send the API key, beside `Authorization`."""
    key_parameters: ClassVar[tuple[str, ...]] = ()
    """The same for parameters of the query."""
    key_field: ClassVar[str | None] = None
    """Field of the body that may have the API key."""
    key_place: ClassVar[str] = "in the header `Authorization: Bearer KEY`"
    """Where its clients send the key, for errors."""
    cors: ClassVar[bool] = False
    """Whether web pages of any origin may call it: preflight requests are answered for it."""

    def claims(self, request: Request) -> bool:
        """Whether a request's head is for this API, where several share the path."""
        del request
        return True

    @abstractmethod
    def error(self, error: RequestError, request: Request) -> Answer:
        """An error in the API's status and shape."""

    def causes(self) -> dict[int, str]:
        """The codes of errors that each status stands for."""
        found: dict[int, set[str]] = {}
        for cause in causes():
            status = self.error(cause(""), Request("POST", "/", b"", [])).status
            found.setdefault(status, set()).add(cause.code)
        return {status: ", ".join(sorted(found[status])) for status in sorted(found)}


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One path of one API.

    Args:
        path: Such as `/v1/models/{name}`; a variable at the end takes slashes.
        claims_body: Whether a request's body is for this API, where the path's first endpoint is another's.
        peek: What the router has to know of a request; raises `CallerError`.
        read: What the pod has to do for it; raises `CallerError`.
        respond: The answer, for `Kind.RESPOND`.
        handle: The answer over a store, for `Kind.GLOSSARIES` and `Kind.DOCUMENT`.
        needs_key: Whether a key is required where keys are.
        max_body_bytes: Maximum, where it is below the program's own.
        in_background: Whether a file is translated after its upload was answered; so too for what fetches it.
        operation: For the OpenAPI document; None: not in it.
    """

    api: Api
    kind: Kind
    path: str
    methods: frozenset[str]
    claims_body: Callable[[Request], bool] | None = None
    peek: Callable[[Request, Offer], Peek] | None = None
    read: Callable[[Request, Site], Call] | None = None
    respond: Callable[[Request, Site], Answer] | None = None
    handle: Handler | None = None
    needs_key: bool = True
    max_body_bytes: int | None = None
    in_background: bool = False
    operation: Operation | None = None

    def body_limit(self, most_bytes: int) -> int:
        """The maximum of a body where a program has one for all endpoints."""
        return most_bytes if self.max_body_bytes is None else min(most_bytes, self.max_body_bytes)
