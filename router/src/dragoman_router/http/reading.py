"""Reads requests: the head, and forms with a file as they arrive."""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

from dragoman_contract.routing import DEPLOYMENT_HEADER, DEPLOYMENT_PREFIX
from dragoman_http.bodies import Message
from dragoman_protocols.endpoints import Endpoint
from dragoman_protocols.keys import key_of_form
from dragoman_protocols.multipart import MultipartReader, Upload
from dragoman_router.access.gate import Gate
from dragoman_router.request import RoutedRequest

PREFIX = DEPLOYMENT_PREFIX.encode()
CHUNK_BYTES = 64 * 1024
"""Part of a body that is parsed without a pause."""

_DEPLOYMENT = DEPLOYMENT_HEADER.lower().encode()


def read_head(scope: Message, peer: tuple[str, int] | None) -> RoutedRequest:
    """The head of a request on a connection from `peer`, with a deployment that its path or a header names."""
    client = scope.get("client")
    request = RoutedRequest(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"],
        headers=scope["headers"],
        client=client[0] if client else "",
        peer=peer[0] if peer else "",
        raw_path=scope["raw_path"],
    )
    if request.raw_path.startswith(PREFIX) and len(parts := request.raw_path.split(b"/", 4)) == 5:
        request.deployment = unquote(f"{parts[2].decode('latin-1')}/{parts[3].decode('latin-1')}")
        request.raw_path = b"/" + parts[4]
        request.path = unquote(request.raw_path.decode("latin-1"))
    named = request.header(_DEPLOYMENT)
    if named is not None:
        request.deployment = named.decode("latin-1").strip()
    return request


class UploadReader:
    """Parses a form as it arrives.

    Args:
        keyless: Checks the key in the form; None: none is required, or it was in the head.
        max_bytes_before_key: Maximum size of what precedes the key.
    """

    def __init__(
        self, request: RoutedRequest, endpoint: Endpoint, keyless: Gate | None, max_bytes_before_key: int
    ) -> None:
        self._request, self._keyless = request, keyless
        self._api = endpoint.api
        self._max_bytes_before_key = max_bytes_before_key
        self._form = MultipartReader(request.header(b"content-type"))
        self._size = 0

    async def feed(self, part: bytes) -> None:
        """Parse in chunks, so that other requests are served between them.

        Raises:
            KeyMissingError: The form has no key, or not within its first bytes.
        """
        for at in range(0, len(part), CHUNK_BYTES):
            if at:
                await asyncio.sleep(0)
            chunk = part[at : at + CHUNK_BYTES]
            self._size += len(chunk)
            self._form.feed(chunk)
            if self._keyless is not None and self._keyless.lacks_key(self._request):
                if key := key_of_form(self._form.fields, self._api.key_fields):
                    self._keyless.check(self._request, self._api, key)
                elif self._form.spoiled or self._size > self._max_bytes_before_key:
                    raise self._keyless.missing(self._request, self._api)

    def finish(self) -> Upload | None:
        """The whole form; None: the body is none, and is left to the API.

        Raises:
            KeyMissingError: It has no key.
            MalformedRequestError: It cannot be read.
        """
        if self._keyless is not None and self._keyless.lacks_key(self._request):
            raise self._keyless.missing(self._request, self._api)
        return self._form.finish() if self._request.is_multipart else None
