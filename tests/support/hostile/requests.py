"""HTTP requests with a given value in one position: pure."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from tests.support.hostile.values import Value

HERE = "\ue000HERE\ue000"
"""Stands for the value in a body of JSON."""

MAX_TARGET_BYTES = 60_000
"""What HTTP parsers take as an address; more is refused before any API sees it."""

MAX_HEADER_BYTES = 60_000
NOT_IN_HEADERS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"
MULTIPART = b"multipart/form-data; boundary=b0"

Parts = Callable[[Value], list[bytes]]


@dataclass(frozen=True)
class Request:
    """One HTTP/1.1 request."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def wire(self) -> bytes:
        """What is written to the connection."""
        lines = [f"{self.method} {self.target} HTTP/1.1".encode(), b"host: x"]
        lines += [b"%s: %s" % each for each in self.headers]
        lines += [b"content-length: %d" % len(self.body), b"", self.body]
        return b"\r\n".join(lines)


def in_json(method: str, target: str, template: Any, value: Value) -> Request:
    """In a body of JSON, at `HERE` of the template: as a value, or as a key."""
    marker = json.dumps(HERE).encode()
    body = json.dumps(template).encode().replace(marker, value.json)
    if value.raw_json is None:
        body = body.replace(marker[1:-1], value.json[1:-1])
    return Request(method, target, ((b"content-type", JSON),), body)


def in_form(target: str, fields: Mapping[str, str], name: str, value: Value) -> Request:
    """In a field of a form."""
    body = urlencode({**fields, name: value.bytes}).encode()
    return Request("POST", target, ((b"content-type", FORM),), body)


def in_target(
    method: str, before: str, value: Value, *, after: str = "", body: bytes = b"", safe: str = ""
) -> Request:
    """In the address, percent-encoded but for the characters in `safe`."""
    encoded = quote_from_bytes(value.bytes, safe=safe)[:MAX_TARGET_BYTES]
    return Request(method, f"{before}{encoded}{after}", ((b"content-type", JSON),), body)


def in_header(request: Request, name: bytes, value: Value) -> Request:
    """In a header; controls, which no header may have, are spaces."""
    content = NOT_IN_HEADERS.sub(b" ", value.bytes)[:MAX_HEADER_BYTES]
    headers = tuple(each for each in request.headers if each[0] != name)
    return Request(request.method, request.target, (*headers, (name, content)), request.body)


def in_parts(target: str, fields: Mapping[str, str], parts: Parts, value: Value) -> Request:
    """In parts of an upload, after those of other fields."""
    others = [part(name.encode(), content.encode()) for name, content in fields.items()]
    body = b"".join([*others, *parts(value), b"--b0--\r\n"])
    return Request("POST", target, ((b"content-type", MULTIPART),), body)


def as_body(method: str, target: str, media: bytes, value: Value) -> Request:
    """As the whole body."""
    body = value.bytes if value.raw_json is None else value.raw_json
    return Request(method, target, ((b"content-type", media),), body)


def part(name: bytes, content: bytes, filename: bytes | None = None) -> bytes:
    """One part of an upload."""
    ending = b"" if filename is None else b'; filename="%s"' % filename
    return b'--b0\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (name, ending, content)


def quoted(value: Value) -> bytes:
    """A value as the name of a part or of its file."""
    return NOT_IN_HEADERS.sub(b" ", value.bytes).replace(b'"', b"%22")
