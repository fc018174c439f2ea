"""What an API is to the programs that serve it: a table of endpoints, and pure functions that read and answer.

Requests for translations are read by pod and router with the same `Reading`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.calls import Detect, Reading
from dragoman_protocols.errors import RequestError, causes
from dragoman_protocols.forms import FORM_TYPE
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.site import Site


class EndpointKind(Enum):
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
class Operation:
    """What the OpenAPI document says of an endpoint.

    Args:
        bodies: Type of the request's body by its media type.
        query: Type whose fields are the query's, for a request without a body.
        query_beside_body: Whether a request with a body has the query too.
        answer: Type of the answer's body; None: it is not described, or is no JSON.
        streams: Whether the answer can be a stream of events.
    """

    summary: str
    bodies: Mapping[str, Any] = field(default_factory=dict)
    query: type | None = None
    query_beside_body: bool = False
    answer: Any = None
    streams: bool = False


def json_or_form(shape: Any) -> Mapping[str, Any]:
    """`Operation.bodies` of an endpoint that takes the same fields as JSON and as a form."""
    return {JSON_TYPE: shape, FORM_TYPE.decode(): shape}


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
    key_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the body that may have the API key."""
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


Handler = Callable[[Request], Callable[[Any], Awaitable[Answer]]]
"""Reads a request; what it returns answers over the store of glossaries, or the documents, of the program."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One path of one API.

    Args:
        path: Such as `/v1/models/{name}`; a variable at the end takes slashes.
        claims_body: Whether a request's body is for this API, where the path's first endpoint is another's.
        reading: How a request is read, for `EndpointKind.TRANSLATE` and `EndpointKind.FILE`.
        detect: The texts whose languages are detected, for `EndpointKind.DETECT`; raises `CallerError`.
        respond: The answer, for `EndpointKind.RESPOND`.
        handle: The answer over a store, for `EndpointKind.GLOSSARIES` and `EndpointKind.DOCUMENT`.
        needs_key: Whether a key is required where keys are.
        is_public: Whether the publisher's service answers it without a key; routers do unless they are set otherwise.
        max_body_bytes: Maximum, where it is below the program's own.
        in_background: Whether a file is translated after its upload was answered.
        operation: For the OpenAPI document; None: not in it.
    """

    api: Api
    kind: EndpointKind
    path: str
    methods: frozenset[str]
    claims_body: Callable[[Request], bool] | None = None
    reading: Reading[Any] | None = None
    detect: Callable[[Request, Site], Detect] | None = None
    respond: Callable[[Request, Site], Answer] | None = None
    handle: Handler | None = None
    needs_key: bool = True
    is_public: bool = False
    max_body_bytes: int | None = None
    in_background: bool = False
    operation: Operation | None = None

    def body_limit(self, most_bytes: int) -> int:
        """The maximum of a body where a program has one for all endpoints."""
        return most_bytes if self.max_body_bytes is None else min(most_bytes, self.max_body_bytes)
