"""A router in the test's own loop, and replicas that answer by script."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from tests.support.waiting import until

from dragoman_contract.languages import Languages
from dragoman_router.access.keys import KeyRing
from dragoman_router.fleet.background import BackgroundTasks
from dragoman_router.http.app import App
from dragoman_router.http.server import http_server
from dragoman_router.http.state import State, assemble
from dragoman_router.oidc.issuer import Issuer
from dragoman_router.oidc.tokens import OidcVerifier, open_tokens
from dragoman_router.routing.deployments import Deployment, Replica
from dragoman_router.settings import Settings
from dragoman_router.state.opening import open_state
from dragoman_system.listening import bound_socket

Script = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One request as a replica got it, and the means to answer it."""

    def __init__(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        line, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.headers = dict(each.lower().split(": ", 1) for each in lines if each)
        self.body, self.writer = body, writer

    async def answer(self, body: object, status: int = 200, headers: str = "") -> None:
        content = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}"
        await self.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()


class Upstream:
    """One replica: keeps the requests that it received, and answers by script; without one, with its own name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.received: list[Exchange] = []
        self.script: Script | None = None
        self.gone = asyncio.Event()
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> Upstream:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def translations(self) -> list[Exchange]:
        return [each for each in self.received if each.target not in ("/readyz", "/drained")]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n"))[:-4]
                length = next(
                    (
                        int(line[16:])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                exchange = Exchange(head, await reader.readexactly(length), writer)
                self.received.append(exchange)
                await (self.script or self._default)(exchange)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            self.gone.set()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            with suppress(ConnectionError):
                writer.transport.abort()

    async def _default(self, exchange: Exchange) -> None:
        await exchange.answer({"by": self.name})

    def replica(self, **fields: Any) -> Replica:
        return Replica(name=self.name, host="127.0.0.1", port=self.port, uid=self.name, **fields)


class Router:
    """A router that serves on a free port."""

    def __init__(self, state: State, port: int, http: aiohttp.ClientSession, scheme: str = "http") -> None:
        self.state, self.port, self.http = state, port, http
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.issuer: Issuer | None = None
        self.tokens: OidcVerifier | None = None

    def serve(self, name: str, *replicas: Replica, **fields: Any) -> None:
        """A deployment with these replicas."""
        pairs = fields.pop("pairs", {"en": ("de",)})
        languages = tuple(Languages(source=source, targets=targets) for source, targets in pairs.items())
        key = f"default/{name}"
        self.state.fleet.put(Deployment(key=key, languages=languages, **fields))
        self.state.fleet.set_replicas(key, list(replicas))

    async def translate(self, source: str = "en", target: str = "de", **options: Any) -> tuple[int, Any, Any]:
        """The native API; status, body and headers."""
        body = {"text": options.pop("text", "Hello"), "source_lang": source, "target_lang": target}
        return await self.post(options.pop("path", "/translate"), body, **options)

    async def post(self, path: str, body: object, **options: Any) -> tuple[int, Any, Any]:
        async with self.http.post(self.url + path, json=body, **options) as answer:
            return answer.status, await answer.json(), answer.headers

    async def get(self, path: str, **options: Any) -> tuple[int, Any, Any]:
        async with self.http.get(self.url + path, **options) as answer:
            return answer.status, await answer.json(), answer.headers

    async def raw(self, data: bytes, *more: bytes, deadline_s: float = 5) -> bytes:
        """Write bytes, and read until the router closes or `deadline_s` passed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        got = b""
        try:
            for part in (data, *more):
                with suppress(ConnectionError):
                    writer.write(part)
                    await writer.drain()
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(deadline_s):
                    while chunk := await reader.read(65536):
                        got += chunk
        finally:
            writer.transport.abort()
        return got


StartRouter = Callable[..., Awaitable[Router]]
StartUpstream = Callable[..., Awaitable[Upstream]]


@asynccontextmanager
async def running(send_buffer_bytes: int | None = None, **options: Any) -> AsyncIterator[Router]:
    """A router as `dragoman router` wires it, without a source."""
    ring = None
    if "keys_dir" in options:
        ring = KeyRing(options["keys_dir"], asyncio.get_running_loop().time)
    settings = Settings(_cli_parse_args=False, **{"router_id": "router-1", **options})
    stack = AsyncExitStack()
    shared = None if settings.state_url is None else await open_state(settings, stack)
    work = [] if shared is None else [asyncio.create_task(each) for each in shared.work()]
    issuer, tokens = (None, None) if settings.oidc_issuer is None else open_tokens(settings)
    state = assemble(settings, ring, shared, tokens)
    tender = BackgroundTasks(state.fleet, settings.router_id)
    listening = bound_socket(options.get("host", "127.0.0.1"), 0, settings.write_timeout_s)
    listening.listen()  # A test may connect before the server has had its turn.
    if send_buffer_bytes is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    server = http_server(App(state, settings), state, settings, None)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    async with aiohttp.ClientSession() as http:
        try:
            router = Router(state, listening.getsockname()[1], http)
            router.issuer, router.tokens = issuer, tokens
            yield router
        finally:
            await tender.aclose()
            server.should_exit = True
            await serving
            for backend in state.fleet.backends.values():
                backend.close()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            await stack.aclose()


@pytest.fixture
async def start_router() -> AsyncIterator[StartRouter]:
    stack: list[Any] = []

    async def start(**options: Any) -> Router:
        context = running(**options)
        stack.append(context)
        return await context.__aenter__()

    yield start
    for context in reversed(stack):
        await context.__aexit__(None, None, None)


@pytest.fixture
async def router(start_router: StartRouter) -> Router:
    return await start_router(max_queue_s=5)


@pytest.fixture
async def start_upstream() -> AsyncIterator[StartUpstream]:
    started: list[Upstream] = []

    async def start(name: str = "one", port: int = 0) -> Upstream:
        started.append(Upstream(name))
        return await started[-1].start(port)

    yield start
    for upstream in started:
        await upstream.stop()


@pytest.fixture(name="until")
def _until() -> Callable[..., Awaitable[None]]:
    """Wait for a condition with a deadline."""
    return until
