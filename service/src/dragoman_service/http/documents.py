"""Documents that are translated after their upload was answered, and kept until they are fetched."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from contextlib import ExitStack

from cachetools import FIFOCache

from dragoman_contract.routing import REPLICA_HEADER, TIMEOUT_HEADER, new_document_id
from dragoman_protocols.deepl.documents import Document, State
from dragoman_protocols.deepl.errors import DocumentNotDoneError
from dragoman_protocols.errors import DrainingError, RequestError, UnknownDocumentError
from dragoman_protocols.messages import Request
from dragoman_service.http.answering import Answering, check_left
from dragoman_service.http.files import Files, ReadFile, result_name

log = logging.getLogger(__name__)

MAX_DOCUMENTS = 1000
"""States that are kept; the oldest are dropped."""

MAX_CONCURRENT = 8
"""Bounds the memory that files take while they are read, translated and written."""

UPLOAD_WAIT_S = 2.0
"""How long an upload waits for the translation: the official clients request the state immediately, and then every five
seconds, which is long for a short letter."""


CANCELLED = "cancelled by its client"


class Documents:
    """All documents of a pod; used from the event loop alone."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._files = Files(answering.lifecycle.unfetched)
        self._known = FIFOCache[str, Document](MAX_DOCUMENTS)
        self._working: dict[str, asyncio.Task[None]] = {}

    @property
    def full(self) -> bool:
        """Whether as many are being translated as may be."""
        return len(self._working) >= MAX_CONCURRENT

    async def start(self, api: str, name: str, file: ReadFile, request: Request) -> Document:
        """Start to translate a document; its slot is released when that is done.

        Raises:
            RequestError: It is not admitted.
        """
        document_id = new_document_id(request.text_header(REPLICA_HEADER)).hex.upper()
        document = Document(document_id, secrets.token_hex(32).upper(), result_name(name), file.characters)
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._translate(api, document, file, request, admitted))
        self._working[document_id] = task

        def ended(_: asyncio.Task[None]) -> None:
            del self._working[document_id]
            # The end of the drain cancels a task even before its first step, so the task cannot settle this itself.
            if not admitted.done():
                admitted.set_exception(DrainingError("this replica is shutting down; ask another one"))

        task.add_done_callback(ended)
        self._end_with_the_drain(task)
        await admitted
        self._known[document.document_id] = document
        await asyncio.wait((task,), timeout=UPLOAD_WAIT_S)
        return document

    def find(self, document_id: str, document_key: str) -> Document:
        """See `dragoman_protocols.deepl.documents.Documents.find`."""
        found = self._known.get(document_id)
        if found is None or not hmac.compare_digest(found.document_key.encode(), document_key.encode()):
            raise UnknownDocumentError("Document not found")
        return found

    def take(self, document_id: str, document_key: str) -> bytes:
        """See `dragoman_protocols.deepl.documents.Documents.take`."""
        document = self.find(document_id, document_key)
        if document.state is not State.DONE:
            raise DocumentNotDoneError("Document translation is not done")
        del self._known[document_id]
        content = self._files.take(document_id)
        if content is None:
            raise UnknownDocumentError("Document not found: it was kept for too long")
        return content

    def cancel(self, document_id: str, document_key: str) -> Document:
        """See `dragoman_protocols.deepl.documents.Documents.cancel`."""
        document = self.find(document_id, document_key)
        if document.state is State.TRANSLATING:
            document.charged_share = document.share
            self._working[document_id].cancel()
        elif document.state is State.DONE:
            document.charged_share = 1.0
            self._files.take(document_id)
        else:
            return document
        document.state, document.error = State.ERROR, CANCELLED
        return document

    def _end_with_the_drain(self, task: asyncio.Task[None]) -> None:
        cut_off = self._answering.lifecycle.cut_off
        cut_off.add(task.cancel)
        task.add_done_callback(lambda _: cut_off.discard(task.cancel))

    async def _translate(
        self,
        api: str,
        document: Document,
        file: ReadFile,
        upload: Request,
        admitted: asyncio.Future[None],
    ) -> None:
        answering, request = self._answering, file.request
        with ExitStack() as stack:
            account = stack.enter_context(answering.accounting.request(api, upload))
            try:
                # Not in the drain, even from a direct client: the Service would send its status requests elsewhere.
                stack.enter_context(answering.lifecycle.admit())
                check_left(upload, document.characters)
                limit_s = answering.admission.time_limit_s(
                    upload.text_header(TIMEOUT_HEADER), document.characters
                )
                cost = await asyncio.to_thread(lambda: file.cost)
                slot = stack.enter_context(answering.admission.admit(cost, limit_s))
                account.admitted(slot, 0 if request is None else len(request.texts))
                if request is not None:
                    account.pair = await asyncio.to_thread(answering.translator.check, request)
                admitted.set_result(None)
                document.started_s = time.monotonic()
                translator = answering.translator.on_behalf_of(account.origin, limit_s, document.advance)
                content, document.findings = await file.translated(translator)
            except asyncio.CancelledError:
                if document.error == CANCELLED:
                    account.disconnected()
                raise
            except RequestError as error:
                account.refused(error)
                if not admitted.done():
                    admitted.set_exception(error)
                document.state, document.error = State.ERROR, str(error)
            except Exception as error:
                if not admitted.done():
                    admitted.set_exception(error)
                document.state, document.error = State.ERROR, "an unexpected error; the pod's log has more"
                log.exception("a document was not translated")
            else:
                self._files.put(document.document_id, document.name, content)
                document.state = State.DONE
                answering.translated[api] += document.characters
                account.translated()
