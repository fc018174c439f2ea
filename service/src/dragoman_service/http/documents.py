"""The documents of a pod, kept until they were fetched."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from dragoman_contract.routing import new_document_id
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.documents import DELIVERED_KEPT_S, KEPT_S, NOT_FOUND, Document, State, result_name
from dragoman_protocols.errors import DocumentNotDoneError, RequestError, UnknownDocumentError
from dragoman_service.http.lifecycle import Unfetched

MAX_DOCUMENTS = 1000
"""Documents that are known; the oldest that has ended is dropped first."""

MAX_KEPT_BYTES = 128 * 1024 * 1024
"""Of all results."""


@dataclass
class _Kept:
    document: Document
    content: bytes = b""
    end: Callable[[], object] | None = None
    delivered: bool = False


class DocumentStore:
    """All documents of a pod; used from the event loop alone. See `dragoman_protocols.documents.Documents`.

    Args:
        unfetched: Delays the end of the pod until results are fetched.
        max_bytes: Maximum of all results; those that were delivered are dropped first, then the oldest.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        unfetched: Unfetched,
        max_bytes: int = MAX_KEPT_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._unfetched, self._max_bytes, self._clock = unfetched, max_bytes, clock
        self._known: dict[UUID, _Kept] = {}

    def add(self, document: Document, end: Callable[[], object] | None = None) -> None:
        """Add a document; `end` ends its translation."""
        self._drop_expired()
        self._known[document.id] = _Kept(document, end=end)
        ended = [each.document for each in self._known.values() if each.document.ended]
        for oldest in ended[: max(0, len(self._known) - MAX_DOCUMENTS)]:
            self.drop(oldest)

    def done(self, document: Document, content: bytes) -> None:
        """The document is translated."""
        document.state, document.share = State.DONE, 1.0
        document.expires_s = self._clock() + KEPT_S
        self._known.setdefault(document.id, _Kept(document)).content = content
        self._unfetched.put(str(document.id))
        self._make_room(document)

    def failed(self, document: Document, error: RequestError) -> None:
        """The document cannot be translated."""
        document.state, document.error = State.FAILED, error
        document.expires_s = self._clock() + KEPT_S

    def find(self, api: str, document_id: str) -> Document:
        """A document that was uploaded by this API."""
        self._drop_expired()
        try:
            found = self._known.get(UUID(document_id))
        except ValueError:
            found = None
        if found is None or found.document.api != api:
            raise UnknownDocumentError(NOT_FOUND)
        return found.document

    def result(self, document: Document) -> bytes:
        """The translated file."""
        if document.state is not State.DONE:
            raise DocumentNotDoneError("Document translation is not done")
        return self._known[document.id].content

    def delivered(self, document: Document, kept_s: float = DELIVERED_KEPT_S) -> None:
        """A client received the result."""
        self._unfetched.fetched(str(document.id))
        kept = self._known.get(document.id)
        if kept is not None and not kept.delivered:
            kept.delivered = True
            document.expires_s = min(document.expires_s or math.inf, self._clock() + kept_s)

    def cancel(self, document: Document) -> None:
        """End the translation, or delete the result."""
        if document.state in (State.FAILED, State.CANCELLED):
            return
        document.state = State.CANCELLED
        document.expires_s = self._clock() + KEPT_S
        kept = self._known[document.id]
        kept.content = b""
        self._unfetched.fetched(str(document.id))
        if kept.end is not None:
            kept.end()

    def drop(self, document: Document) -> None:
        """Forget a document."""
        self._known.pop(document.id, None)
        self._unfetched.fetched(str(document.id))

    def _drop_expired(self) -> None:
        now_s = self._clock()
        for each in [kept.document for kept in self._known.values()]:
            if each.expires_s is not None and each.expires_s <= now_s:
                self.drop(each)

    def _make_room(self, newest: Document) -> None:
        total = sum(len(kept.content) for kept in self._known.values())
        for kept in sorted(self._known.values(), key=lambda kept: not kept.delivered):
            if total <= self._max_bytes:
                return
            if kept.content and kept.document is not newest:
                total -= len(kept.content)
                self.drop(kept.document)


def new_document(api: str, call: TranslateFile, replica_tag: str | None) -> Document:
    """A document of a file.

    Args:
        api: Name of the API.
        call: The file.
        replica_tag: Its id begins with it, so that routers find the replica.
    """
    return Document(
        new_document_id(replica_tag),
        api,
        result_name(call.name),
        call.request.target_lang,
        call.request.source_lang,
        secrets.token_hex(32).upper(),
    )
