"""Documents that are translated after their upload was answered, and wait until they are fetched."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum

from starlette.datastructures import Headers

from dragoman_contract.routing import REPLICA_HEADER, new_document_id
from dragoman_protocols.blanks import put_back
from dragoman_protocols.errors import RequestError
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.dialects.deepl.asked import Asked
from dragoman_service.dialects.deepl.dialect import DeepL
from dragoman_service.dialects.deepl.errors import DocumentNotDoneError, DocumentNotFoundError
from dragoman_service.files.document import FileDocument
from dragoman_service.http.answering import Answering, check_left
from dragoman_service.http.shelf import Shelf, Shelved

log = logging.getLogger(__name__)

MOST_DOCUMENTS = 1000
"""States that are kept; the oldest make room."""

MOST_AT_ONCE = 8
"""Bounds the memory that files take while they are read, translated and written."""

PATIENCE_S = 2.0
"""How long an upload waits for the translation: the official clients look at once, and then every five
seconds, which is long for a short letter."""


class State(StrEnum):
    """How far a document is, as DeepL calls it."""

    TRANSLATING = "translating"
    DONE = "done"
    ERROR = "error"


@dataclass
class Document:
    """One document.

    Args:
        document_id: Names it.
        document_key: Whoever has it may ask for it.
        name: For the one who saves it.
        characters: What it is charged for, and what is counted as usage once it is done.
        state: How far it is.
        error: Why it was not translated, in words.
        charged: Characters that answers so far have charged for it.
    """

    document_id: str
    document_key: str
    name: str
    characters: int
    state: State = State.TRANSLATING
    error: str = ""
    charged: int = 0


class Documents:
    """All documents of a pod; used from the event loop alone.

    Args:
        answering: Admits and counts their translation as it does requests.
        dialect: Counts usage.
    """

    def __init__(self, answering: Answering, dialect: DeepL) -> None:
        self._answering = answering
        self._dialect = dialect
        self._shelf = Shelf()
        self._known: OrderedDict[str, Document] = OrderedDict()
        self._working: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        """Whether as many are being translated as may be."""
        return len(self._working) >= MOST_AT_ONCE

    async def begin(
        self, name: str, file: FileDocument, asked: Asked, wanted: TranslationRequest | None, headers: Headers
    ) -> Document:
        """Begin to translate a document; its place is held until that is done.

        Args:
            name: Of its file.
            file: It, read.
            asked: All of its texts.
            wanted: What the core is asked for; None where there is nothing to translate.
            headers: Of the request that brought it.

        Raises:
            RequestError: It is not taken on.
        """
        document_id = new_document_id(headers.get(REPLICA_HEADER)).hex.upper()
        document = Document(document_id, secrets.token_hex(32).upper(), name, asked.characters)
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._translate(document, file, asked, wanted, headers, taken))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        self._end_with_the_drain(task)
        await taken
        self._known[document.document_id] = document
        while len(self._known) > MOST_DOCUMENTS:
            self._known.popitem(last=False)
        await asyncio.wait((task,), timeout=PATIENCE_S)
        return document

    def find(self, document_id: str, document_key: str) -> Document:
        """A document.

        Raises:
            DocumentNotFoundError: There is none of this id, or no longer, or the key is another's.
        """
        found = self._known.get(document_id)
        if found is None or not hmac.compare_digest(found.document_key.encode(), document_key.encode()):
            raise DocumentNotFoundError("Document not found")
        return found

    def take(self, document_id: str, document_key: str) -> Shelved:
        """A document's translation, which is forgotten.

        Raises:
            DocumentNotFoundError: See `find`; or it has waited for too long.
            DocumentNotDoneError: It is not done.
        """
        document = self.find(document_id, document_key)
        if document.state is not State.DONE:
            raise DocumentNotDoneError("Document translation is not done")
        del self._known[document_id]
        content = self._shelf.take(document_id)
        self._answering.lifecycle.unfetched.fetched(document_id)
        if content is None:
            raise DocumentNotFoundError("Document not found: it waited for too long")
        return content

    def _end_with_the_drain(self, task: asyncio.Task[None]) -> None:
        given_up = self._answering.lifecycle.given_up

        def end(_: asyncio.Future[None]) -> None:
            task.cancel()

        given_up.add_done_callback(end)
        task.add_done_callback(lambda _: given_up.remove_done_callback(end))

    async def _translate(
        self,
        document: Document,
        file: FileDocument,
        asked: Asked,
        wanted: TranslationRequest | None,
        headers: Headers,
        taken: asyncio.Future[None],
    ) -> None:
        answering = self._answering
        with ExitStack() as held:
            account = held.enter_context(answering.accounting.request(self._dialect.name, headers))
            try:
                # Not in the drain, even from a direct client: the Service would lead its status requests elsewhere.
                held.enter_context(answering.lifecycle.admit())
                check_left(headers, document.characters)
                held.enter_context(self._dialect.usage.reserve(document.characters))
                limit_s = answering.admission.time_limit_s(None, document.characters)
                cost = await asyncio.to_thread(lambda: asked.cost)
                place = held.enter_context(answering.admission.admit(cost, limit_s))
                account.admitted(place, 0 if wanted is None else len(wanted.texts))
                if wanted is not None:
                    account.pair = await asyncio.to_thread(answering.translator.check, wanted)
                taken.set_result(None)
                translator = answering.translator.on_behalf_of(account.origin, limit_s)
                results = [] if wanted is None else await translator.translate(wanted)

                def rebuilt() -> bytes:
                    whole = [result.text for result in put_back(asked.texts, results, None)]
                    return file.rebuild(whole if file.texts else ())

                content = await asyncio.to_thread(rebuilt)
            except RequestError as error:
                account.refused(error)
                if not taken.done():
                    taken.set_exception(error)
                document.state, document.error = State.ERROR, str(error)
            except Exception as error:
                if not taken.done():
                    taken.set_exception(error)
                document.state, document.error = State.ERROR, "an unforeseen error; the pod's log has more"
                log.exception("a document was not translated")
            else:
                self._shelf.put(document.document_id, document.name, content)
                answering.lifecycle.unfetched.put(document.document_id)
                document.state = State.DONE
                self._dialect.usage.add(document.characters)
                account.translated()
