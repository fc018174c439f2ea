"""Glossaries that routers keep: which store has them, and how requests reach it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_contract.glossaries import Packed
from dragoman_contract.languages import Languages
from dragoman_protocols.api import Answer
from dragoman_protocols.errors import (
    DefectError,
    GlossariesUnavailableError,
    GlossaryStoreError,
    InvalidFieldError,
)
from dragoman_protocols.glossaries.directory import DirectoryStore
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_protocols.glossaries.values import StoredGlossary
from dragoman_router.dialects.asking import Request
from dragoman_router.dialects.paths import DEEPL
from dragoman_router.errors import SettingsError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.settings import Settings

if TYPE_CHECKING:
    from dragoman_router.state.opening import SharedState

log = logging.getLogger(__name__)

Message = dict[str, Any]
Application = Callable[..., object]


class PackedStore(GlossaryStore, Protocol):
    """A store that also hands glossaries out as pods get them."""

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary, packed; raises as `get` does."""
        ...


class NoStore(MemoryStore):
    """Keeps nothing: several routers without shared state would each know other glossaries."""

    async def add(self, glossary: StoredGlossary) -> None:  # noqa: ARG002 - the store's signature
        """Refuse a glossary."""
        raise InvalidFieldError("glossaries need state that routers share (--state-url)")


def store_of(settings: Settings, shared: SharedState | None) -> PackedStore:
    """The store that the settings name.

    Raises:
        SettingsError: The directory cannot be used.
    """
    if not settings.keep_glossaries:
        return NoStore()
    if shared is not None:
        return shared.glossaries
    if settings.glossary_dir is None:
        return MemoryStore()
    try:
        return DirectoryStore(settings.glossary_dir)
    except GlossaryStoreError as error:
        raise SettingsError(f"--glossary-dir: {error}") from error


class KeptGlossaries:
    """See `http.attach_glossaries.Glossaries`.

    Args:
        store: Where they are.
        fleet: Whose pairs can have glossaries.
    """

    def __init__(self, store: PackedStore, fleet: Fleet) -> None:
        self._store = store
        self._fleet = fleet
        self._app: asyncio.Task[Application] | None = None

    async def named(self, glossary_ids: Sequence[str]) -> tuple[Packed, ...]:
        """See `http.attach_glossaries.Glossaries.named`."""
        try:
            return tuple([await self._store.packed(each) for each in dict.fromkeys(glossary_ids)])
        except GlossaryStoreError as error:
            log.warning("a glossary could not be read: %s", error)
            raise GlossariesUnavailableError(f"the glossary could not be read: {error}") from None

    async def answer(self, request: Request) -> Answer:
        """See `http.attach_glossaries.Glossaries.answer`."""
        if self._app is None:
            self._app = asyncio.create_task(asyncio.to_thread(self._application))
        try:
            return await _exchanged(await asyncio.shield(self._app), request)
        except Exception:
            log.exception("unforeseen error at %s %s", request.method, request.path)
            return DEEPL.error(DefectError("a defect; the router's log has more"), request)

    def _application(self) -> Application:
        # At the first request, in a thread: it imports an API of the pod's.
        from dragoman_router.state.glossary_api import glossary_app

        return glossary_app(self._store, self._served)

    def _served(self) -> tuple[Languages, ...]:
        deployments = [backend.deployment for backend in self._fleet.backends.values()]
        if not all(deployment.languages for deployment in deployments):
            return ()
        return tuple(entry for deployment in deployments for entry in deployment.languages)


async def _exchanged(app: Application, request: Request) -> Answer:
    """One request, its body read, answered by an ASGI application."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.raw_path,
        "root_path": "",
        "query_string": request.query,
        "headers": request.headers,
        "client": (request.client, 0),
        "server": ("router", 80),
    }
    came = [{"type": "http.request", "body": request.body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        # A client's disconnect cancels this task.
        return came.pop() if came else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)  # type: ignore[misc]
    start, *parts = sent
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in start["headers"]
        if name != b"content-length"
    )
    return Answer(start["status"], b"".join(part.get("body", b"") for part in parts), headers)
