"""Glossaries that routers keep: between the router's requests and a store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from dragoman_contract.glossaries import Packed
from dragoman_contract.languages import Languages
from dragoman_protocols.api import Answer
from dragoman_protocols.errors import DefectError, GlossariesUnavailableError, GlossaryStoreError
from dragoman_protocols.glossaries.store import GlossaryStore
from dragoman_router.dialects.asking import Request
from dragoman_router.dialects.paths import DEEPL
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.http.reading import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

Application = Callable[[Scope, Receive, Send], object]


class PackedStore(GlossaryStore, Protocol):
    """A store that also hands glossaries out as pods get them."""

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary, packed; raises as `get` does."""
        ...


class SharedGlossaries:
    """See `lending.Glossaries`.

    Args:
        store: Where they are.
        fleet: Whose pairs can have glossaries.
    """

    def __init__(self, store: PackedStore, fleet: Fleet) -> None:
        self._store = store
        self._fleet = fleet
        self._app: asyncio.Task[Application] | None = None

    async def named(self, glossary_ids: Sequence[str]) -> tuple[Packed, ...]:
        """See `lending.Glossaries.named`."""
        try:
            return tuple([await self._store.packed(each) for each in dict.fromkeys(glossary_ids)])
        except GlossaryStoreError as error:
            log.warning("a glossary could not be read: %s", error)
            raise GlossariesUnavailableError(f"the glossary could not be read: {error}") from None

    async def answer(self, request: Request) -> Answer:
        """See `lending.Glossaries.answer`."""
        if self._app is None:
            self._app = asyncio.create_task(asyncio.to_thread(self._application))
        try:
            return await _exchanged(await asyncio.shield(self._app), request)
        except Exception:
            log.exception("unforeseen error at %s %s", request.method, request.path)
            return DEEPL.error(DefectError("a defect; the router's log has more"), request)

    def _application(self) -> Application:
        # Only once somebody asks for it, for it brings a dialect along; in a thread, for that takes time.
        from dragoman_router.glossaries.serving import glossary_app

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
        # Who leaves is cancelled; the application need not watch.
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
