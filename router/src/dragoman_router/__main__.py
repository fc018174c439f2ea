"""`dragoman router`: reads the settings, wires the parts, runs until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from dragoman_http.event_loop import use_one_worker_thread
from dragoman_protocols.languages import load_names
from dragoman_router.access.keys import KeyRing
from dragoman_router.errors import RouterError, SettingsError
from dragoman_router.fleet import static
from dragoman_router.fleet.background import BackgroundTasks
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.http.admin import admin_app, served
from dragoman_router.http.app import App
from dragoman_router.http.server import Certificates, Router, files_needed, raise_limit_of_open_files
from dragoman_router.http.state import assemble
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings, read_settings
from dragoman_system.command_line import configure_logging
from dragoman_system.listening import bound_socket
from dragoman_system.live_files import LiveFiles

if TYPE_CHECKING:
    from dragoman_router.oidc.issuer import Issuer
    from dragoman_router.oidc.tokens import OidcVerifier
    from dragoman_router.state.opening import SharedState

log = logging.getLogger("dragoman_router")


def main(argv: list[str]) -> int:
    """Run one router until SIGTERM.

    Returns:
        0 after an orderly end, 1 where it could not start, 2 for wrong settings.
    """
    try:
        settings = read_settings(argv)
        configure_logging(settings.log_level, sparse=("dragoman_router.http.app",))
        # uvicorn logs every malformed request; a hostile client would fill the log.
        for name in ("uvicorn.error", "kubernetes", "aiohttp", "asyncio"):
            logging.getLogger(name).setLevel("CRITICAL" if name == "uvicorn.error" else "WARNING")
        uvloop.run(_run(settings))
    except (RouterError, OSError, ExceptionGroup) as error:
        cause = _first(error)
        sys.stderr.write(f"dragoman router: {cause}\n")
        return 2 if isinstance(cause, SettingsError) else 1
    return 0


def _first(error: Exception) -> Exception:
    """The error itself, or the first of a group."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _bound(settings: Settings) -> socket.socket:
    try:
        return bound_socket(settings.host, settings.port, settings.write_timeout_s)
    except OSError as error:
        raise SettingsError(str(error)) from error


async def _run(settings: Settings) -> None:
    use_one_worker_thread()
    load_names()  # On first use this would block the event loop.
    raise_limit_of_open_files(files_needed(settings))
    ring = None if settings.keys_dir is None else KeyRing(settings.keys_dir, asyncio.get_running_loop().time)
    certificates = None if settings.tls_cert is None else Certificates(settings)
    async with AsyncExitStack() as stack:
        shared = await _shared_state(settings, stack)
        issuer, tokens = _tokens(settings)
        state = assemble(settings, ring, shared, tokens)
        fleet, metrics = state.fleet, state.metrics
        at = stack.enter_context(_bound(settings))
        background = BackgroundTasks(fleet, settings.router_id)
        stack.push_async_callback(background.aclose)
        admin = admin_app(fleet, metrics, lambda: state.draining)
        admin_port = await stack.enter_async_context(served(admin, settings.host, settings.admin_port))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(work) for work in _sources(settings, fleet, metrics, ring, certificates)]
        if settings.page:
            tasks.append(group.create_task(state.history.run()))
        if state.audit is not None:
            tasks.append(group.create_task(state.audit.run()))
        if issuer is not None:
            tasks.append(group.create_task(issuer.watch(metrics.reloads("oidc"))))
        if shared is not None:
            tasks += [group.create_task(work) for work in shared.work()]
        _log_start(settings, ring, certificates, at.getsockname()[1], admin_port)
        await Router(App(state, settings), state, settings, certificates).run(at)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if shared is not None:
            await shared.drain()
    log.info("stopped")


async def _shared_state(settings: Settings, stack: AsyncExitStack) -> SharedState | None:
    """State that this router shares with others; None: it keeps its own.

    Raises:
        StateError: The server refuses this router.
    """
    if settings.state_url is None:
        return None
    # Imported only if it is used: the client library takes several MB.
    from dragoman_router.state.opening import open_state

    return await open_state(settings, stack)


def _tokens(settings: Settings) -> tuple[Issuer | None, OidcVerifier | None]:
    """The issuer of tokens and the tokens; None where none are accepted."""
    if settings.oidc_issuer is None:
        return None, None
    # Imported only if it is used: cryptography takes several MB.
    from dragoman_router.oidc.tokens import open_tokens

    return open_tokens(settings)


def _sources(
    settings: Settings,
    fleet: Fleet,
    metrics: Metrics,
    ring: KeyRing | None,
    certificates: Certificates | None,
) -> list[Coroutine[Any, Any, None]]:
    """What is watched while the router runs."""

    def reloaded(name: str, paths: list[Path], load: Callable[[], None]) -> Coroutine[Any, Any, None]:
        return LiveFiles(name, paths, load, (SettingsError,), on_reload=metrics.reloads(name)).watch()

    work: list[Coroutine[Any, Any, None]] = []
    if settings.static is not None:
        path = settings.static
        static.load(path, fleet)
        work.append(reloaded("static", [path], lambda: static.load(path, fleet)))
    else:
        # Imported only where it is needed: the client takes 20 MB.
        from dragoman_router.fleet.cluster import follow

        work.append(follow(settings, fleet, metrics))
    if ring is not None and settings.keys_dir is not None:
        work.append(reloaded("keys", [settings.keys_dir], ring.load))
    if certificates is not None and settings.tls_cert is not None and settings.tls_key is not None:
        work.append(reloaded("certificates", [settings.tls_cert, settings.tls_key], certificates.load))
    return work


def _log_start(
    settings: Settings, ring: KeyRing | None, certificates: Certificates | None, port: int, admin_port: int
) -> None:
    """Log what is served, and which protections are off."""
    scheme = "http" if certificates is None else "https"
    log.info("serving %s on %s port %d, admin on port %d", scheme, settings.host, port, admin_port)
    if settings.oidc_issuer is not None:
        log.info("tokens of %s for %s", settings.oidc_issuer, ", ".join(settings.oidc_audience))
        if settings.oidc_issuer.startswith("http:"):
            log.warning("the issuer's keys are fetched without encryption (--oidc-issuer)")
    if ring is None and settings.oidc_issuer is None:
        log.warning(
            "no API keys are required: every client that reaches this port may translate (--keys-dir)"
        )
    else:
        if ring is not None:
            log.info("API keys: %d known", len(ring))
        if settings.state_url is None:
            log.warning(
                "usage, quotas and rates of callers are this router's own, since its start (--state-url)"
            )
    if settings.state_url is None and settings.keep_glossaries and settings.glossary_dir is None:
        log.warning(
            "callers' glossaries are in this router's memory, until it ends (--state-url, --glossary-dir)"
        )
    if certificates is None:
        log.info("TLS is off (--tls-cert, --tls-key)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
