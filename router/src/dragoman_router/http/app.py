"""The ASGI application: from a request's head to the last byte of its answer."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from dragoman_contract.glossaries import Packed, named
from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    CHARACTERS_LEFT_HEADER,
    DEPLOYMENT_HEADER,
    ENDPOINT_HEADER,
    GLOSSARIES_HEADER,
    REPLICA_HEADER,
    ROUTE_HEADER,
    ROUTER_HEADER,
    SOURCE_LANG_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_contract.serving import EXTENSION, BoundedProtocol, Exchange
from dragoman_protocols.api import NOTHING, Answer, Endpoint, Kind, Limits, Peek, Site, Usage
from dragoman_protocols.errors import (
    DefectError,
    DrainingError,
    InvalidFieldError,
    KeyMissingError,
    RequestError,
)
from dragoman_protocols.forms import first
from dragoman_protocols.multipart import MultipartReader
from dragoman_router.access.accounts import NO_CHARGE, Charge
from dragoman_router.access.gate import Gate
from dragoman_router.access.keys import KEY_NEEDED
from dragoman_router.dialects.asking import Request
from dragoman_router.dialects.paths import document_of, family, may_bring_key, recognise, with_body
from dragoman_router.fleet.connections import ExchangeError, Headers, Reply
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.http.attach_glossaries import Glossaries
from dragoman_router.http.busy_polling import BusyPolling
from dragoman_router.http.documents import fetch, owner
from dragoman_router.http.placement import Catalogue, Detector, Placement, place
from dragoman_router.http.proxy import Answered, Job, Proxy
from dragoman_router.http.reading import (
    ClientGoneError,
    Memory,
    Receive,
    Room,
    Scope,
    Send,
    read_body,
    read_head,
)
from dragoman_router.metrics import Metrics
from dragoman_router.routing.spans import traceparent
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)


HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110 section 7.6.1; those of one connection are not passed on to another."""
OURS = frozenset(
    name.lower().encode()
    for name in (
        *(CHARACTERS_LEFT_HEADER, DEPLOYMENT_HEADER, GLOSSARIES_HEADER),
        *(REPLICA_HEADER, ROUTER_HEADER, SOURCE_LANG_HEADER, TIMEOUT_HEADER),
    )
) | {
    b"content-length",
    b"expect",
    b"traceparent",
    b"x-forwarded-for",
}
"""Written anew."""

PEEKED = (Kind.TRANSLATE, Kind.FILE)
"""A tuple, the commonest first: comparing is cheaper than hashing an Enum."""
DOCUMENT = "document"
FORWARDED_PROTO = b"x-forwarded-proto"

_CHARACTERS, _DEPLOYMENT, _ENDPOINT, _ROUTE = (
    name.lower().encode() for name in (CHARACTERS_HEADER, DEPLOYMENT_HEADER, ENDPOINT_HEADER, ROUTE_HEADER)
)


NO_CONTENT = 204
NEVER_S = float("inf")
TIMEOUT = TIMEOUT_HEADER.lower().encode()

LOOK_S = 0.05
"""How often a drain looks whether the last request has ended; counting them with an event would cost each one."""


@dataclass(slots=True)
class State:
    """What a running router is made of.

    Args:
        fleet: Deployments.
        catalogue: What they serve together.
        proxy: Passes requests on.
        gate: Keys and rates.
        metrics: Counts.
        memory: For bodies.
        detect: Finds out languages.
        chance: Of trace ids.
        glossaries: Those that this router keeps for callers.
        draining: Whether this router terminates.
        drained: Whether the time to finish requests is over; those that are cancelled from then on are refused.
        active: Requests that are not answered.
    """

    fleet: Fleet
    catalogue: Catalogue
    proxy: Proxy
    gate: Gate
    metrics: Metrics
    memory: Memory
    detect: Detector
    chance: Random
    glossaries: Glossaries
    draining: bool = False
    drained: bool = False
    active: int = 0

    async def idle(self, hurry: asyncio.Event) -> None:
        """Wait until nothing is active, or somebody is in a hurry."""
        while self.active and not hurry.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), LOOK_S)


class App:
    """The application.

    Args:
        state: What it is made of.
        settings: Bounds.
    """

    def __init__(self, state: State, settings: Settings) -> None:
        self._state = state
        self._settings = settings
        self._router = b"x-dragoman-router: " + settings.router_id.encode("ascii", "replace")
        self._scheme = b"http" if settings.tls_cert is None else b"https"
        self._loop = asyncio.get_running_loop()
        self._polling = (
            BusyPolling(settings.busy_poll_ms / 1000, self._loop) if settings.busy_poll_ms else None
        )

    async def __call__(self, scope: Scope, receive: Receive, _: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        connection: BoundedProtocol = scope["extensions"][EXTENSION]
        exchange = connection.exchange
        room = Room(self._state.memory)
        self._state.active += 1
        if self._polling is not None:
            self._polling.extend()
        try:
            await self._answer(scope, receive, exchange, room)
        except ClientGoneError:
            self._state.metrics.gone.inc()
        except ExchangeError:
            connection.abort()
        except asyncio.CancelledError:
            # The client left, or the drain ended in the middle of an answer.
            self._state.metrics.gone.inc()
            connection.abort()
        except Exception:
            # Part of an answer has left, or even the refusal failed: the client must not take it for a whole one.
            self._report()
            connection.abort()
        finally:
            self._state.active -= 1
            room.close()

    async def _answer(self, scope: Scope, receive: Receive, exchange: Exchange, room: Room) -> None:
        began_s = self._loop.time()
        request = read_head(scope)
        endpoint: Endpoint | None = None
        try:
            endpoint = recognise(request)
            kind = endpoint.kind
            self._state.gate.early(request)
            keyless = self._state.gate.lacks_key(request) and endpoint.needs_key
            if keyless and not may_bring_key(endpoint):
                raise KeyMissingError(KEY_NEEDED)
            if kind is Kind.FILE:
                await self._read_upload(request, endpoint, receive, room, keyless)
            else:
                await read_body(request, receive, self._settings.max_body_bytes, room)
                endpoint = with_body(endpoint, request)
                if keyless:
                    self._state.gate.late(request, endpoint.key_field)
            if kind is Kind.GLOSSARIES:
                await self._state.gate.admit(request, 0)  # Nothing is reserved, nothing is charged.
                answer = await self._state.glossaries.answer(request)
            elif kind is Kind.RESPOND:
                answer = await self._respond(request, endpoint)
            else:
                await self._pass_on(request, endpoint, began_s, exchange)
                return
        except RequestError as error:
            self._state.metrics.refused.labels(error.code).inc()
            answer = self._error(error, request, endpoint)
        except (ClientGoneError, ExchangeError):
            raise
        except asyncio.CancelledError:
            if not self._state.drained or exchange.disconnected or exchange.response_started:
                raise
            answer = self._error(
                DrainingError("this router terminates and could not finish the request; send it again"),
                request,
                endpoint,
            )
        except Exception:
            if exchange.response_started:
                raise
            self._report()
            answer = self._error(DefectError("a defect; the router's log has more"), request, endpoint)
        await self._send(answer, exchange)

    def _error(self, error: RequestError, request: Request, endpoint: Endpoint | None) -> Answer:
        """An error in the format of the request's API."""
        return (family(request) if endpoint is None else endpoint.api).error(error, request)

    def _report(self) -> None:
        """Log and count the exception that is being handled."""
        self._state.metrics.defects.inc()
        log.exception("unexpected exception")

    async def _read_upload(
        self, request: Request, endpoint: Endpoint, receive: Receive, room: Room, keyless: bool
    ) -> None:
        """Read a form with a file; without a key in its head no further than one may be awaited in it.

        Raises:
            KeyMissingError: It has none, or not within the first `max_body_bytes`.
        """
        gate, field = self._state.gate, endpoint.key_field or ""
        form = MultipartReader(request.header(b"content-type"))
        seen = 0

        def look(part: bytes) -> None:
            nonlocal seen
            seen += len(part)
            form.feed(part)
            if keyless and gate.lacks_key(request):
                if key := first(form.fields, field):
                    gate.check(request, key.encode())
                elif form.spoiled or seen > self._settings.max_body_bytes:
                    raise KeyMissingError(KEY_NEEDED)

        await read_body(request, receive, self._settings.max_file_bytes, room, look)
        if keyless and gate.lacks_key(request):
            raise KeyMissingError(KEY_NEEDED)
        request.upload = form.finish()

    async def _pass_on(
        self, request: Request, endpoint: Endpoint, began_s: float, exchange: Exchange
    ) -> None:
        state, kind = self._state, endpoint.kind
        peek = NOTHING
        if kind in PEEKED and endpoint.peek is not None:
            peek = endpoint.peek(request, state.catalogue.offer())
        exempt = state.gate.asks_for_keys and not endpoint.needs_key
        caller, charge = (
            (request.client, NO_CHARGE) if exempt else await state.gate.admit(request, peek.characters)
        )
        characters = 0
        try:
            placement, job, answered = await self._answered(request, peek, kind, caller, charge)
            characters = charged(answered.reply, peek)
        finally:
            charge.settle(characters)
        key = answered.backend.deployment.key
        try:
            await self._relay(answered, placement, job, exchange)
        finally:
            answered.close()
            seconds = self._loop.time() - began_s
            state.metrics.answered(key, endpoint.api.name, answered.reply.status, seconds)

    async def _answered(
        self, request: Request, peek: Peek, kind: Kind, caller: str, charge: Charge
    ) -> tuple[Placement, Job, Answered]:
        """A replica's answer, and where the request went."""
        state, settings = self._state, self._settings
        glossaries: tuple[Packed, ...] = ()
        if peek.glossary_ids:
            glossaries = await state.glossaries.named(peek.glossary_ids)
        timeout_s = settings.file_timeout_s if kind is Kind.FILE else settings.request_timeout_s
        own_s = _time_limit_s(request.header(TIMEOUT))
        budget_s = min(own_s, timeout_s)
        deadline_s = self._loop.time() + budget_s
        if kind is Kind.DOCUMENT:
            backend, endpoint = owner(state.fleet, document_of(request), request.deployment)
            placement = Placement((backend.deployment.key,), DOCUMENT)
            job = Job(self._head(request, placement), request.body, placement.keys, caller, deadline_s)
            return placement, job, await fetch(job, backend, endpoint)
        placement = await place(request, peek, state.fleet, state.catalogue, state.detect)
        if kind is Kind.FILE and request.header(FORWARDED_PROTO) is None:
            request.headers.append((FORWARDED_PROTO, self._scheme))
        head = self._head(request, placement, glossaries, charge.left)
        job = Job(head, request.body, placement.keys, caller, deadline_s, glossaries, budget_s)
        job.sends_tag = kind is Kind.FILE
        job.own_limit = own_s < NEVER_S
        return placement, job, await state.proxy.answer(job)

    async def _respond(self, request: Request, endpoint: Endpoint) -> Answer:
        """What the router answers itself."""
        state = self._state
        key = state.gate.known(request) if endpoint.needs_key else None
        usage = Usage(*await state.gate.used(key))
        site = Site(
            state.catalogue.offer(),
            state.catalogue.pairs(),
            state.catalogue.models(),
            Limits(None, self._settings.max_body_bytes),
            state.gate.asks_for_keys,
            usage=usage,
        )
        assert endpoint.respond is not None
        # In a thread: naming a hundred languages takes milliseconds when they are first named.
        return await asyncio.to_thread(endpoint.respond, request, site)

    def _head(
        self,
        request: Request,
        placement: Placement,
        glossaries: tuple[Packed, ...] = (),
        characters_left: int | None = None,
    ) -> bytes:
        """The request line and headers that a replica gets."""
        # llhttp lets neither blanks nor control characters into a target, nor line ends into a header.
        target = request.raw_path + b"?" + request.query if request.query else request.raw_path
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
        given: bytes | None = None
        forwarded = request.client.encode()
        dropped = self._dropped(request)
        for name, value in request.headers:
            if name == b"traceparent":
                given = value
            elif name == b"x-forwarded-for":
                forwarded = value + b", " + forwarded
            elif name not in dropped:
                lines.append(name + b": " + value)
        lines.append(b"traceparent: " + traceparent(given, self._state.chance))
        lines.append(b"x-forwarded-for: " + forwarded)
        if placement.reason != DOCUMENT:
            lines.append(self._router)
        if placement.detected is not None:
            lines.append(f"{SOURCE_LANG_HEADER}: {placement.detected}".encode())
        if characters_left is not None:
            lines.append(f"{CHARACTERS_LEFT_HEADER}: {characters_left}".encode())
        if glossaries:
            lines.append(f"{GLOSSARIES_HEADER}: {named(glossaries)}".encode())
        if request.body or request.method not in ("GET", "DELETE"):
            lines.append(b"content-length: %d" % len(request.body))
        lines.append(b"\r\n")
        return b"\r\n".join(lines)

    def _dropped(self, request: Request) -> frozenset[bytes]:
        dropped = self._state.gate.dropped_headers
        connection = request.header(b"connection")
        if connection is not None and connection.lower() not in (b"keep-alive", b"close"):
            dropped |= {each.strip().lower() for each in connection.split(b",")}
        return dropped

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
        if self._state.draining:
            exchange.keep_alive = False
        if reply.body is not None:
            await exchange.answer(reply.status, headers, reply.body)
            return
        send = exchange.send
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        while chunk := await reply.next_chunk():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, answer: Answer, exchange: Exchange) -> None:
        """An answer of the router's own."""
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
        if answer.status != NO_CONTENT:
            if all(name != b"content-type" for name, _ in headers):
                headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", str(len(answer.body)).encode()))
        if self._state.draining or answer.close or answer.status == 413:
            exchange.keep_alive = False
        await exchange.answer(answer.status, headers, answer.body)


def charged(reply: Reply, peek: Peek) -> int:
    """The characters that a replica's answer is charged for; none where it is an error.

    The pod counts them, as it knows what it translated. The router's own count holds for older pods, which do not.
    """
    if reply.status >= 400:
        return 0
    for name, value in reply.headers:
        if name == _CHARACTERS and value.removeprefix(b"-").isdigit():
            return int(value)
    return peek.characters


def _time_limit_s(asked: bytes | None) -> float:
    """Seconds that a client gives its request; infinity where it sets no limit.

    Raises:
        InvalidFieldError: It is no positive number.
    """
    if asked is None:
        return NEVER_S
    try:
        limit_s = float(asked)
    except ValueError:
        limit_s = 0.0
    if not limit_s > 0:
        raise InvalidFieldError(f"{TIMEOUT_HEADER}: a positive number of seconds is wanted")
    return limit_s


@lru_cache(maxsize=256)
def _reason(reason: str, attempts: int, queued_s: float, detected: str | None) -> bytes:
    said = reason if reason == DOCUMENT else f"{reason}; least-in-flight"
    if attempts > 1:
        said += f"; attempts={attempts}"
    if queued_s:
        said += f"; queued={queued_s:.2f}s"
    if detected is not None:
        said += f"; detected={detected}"
    return said.encode()
