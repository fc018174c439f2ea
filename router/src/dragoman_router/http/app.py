"""The ASGI application: reads a request, admits it, answers or forwards it."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from functools import lru_cache

from dragoman_contract.http import MAX_TEXTS
from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    DEPLOYMENT_HEADER,
    ENDPOINT_HEADER,
    ROUTE_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_http.bodies import ClientGoneError, Message, Receive, Send
from dragoman_http.exchange import Exchange
from dragoman_http.protocol import EXTENSION, BoundedProtocol
from dragoman_protocols.calls import NOTHING, Peek
from dragoman_protocols.endpoints import Endpoint, EndpointKind
from dragoman_protocols.errors import DefectError, DrainingError, RequestError
from dragoman_protocols.glossaries.packed import Packed
from dragoman_protocols.keys import split_body
from dragoman_protocols.messages import Answer, time_limit_s
from dragoman_protocols.page.endpoints import FLEET_PATH
from dragoman_protocols.routes import recognise
from dragoman_protocols.site import Limits, Site, Usage
from dragoman_router.access.accounts import Charge
from dragoman_router.access.gate import Gate
from dragoman_router.fleet.connections import ExchangeError, Headers, Reply
from dragoman_router.http.documents import document_of, fetch, owner
from dragoman_router.http.fleet import check_fleet, observed_fleet, sees_fleet
from dragoman_router.http.job import Answered, Job
from dragoman_router.http.proxy import HOP_BY_HOP
from dragoman_router.http.reading import UploadReader, read_head
from dragoman_router.http.state import State
from dragoman_router.request import AuditEntry, RoutedRequest
from dragoman_router.routing.placement import DOCUMENT, Catalogue, Placement, Undetected, place
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)

FORWARDED_PROTO = b"x-forwarded-proto"

_CHARACTERS, _DEPLOYMENT, _ENDPOINT, _ROUTE = (
    name.lower().encode() for name in (CHARACTERS_HEADER, DEPLOYMENT_HEADER, ENDPOINT_HEADER, ROUTE_HEADER)
)
_COUNT = re.compile(rb"-?[0-9]{1,12}")

INLINE_FORM_BYTES = 64 * 1024
"""Larger forms are read in a thread: this many bytes take about 1 ms."""
INLINE_BYTES = 4_000
"""Larger requests for glossaries are read in a thread: checking entries takes about 1 ms for this many bytes."""
NEVER_S = float("inf")
TIMEOUT = TIMEOUT_HEADER.lower().encode()


class App:
    """The application."""

    def __init__(self, state: State, settings: Settings) -> None:
        self._state = state
        self._settings = settings
        self._scheme = b"http" if settings.tls_cert is None else b"https"
        self._loop = asyncio.get_running_loop()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request; its task is cancelled when its client disconnects."""
        if scope["type"] != "http":
            return
        state = self._state
        connection: BoundedProtocol = scope["extensions"][EXTENSION]
        request = read_head(scope, connection.client)
        exchange = Exchange(request, scope, receive, send, state.memory)
        if connection.task is not None:
            connection.current.on_disconnect = connection.task.cancel
        audit = state.audit
        if audit is not None:
            request.audit = AuditEntry()
            began_s = self._loop.time()
        state.active += 1
        try:
            await self._answer(request, exchange, crowded=connection.crowded)
        except ClientGoneError:
            state.metrics.disconnects.inc()
        except ExchangeError:
            connection.abort()
        except asyncio.CancelledError:
            # The client disconnected, or the drain ended in the middle of a response.
            state.metrics.disconnects.inc()
            connection.abort()
        except Exception:
            # Part of a response was sent: the client must not take it for all of it.
            self._report()
            connection.abort()
        finally:
            state.active -= 1
            if exchange.reserved_bytes:
                exchange.release()
            if audit is not None and request.audit is not None:
                audit.add(request, request.audit, self._loop.time() - began_s)

    async def _answer(self, request: RoutedRequest, exchange: Exchange, *, crowded: bool) -> None:
        began_s, state = self._loop.time(), self._state
        try:
            if crowded:
                await exchange.refuse_connection(self._settings.max_connections)
            endpoint = recognise(request)
            exchange.set_endpoint(endpoint)
            gate = state.gate
            keyless = gate if gate is not None and await gate.authenticate(request, endpoint) else None
            if endpoint.kind is EndpointKind.FILE:
                await self._read_form(request, exchange, endpoint, keyless)
            else:
                limit_bytes = endpoint.body_limit(self._settings.max_body_bytes)
                exchange.set_body(await exchange.read_body(limit_bytes))
                endpoint = exchange.endpoint
                if len(request.body) > INLINE_FORM_BYTES and request.is_form:
                    with suppress(RequestError):  # Raised again where the fields are used.
                        await asyncio.to_thread(request.form_fields)
            self._check_key_in_body(request, endpoint, keyless)
            if endpoint.kind is EndpointKind.GLOSSARIES:
                if gate is not None:
                    await gate.admit(request, 0)  # Nothing is reserved, nothing is charged.
                answer = await self._from_store(request, endpoint)
            elif endpoint.kind is EndpointKind.RESPOND:
                answer = await self._respond(request, endpoint)
            else:
                await self._pass_on(request, endpoint, began_s, exchange)
                return
        except RequestError as raised:
            error = raised if state.gate is None else await state.gate.failed(request, raised)
            answer = self._error(error, request, exchange)
            state.metrics.refused(request.candidates, error.code, answer.status)
        except (ClientGoneError, ExchangeError):
            raise
        except asyncio.CancelledError:
            if not state.drained or exchange.is_gone or exchange.started:
                raise
            cut = DrainingError("this router terminates and could not finish the request; send it again")
            answer = self._error(cut, request, exchange)
        except Exception:
            if exchange.started:
                raise
            self._report()
            answer = self._error(DefectError("a defect; the router's log has more"), request, exchange)
        if request.audit is not None:
            request.audit.status = answer.status
            request.audit.api = request.audit.api or exchange.api.name
        await exchange.answer(answer)

    async def _read_form(
        self, request: RoutedRequest, exchange: Exchange, endpoint: Endpoint, keyless: Gate | None
    ) -> None:
        """Read a form with a file, and check the key in it where the head has none."""
        upload = UploadReader(request, endpoint, keyless, self._settings.max_body_bytes)
        request.body = await exchange.read_body(self._settings.max_file_bytes, upload.feed)
        request.upload = upload.finish()

    @staticmethod
    def _check_key_in_body(request: RoutedRequest, endpoint: Endpoint, keyless: Gate | None) -> None:
        """Remove the key from the body, and check it where the head has none."""
        key: bytes | None = None
        if endpoint.api.key_fields and request.body:
            try:
                key, request.body = split_body(request, endpoint.api.key_fields)
            except RequestError:
                if keyless is None or endpoint.kind is EndpointKind.FILE:
                    raise
        if keyless is not None and endpoint.kind is not EndpointKind.FILE:
            keyless.check(request, endpoint.api, key)

    def _error(self, error: RequestError, request: RoutedRequest, exchange: Exchange) -> Answer:
        """An error in the format of the request's API."""
        if request.audit is not None:
            request.audit.api, request.audit.error = exchange.api.name, error.code
        return exchange.error(error)

    def _report(self) -> None:
        """Log and count the exception that is being handled."""
        self._state.metrics.internal_errors.inc()
        log.exception("unexpected exception")

    async def _pass_on(
        self, request: RoutedRequest, endpoint: Endpoint, began_s: float, exchange: Exchange
    ) -> None:
        state, kind = self._state, endpoint.kind
        catalogue = state.fleet.catalogue.within(request.scope)
        if endpoint.handle is not None:
            endpoint.handle(request)  # As the pod reads it, before the document is looked for.
        peek = NOTHING
        if endpoint.reading is not None:
            peek = endpoint.reading.peek(request, catalogue.offer())
        entry = request.audit
        if entry is not None:
            entry.api, entry.needs = endpoint.api.name, peek.needs
        caller, charge = request.client, None
        if state.gate is not None and (endpoint.needs_key or not state.gate.requires_keys):
            caller, charge = await state.gate.admit(request, peek.characters)
        characters = 0
        try:
            placement, job, answered = await self._answered(request, peek, catalogue, kind, caller, charge)
            characters = charged(answered.reply, peek)
        finally:
            if charge is not None:
                charge.settle(characters)
        if entry is not None:
            entry.deployment, entry.characters = answered.backend.deployment.key, characters
            entry.status = answered.reply.status
        state.characters[endpoint.api.name] += characters
        answered.backend.responses.characters += characters
        state.metrics.translated(answered.backend.deployment.key, peek.needs, request.key_name, characters)
        try:
            await self._relay(answered, placement, job, exchange)
        finally:
            state.proxy.close(answered)
            seconds = self._loop.time() - began_s
            answered.backend.responses.add(endpoint.api.name, answered.reply.status, seconds)

    async def _answered(
        self,
        request: RoutedRequest,
        peek: Peek,
        catalogue: Catalogue,
        kind: EndpointKind,
        caller: str,
        charge: Charge | None,
    ) -> tuple[Placement, Job, Answered]:
        """A replica's answer, and where the request went."""
        state, settings = self._state, self._settings
        is_file = kind is EndpointKind.FILE
        timeout_s = settings.file_timeout_s if is_file else settings.request_timeout_s
        own_s = time_limit_s(request.header(TIMEOUT))
        budget_s = min(own_s, timeout_s)
        deadline_s = self._loop.time() + budget_s
        if kind is EndpointKind.DOCUMENT:
            backend, endpoint = owner(state.fleet, document_of(request), request.deployment, request.scope)
            placement = Placement((backend.deployment.key,), DOCUMENT)
            request.candidates = placement.keys
            head = state.heads.write(request, placement)
            job = Job(head, request.body, placement.keys, caller, deadline_s, budget_s=budget_s)
            return placement, job, await fetch(job, backend, endpoint)
        found = place(request.deployment, peek, catalogue)
        if isinstance(found, Undetected):
            # In a thread: the model takes a millisecond, and up to a second when it is first used.
            tags = [await asyncio.to_thread(state.detect, *sample) for sample in found.samples]
            found = place(request.deployment, peek, catalogue, tags)
        assert isinstance(found, Placement)
        placement = found
        request.candidates = placement.keys
        glossaries: tuple[Packed, ...] = ()
        if peek.glossary_ids:
            glossaries = await state.glossaries.named(peek.glossary_ids, request.key_name)
        if is_file and request.header(FORWARDED_PROTO) is None:
            request.headers.append((FORWARDED_PROTO, self._scheme))
        head = state.heads.write(request, placement, glossaries, None if charge is None else charge.left)
        job = Job(head, request.body, placement.keys, caller, deadline_s, glossaries, budget_s)
        job.sends_tag = is_file
        job.own_limit = own_s < NEVER_S
        return placement, job, await state.proxy.answer(job)

    async def _respond(self, request: RoutedRequest, endpoint: Endpoint) -> Answer:
        """What the router answers itself."""
        state = self._state
        gate = state.gate
        account = gate.known(request) if gate is not None and request.key_name is not None else None
        if gate is None or account is None:
            usage = Usage(state.characters[endpoint.api.name])
        else:
            usage = Usage(*await gate.used(account))
        catalogue = state.fleet.catalogue.within(request.scope)
        keys_required, fleet = gate is not None and gate.requires_keys, None
        if endpoint.path == FLEET_PATH and self._settings.page:
            check_fleet(request, keys_required)
            fleet = observed_fleet(state, request, self._settings.router_id)
        site = Site(
            catalogue.offer(),
            catalogue.models(),
            Limits(MAX_TEXTS, self._settings.max_body_bytes),
            keys_required,
            usage=usage,
            page=self._settings.page,
            sees_fleet=sees_fleet(request, keys_required),
            fleet=fleet,
        )
        assert endpoint.respond is not None
        # In a thread: naming a hundred languages takes milliseconds when they are first named.
        return await asyncio.to_thread(endpoint.respond, request, site)

    async def _from_store(self, request: RoutedRequest, endpoint: Endpoint) -> Answer:
        """The answer to a request for glossaries."""
        assert endpoint.handle is not None
        if len(request.body) > INLINE_BYTES:
            answer = await asyncio.to_thread(endpoint.handle, request)
        else:
            answer = endpoint.handle(request)
        return await answer(self._state.glossaries.of(request.key_name))

    async def _relay(self, answered: Answered, placement: Placement, job: Job, exchange: Exchange) -> None:
        """The replica's answer, to the caller.

        Raises:
            ExchangeError: It broke off in the middle.
        """
        reply = answered.reply
        headers: Headers = [pair for pair in reply.headers if pair[0] not in HOP_BY_HOP]
        if self._settings.route_headers:
            headers.append((_DEPLOYMENT, answered.backend.label))
            headers.append((_ENDPOINT, answered.endpoint.label))
            headers.append(
                (_ROUTE, _reason(placement.reason, job.attempts, job.queued_s, placement.detected))
            )
        if reply.body is not None and exchange.cycle is not None:
            exchange.started = True
            await exchange.cycle.answer(reply.status, headers, reply.body)
            return
        await exchange.start(reply.status, headers)
        # A download takes as long as its client needs, which --write-timeout-s limits.
        silence_s = job.budget_s if placement.reason == DOCUMENT else None
        while chunk := await reply.next_chunk(silence_s):
            await exchange.send(chunk, more=True)
        await exchange.send(b"", more=False)


def charged(reply: Reply, peek: Peek) -> int:
    """The characters that a replica's answer is charged for; none where it is an error.

    The pod counts them, as it knows what it translated; without its header, or with one that is no count, the router's
    own count is used.
    """
    if reply.status >= 400:
        return 0
    for name, value in reply.headers:
        if name == _CHARACTERS and _COUNT.fullmatch(value):
            return int(value)
    return peek.characters


@lru_cache(maxsize=256)
def _reason(reason: str, attempts: int, queued_s: float, detected: str | None) -> bytes:
    text = reason if reason == DOCUMENT else f"{reason}; least-in-flight"
    if attempts > 1:
        text += f"; attempts={attempts}"
    if queued_s:
        text += f"; queued={queued_s:.2f}s"
    if detected is not None:
        text += f"; detected={detected}"
    return text.encode()
