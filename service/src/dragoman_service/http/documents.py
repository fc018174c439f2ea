"""The documents of a pod: translated in the background or within a request, and kept until they were fetched."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import UUID

from dragoman_contract.routing import REPLICA_HEADER, TIMEOUT_HEADER, new_document_id
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.documents import DELIVERED_KEPT_S, KEPT_S, Document, State, result_name
from dragoman_protocols.errors import (
    DocumentNotDoneError,
    DrainingError,
    RequestError,
    UnknownDocumentError,
)
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Answer, Request
from dragoman_service.core.costs import Cost
from dragoman_service.core.translator import Translator
from dragoman_service.http.answering import Answering, Work, check_left
from dragoman_service.http.files import ReadFile
from dragoman_service.http.lifecycle import Unfetched

MAX_DOCUMENTS = 1000
"""Documents that are known; the oldest that has ended is dropped first."""

MAX_CONCURRENT = 8
"""Bounds the memory that files take while they are read, translated and written."""

UPLOAD_WAIT_S = 2.0
"""How long an upload waits for the translation: the official clients request the state immediately, and then every five
seconds, which is long for a short letter."""

MAX_KEPT_BYTES = 128 * 1024 * 1024
"""Of all results."""


@dataclass
class _Kept:
    document: Document
    content: bytes = b""
    task: asyncio.Task[None] | None = None
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

    def add(self, document: Document, task: asyncio.Task[None] | None = None) -> None:
        """Add a document, which `task` translates."""
        self._drop_expired()
        self._known[document.id] = _Kept(document, task=task)
        ended = [each.document for each in self._known.values() if each.document.ended]
        for oldest in ended[: max(0, len(self._known) - MAX_DOCUMENTS)]:
            self.drop(oldest)

    def done(self, document: Document, content: bytes) -> None:
        """The document is translated."""
        document.state, document.share = State.DONE, 1.0
        document.expires_s = self._clock() + KEPT_S
        self._known[document.id].content = content
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
            raise UnknownDocumentError(
                "Document not found: there is none of this id, or it was kept for too long"
            )
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
        if kept.task is not None:
            kept.task.cancel()

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


def new_document(api: str, call: TranslateFile, request: Request) -> Document:
    """A document of a file, with the id that its replica gives it."""
    return Document(
        new_document_id(request.text_header(REPLICA_HEADER)),
        api,
        result_name(call.name),
        call.request.target_lang,
        call.request.source_lang,
        secrets.token_hex(32).upper(),
    )


@dataclass
class FileWork(Work):
    """A file that is translated within its request."""

    call: TranslateFile
    file: ReadFile
    document: Document
    store: DocumentStore

    is_file = True

    def __post_init__(self) -> None:
        self.document.characters = self.characters = self.file.characters
        self.text_count = len(self.file.words)

    @property
    def cost(self) -> Cost:
        """Of the texts without markup."""
        return self.file.cost

    def check(self, translator: Translator) -> Pair | None:
        """The pair.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.file.request) if self.file.request else None

    async def answer(self, translator: Translator) -> Answer:
        """Translate the file, and answer its document."""
        content, self.document.findings = await self.file.translated(translator)
        self.store.add(self.document)
        self.store.done(self.document, content)
        return self.call.render(self.document)


class BackgroundDocuments:
    """Translates documents after their uploads were answered."""

    def __init__(self, answering: Answering, store: DocumentStore) -> None:
        self._answering, self._store = answering, store
        self._working: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        """Whether as many are being translated as may be."""
        return len(self._working) >= MAX_CONCURRENT

    async def start(self, document: Document, file: ReadFile, request: Request) -> Document:
        """Start to translate a document; its slot is released when that is done.

        Raises:
            RequestError: It is not admitted.
        """
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._translate(document, file, request, admitted))
        self._working.add(task)
        self._store.add(document, task)

        def ended(_: asyncio.Task[None]) -> None:
            self._working.discard(task)
            # The end of the drain cancels a task even before its first step, so the task cannot settle this itself.
            if not admitted.done():
                admitted.set_exception(DrainingError("this replica is shutting down; ask another one"))

        task.add_done_callback(ended)
        self._end_with_the_drain(task)
        try:
            await admitted
        except BaseException:
            self._store.drop(document)
            raise
        await asyncio.wait((task,), timeout=UPLOAD_WAIT_S)
        return document

    def _end_with_the_drain(self, task: asyncio.Task[None]) -> None:
        cut_off = self._answering.lifecycle.cut_off
        cut_off.add(task.cancel)
        task.add_done_callback(lambda _: cut_off.discard(task.cancel))

    async def _translate(
        self, document: Document, file: ReadFile, upload: Request, admitted: asyncio.Future[None]
    ) -> None:
        answering, request = self._answering, file.request
        document.characters = file.characters
        with ExitStack() as stack:
            account = stack.enter_context(answering.accounting.request(document.api, upload))
            try:
                # Not in the drain, even from a direct client: the Service would send its status requests elsewhere.
                stack.enter_context(answering.lifecycle.admit())
                check_left(upload, file.characters)
                limit_s = answering.admission.time_limit_s(
                    upload.text_header(TIMEOUT_HEADER), file.characters
                )
                cost = await asyncio.to_thread(lambda: file.cost)
                slot = stack.enter_context(answering.admission.admit(cost, limit_s))
                account.admitted(slot, 0 if request is None else len(request.texts))
                if request is not None:
                    document.source_lang = request.source_lang
                    account.pair = await asyncio.to_thread(answering.translator.check, request)
                document.state, document.started_s = State.TRANSLATING, time.monotonic()
                admitted.set_result(None)
                translator = answering.translator.on_behalf_of(account.origin, limit_s, document.advance)
                content, document.findings = await file.translated(translator)
            except asyncio.CancelledError:
                if document.state is State.CANCELLED:
                    account.disconnected()
                raise
            except RequestError as error:
                self._failed(document, account.refused(error), admitted)
            except Exception:
                self._failed(document, account.refused(answering.accounting.defect()), admitted)
            else:
                self._store.done(document, content)
                answering.translated[document.api] += file.characters
                account.translated()

    def _failed(self, document: Document, error: RequestError, admitted: asyncio.Future[None]) -> None:
        if not admitted.done():
            admitted.set_exception(error)
        self._store.failed(document, error)
