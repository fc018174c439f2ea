"""HTTP requests with a given value in one place: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from dragoman_bench.hostile_values import Value

HERE = "\ue000HERE\ue000"
"""Stands for the value in a body of JSON."""

MOST_TARGET_BYTES = 60_000
"""What HTTP parsers take as an address; more is refused before any API sees it."""

MOST_HEADER_BYTES = 60_000

NOT_IN_HEADERS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class Request:
    """One HTTP/1.1 request."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""

    def wire(self) -> bytes:
        """What is written to the connection."""
        lines = [b"%s %s HTTP/1.1" % (self.method.encode(), self.target), b"host: x"]
        lines += [b"%s: %s" % each for each in self.headers]
        lines += [b"content-length: %d" % len(self.body), b"", self.body]
        return b"\r\n".join(lines)


def in_json(method: str, target: str, template: Any, value: Value) -> Request:
    """In a body of JSON, at `HERE` of the template: as a value, or as a key."""
    whole = json.dumps(template).encode()
    body = whole.replace(json.dumps(HERE).encode(), value.json)
    if value.raw_json is None:
        body = body.replace(json.dumps(HERE)[1:-1].encode(), value.json[1:-1])
    return Request(method, target.encode(), ((b"content-type", b"application/json"),), body)


def in_form(method: str, target: str, fields: Mapping[str, str], name: str, value: Value) -> Request:
    """In a field of a form."""
    pairs = [(each, said) for each, said in fields.items() if each != name] + [(name, value.bytes)]
    headers = ((b"content-type", b"application/x-www-form-urlencoded"),)
    return Request(method, target.encode(), headers, urlencode(pairs).encode())


def in_query(
    method: str, path: str, fields: Mapping[str, str], name: str, body: bytes, value: Value
) -> Request:
    """In a parameter of the query."""
    pairs = [(each, said) for each, said in fields.items() if each != name]
    encoded = quote_from_bytes(value.bytes, safe="")[:MOST_TARGET_BYTES]
    target = f"{path}?{urlencode([*pairs, (name, '')])}{encoded}"
    return Request(method, target.encode(), ((b"content-type", b"application/json"),), body)


def as_query(method: str, path: str, query: str, body: bytes, value: Value) -> Request:
    """The value as the end of the query, as it is but for what no address may have."""
    encoded = quote_from_bytes(value.bytes, safe="=&%+;,:/?@!$'()*-._~[]{}|^`")[:MOST_TARGET_BYTES]
    return Request(
        method, f"{path}?{query}&{encoded}".encode(), ((b"content-type", b"application/json"),), body
    )


def in_path(method: str, before: str, after: str, value: Value) -> Request:
    """In the path."""
    encoded = quote_from_bytes(value.bytes, safe="")[:MOST_TARGET_BYTES]
    return Request(method, f"{before}{encoded}{after}".encode())


def in_header(request: Request, name: bytes, value: Value) -> Request:
    """In a header; controls, which no header may have, are spaces."""
    said = NOT_IN_HEADERS.sub(b" ", value.bytes)[:MOST_HEADER_BYTES]
    headers = tuple(each for each in request.headers if each[0] != name)
    return Request(request.method, request.target, (*headers, (name, said)), request.body)


def _part(name: bytes, content: bytes, filename: bytes | None = None) -> bytes:
    named = b"" if filename is None else b'; filename="%s"' % filename
    return b'--b0\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (name, named, content)


def _multipart(target: str, parts: bytes) -> Request:
    return Request(
        "POST",
        target.encode(),
        ((b"content-type", b"multipart/form-data; boundary=b0"),),
        parts + b"--b0--\r\n",
    )


def in_file(
    target: str, fields: Mapping[str, str], filename: str, wrap: Callable[[bytes], bytes], value: Value
) -> Request:
    """In a file of an upload."""
    parts = [_part(name.encode(), said.encode()) for name, said in fields.items()]
    return _multipart(target, b"".join(parts) + _part(b"file", wrap(value.bytes), filename.encode()))


def in_upload(target: str, fields: Mapping[str, str], name: str, value: Value) -> Request:
    """In a field of an upload."""
    parts = [_part(each.encode(), said.encode()) for each, said in fields.items() if each != name]
    parts += [_part(b"file", b"Hello", b"a.txt"), _part(name.encode(), value.bytes)]
    return _multipart(target, b"".join(parts))


def as_file_name(target: str, fields: Mapping[str, str], value: Value) -> Request:
    """As the name of an upload's file."""
    parts = [_part(name.encode(), said.encode()) for name, said in fields.items()]
    named = NOT_IN_HEADERS.sub(b" ", value.bytes).replace(b'"', b"%22")
    return _multipart(target, b"".join(parts) + _part(b"file", b"Hello", named + b".txt"))


def as_part_name(target: str, fields: Mapping[str, str], value: Value) -> Request:
    """As the name of a part of an upload."""
    parts = [_part(name.encode(), said.encode()) for name, said in fields.items()]
    named = NOT_IN_HEADERS.sub(b" ", value.bytes).replace(b'"', b"%22")
    return _multipart(target, b"".join(parts) + _part(named, b"x") + _part(b"file", b"Hello", b"a.txt"))


def as_parts(target: str, fields: Mapping[str, str], value: Value) -> Request:
    """As parts of an upload, of four bytes each, which take about as much as the value."""
    content = value.bytes
    parts = [_part(name.encode(), said.encode()) for name, said in fields.items()]
    parts += [_part(b"f%d" % at, content[4 * at : 4 * at + 4]) for at in range(len(content) // 60)]
    return _multipart(target, b"".join(parts) + _part(b"file", b"Hello", b"a.txt"))


def as_upload(target: str, value: Value) -> Request:
    """As the whole body of an upload."""
    headers = ((b"content-type", b"multipart/form-data; boundary=b0"),)
    return Request("POST", target.encode(), headers, value.bytes)


def as_body(method: str, target: str, media: bytes, value: Value) -> Request:
    """As the whole body."""
    body = value.bytes if value.raw_json is None else value.raw_json
    return Request(method, target.encode(), ((b"content-type", media),), body)
