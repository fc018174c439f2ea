"""Runs one router: HTTP server, TLS and drain."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import ssl
from typing import Any

from dragoman_http.event_loop import YOUNG, keep_all_objects
from dragoman_http.limits import MAX_CROWDED, RequestLimits
from dragoman_http.server import Server, make_server
from dragoman_router.errors import SettingsError
from dragoman_router.http.app import App
from dragoman_router.http.state import State
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)

HEAD_BYTES, ADDRESS_BYTES = 44 * 1024, 40 * 1024
"""deep-translator's client for LibreTranslate sends texts of any length in the address. Pods accept 4 KiB more of head,
for what a router adds."""
MAX_HEADERS = 256
OTHER_FILES = 4096
"""Connections to replicas, Redis, the Kubernetes API, probes; libraries."""


class Certificates:
    """TLS certificate and key from files."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self.load()

    def load(self) -> None:
        """Load the files, for new connections.

        Raises:
            SettingsError: They cannot be used.
        """
        cert, key = self._settings.tls_cert, self._settings.tls_key
        if cert is None or key is None:
            raise SettingsError("tls-cert and tls-key are not set")
        # Loaded into a separate context first, because a failure half-way would spoil the one in use.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
            try:
                context.load_cert_chain(cert, key, password="")
            except (OSError, ssl.SSLError) as error:
                raise SettingsError(f"certificate {cert} with key {key}: {error}") from error


def http_server(app: App, state: State, settings: Settings, certificates: Certificates | None) -> Server:
    """The server for clients."""
    limits = RequestLimits(HEAD_BYTES, MAX_HEADERS, ADDRESS_BYTES, settings.body_timeout_s)
    server = make_server(
        app,
        limits,
        state.metrics.write_timeouts.inc,
        closes=lambda: state.draining,
        max_connections=settings.max_connections,
        closing_s=1,
        date_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    state.connections = server.server_state.connections
    server.config.ssl = None if certificates is None else certificates.context
    return server


def files_needed(settings: Settings) -> int:
    """Files that may be open at the same time."""
    return settings.max_connections + MAX_CROWDED + OTHER_FILES


def raise_limit_of_open_files(needed: int) -> None:
    """Raise the limit of open files; a warning if the hard limit is lower."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        log.warning(
            "at most %d files may be open, and --max-connections may need %d: raise the limit (ulimit -n), or lower "
            "--max-connections",
            allowed,
            needed,
        )


class Router:
    """One router's HTTP server, from start to end."""

    def __init__(self, app: App, state: State, settings: Settings, certificates: Certificates | None) -> None:
        self._state = state
        self._settings = settings
        self._end = asyncio.Event()
        self._second_signal = asyncio.Event()
        self._server = http_server(app, state, settings, certificates)

    async def run(self, at: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT, then drain; a second signal cuts the drain short.

        It listens only once the deployments are known: a refused client connects to another router, an accepted one
        would get an error.

        Raises:
            SettingsError: The server did not start.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        ending = asyncio.create_task(self._end.wait())
        knowing = asyncio.create_task(self._state.fleet.synced.wait())
        try:
            await asyncio.wait((ending, knowing), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await self._serve(at, ending)
        finally:
            ending.cancel()
            knowing.cancel()

    async def _serve(self, at: socket.socket, ending: asyncio.Future[Any]) -> None:
        keep_all_objects()
        gc.set_threshold(YOUNG)
        serving = asyncio.create_task(self._server.serve(sockets=[at]))
        try:
            await asyncio.wait((ending, serving), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                raise SettingsError("the HTTP server ended by itself; the log above has the reason")
            await self._drain(at)
        finally:
            self._server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)

    def _stop(self) -> None:
        if self._end.is_set():
            self._second_signal.set()
            self._server.force_exit = True
        self._end.set()

    async def _drain(self, listening: socket.socket) -> None:
        """Fail the readiness probe and keep serving; then stop listening and finish in-flight requests."""
        self._state.draining = True
        self._state.metrics.draining.set(1)
        log.info("draining; %d requests in flight", self._state.active)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.lame_duck_s):
                await self._second_signal.wait()
        for server in self._server.servers:
            server.close()
        listening.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_timeout_s):
                await self._state.idle(self._second_signal)
        if self._state.active:
            log.warning("%d requests did not finish in time", self._state.active)
            self._state.drained = True
            for task in list(self._server.server_state.tasks):
                task.cancel()
