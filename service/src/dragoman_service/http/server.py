"""Runs one pod: HTTP from the start, the engine loading beside it, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket

from dragoman_http.event_loop import keep_all_objects
from dragoman_http.limits import BACKLOG, WRITE_TIMEOUT_S, RequestLimits
from dragoman_http.protocol import BoundedProtocol
from dragoman_http.server import make_server
from dragoman_protocols.errors import RequestError
from dragoman_protocols.files import FILE_TIMEOUT_S
from dragoman_service.engine.protocol import Engine, Phase, Progress
from dragoman_service.errors import StartError
from dragoman_service.http.app import PodApp
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_system.listening import bound_socket

log = logging.getLogger(__name__)

LIMITS = RequestLimits(
    head_bytes=48 * 1024, headers=300, address_bytes=40 * 1024, arrival_timeout_s=FILE_TIMEOUT_S
)
"""More than a router accepts (44 KiB, 256 headers) and adds. deep-translator's client for LibreTranslate sends texts of
any length in the address."""

RELEASE_S = 0.5
"""Interval at which a leaving pod checks whether direct clients still send requests."""

ARRIVAL_S = 1.0
"""Maximum time for the first request to arrive on a connection that was accepted just before the listener closed."""

ARRIVAL_POLL_S = 0.05

CLOSING_S = 5
"""Time for requests to send their answers once the drain is over."""


def listen(host: str, port: int, write_timeout_s: float = WRITE_TIMEOUT_S) -> socket.socket:
    """A listening socket; see `bound_socket`.

    Raises:
        StartError: The address is not available.
    """
    try:
        listening = bound_socket(host, port, write_timeout_s)
        listening.listen(BACKLOG)
    except OSError as error:
        raise StartError(str(error)) from error
    return listening


class Pod:
    """One engine behind one HTTP server, from start to end.

    Args:
        app: The application; see `create_app`.
        engine: Loaded beside the server, closed after it.
        lifecycle: Its phase is set at every step.
        drain_timeout_s: Maximum seconds for requests in flight after SIGTERM.
        lame_duck_s: Maximum seconds before that in which requests are still accepted, unless all routers confirm
            earlier; None: the contract's time if there were requests lately, else 0.
    """

    def __init__(
        self,
        app: PodApp,
        engine: Engine,
        lifecycle: Lifecycle,
        drain_timeout_s: float,
        lame_duck_s: float | None = None,
    ) -> None:
        self._engine = engine
        self._warm_up = app.warm_up
        self._lifecycle = lifecycle
        self._drain_timeout_s = drain_timeout_s
        self._lame_duck_s = lame_duck_s
        self._end = asyncio.Event()
        self._server = make_server(
            app.app, LIMITS, app.client_stalled, closes=lifecycle.closes_connections, closing_s=CLOSING_S
        )

    async def run(self, listening: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT; a second one cuts the drain short.

        Raises:
            StartError: The engine did not load.
            EngineDeadError: The engine died since; raised once the pod has ended.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end_requested)
        serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        ending = asyncio.create_task(self._end.wait())
        loading = asyncio.create_task(self._load())
        try:
            await asyncio.wait((loading, ending, serving), return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
            await asyncio.wait((ending, serving), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                raise StartError("the HTTP server ended by itself; the log above has the reason")
            await self._leave()
            await self._drain()
            await self._engine.check()
        finally:
            ending.cancel()
            await self._close(loading, serving)

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()

        def report(progress: Progress) -> None:
            loop.call_soon_threadsafe(self._lifecycle.report, progress)

        try:
            await asyncio.gather(self._engine.load(report), self._warm_up())
        except StartError:
            self._lifecycle.fail()
            raise
        keep_all_objects()
        self._lifecycle.ready()
        phases = ", ".join(
            f"{phase} at {at_s:.1f}" for phase, at_s in self._lifecycle.phases_s.items() if at_s
        )
        log.info("ready after %.1f s (%s)", self._lifecycle.start_s, phases)

    def _end_requested(self) -> None:
        if self._end.is_set():
            self._drain_timeout_s = 0
            self._lifecycle.give_up()  # The drain may already wait, with its first timeout.
            self._lifecycle.released.set()
            self._lifecycle.unfetched.forget()
            self._server.force_exit = True
        self._end.set()

    async def _leave(self) -> None:
        """Be unready and serve on, until routers and Services send requests elsewhere."""
        self._lifecycle.leave()
        limit_s = self._lifecycle.routers.lame_duck_s(self._lame_duck_s)
        if self._lifecycle.phase is Phase.LEAVING and limit_s:
            log.info("leaving within %g s, or once all routers have confirmed", limit_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    # The last request of a direct client sets no event.
                    while not self._lifecycle.released.is_set():
                        self._lifecycle.release()
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(self._lifecycle.released.wait(), RELEASE_S)

    async def _drain(self) -> None:
        """Refuse what routers send and serve direct clients until the pod is idle, then refuse connections.

        The listener stays open until then, because routers fetch documents, send `/drained` and expect a 503, and
        probes and metrics are read, each on a new connection. A direct client cannot be recognised before its
        connection is accepted; it is served, because a Service whose endpoints are out of date may still lead it here.
        """
        if self._lifecycle.phase is not Phase.FAILED:
            log.info("draining; %d requests in flight", self._lifecycle.in_flight)
        self._lifecycle.drain()
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._drain_timeout_s
        # While documents wait to be fetched, direct clients may send more.
        while await self._lifecycle.until_idle(end_s - loop.time()) and len(self._lifecycle.unfetched):
            log.info("%d documents wait to be fetched", len(self._lifecycle.unfetched))
            if not await self._lifecycle.unfetched.until_none(end_s - loop.time()):
                break
        await self._stop_listening()
        if not await self._lifecycle.until_idle(end_s - loop.time()):
            log.warning("%d requests did not finish in time", self._lifecycle.in_flight)
            self._lifecycle.give_up()
            await self._lifecycle.until_idle(CLOSING_S)
        # In the same turn of the event loop, so that no request comes between: the engine closes next.
        self._lifecycle.give_up()
        for connection in list(self._server.server_state.connections):
            connection.shutdown()

    async def _stop_listening(self) -> None:
        """Refuse new connections, and wait for the requests of those that were accepted, `ARRIVAL_S` at most."""
        # There are none where the server is still starting.
        for server in getattr(self._server, "servers", ()):
            server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ARRIVAL_S):
                while True:
                    # First, because accepted connections become known in the next turns of the event loop.
                    await asyncio.sleep(ARRIVAL_POLL_S)
                    connections = self._server.server_state.connections
                    if not any(
                        isinstance(each, BoundedProtocol) and each.awaits_request for each in connections
                    ):
                        return

    async def _close(self, loading: asyncio.Task[None], serving: asyncio.Task[None]) -> None:
        self._server.should_exit = True
        try:
            await self._engine.aclose()
        except RequestError:
            log.exception("the engine did not close in order")
        loading.cancel()
        await asyncio.gather(loading, serving, return_exceptions=True)
