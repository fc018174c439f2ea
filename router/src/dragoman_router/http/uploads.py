"""Reads a form with a file; without a key in its head only as far as a key may follow."""

from __future__ import annotations

import asyncio

from dragoman_protocols.endpoints import Endpoint
from dragoman_protocols.forms import first
from dragoman_protocols.multipart import MultipartReader, Upload
from dragoman_router.access.gate import Gate
from dragoman_router.request import Request

CHUNK_BYTES = 64 * 1024
"""Part of a body that is parsed without a pause."""


class UploadReader:
    """Parses a form as it arrives.

    Args:
        keyless: Checks the key in the form; None: none is required, or it was in the head.
        max_bytes_before_key: Maximum size of what precedes the key.
    """

    def __init__(
        self, request: Request, endpoint: Endpoint, keyless: Gate | None, max_bytes_before_key: int
    ) -> None:
        self._request, self._keyless = request, keyless
        self._api, self._field = endpoint.api, endpoint.api.key_field or ""
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
                if key := first(self._form.fields, self._field):
                    self._keyless.check(self._request, self._api, key.encode())
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
