"""Runs kopf in a thread of its own, with an event loop of its own.

kopf takes its loop for its own: when it stops, it cancels every task that began after it, and it takes over
the signal handlers. In a loop that also renews a Lease and answers probes neither will do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import kopf

from dragoman_operator.controller import handlers
from dragoman_operator.errors import ClusterError
from dragoman_operator.kube import Kube
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Key

log = logging.getLogger(__name__)

RETRY_S = 2.0
STOP_S = 1.0
"""For kopf to stop. Caught while it starts it takes five seconds; all it could still do is mark keys, which
nobody heeds by then."""


async def watch(kube: Kube, namespaces: Sequence[str], mark: Callable[[Key], None]) -> None:
    """Mark keys as the cluster changes, until cancelled; begins anew where kopf fails.

    Args:
        kube: The API server, to see whether the CRD is there.
        namespaces: Those to watch; empty watches the whole cluster.
        mark: Called in this event loop. On every start it is called for all objects that exist.
    """
    while True:
        await _until_served(kube)
        try:
            await _watch_once(namespaces, mark)
        except Exception as error:
            log.warning("watching failed, beginning anew: %s", error)
        await asyncio.sleep(RETRY_S)


async def _until_served(kube: Kube) -> None:
    told = False
    while True:
        try:
            if await kube.serves(TRANSLATION_DEPLOYMENT):
                return
            problem = "the CRD is not installed: run `dragoman crd | kubectl apply --server-side -f -`"
        except ClusterError as error:
            problem = str(error)
        if not told:
            log.warning("waiting: %s", problem)
            told = True
        await asyncio.sleep(RETRY_S)


async def _watch_once(namespaces: Sequence[str], mark: Callable[[Key], None]) -> None:
    """Run kopf until it fails, or until cancelled; no key is marked after this returns."""
    loop = asyncio.get_running_loop()
    stop, ended = threading.Event(), loop.create_future()

    def heed(key: Key) -> None:
        if not stop.is_set():
            mark(key)

    async def operate() -> None:
        try:
            await kopf.operator(
                registry=handlers.registry(lambda key: _tell(loop, heed, key)),
                settings=handlers.settings(),
                clusterwide=not namespaces,
                namespaces=tuple(namespaces),
                stop_flag=stop,
            )
        finally:
            # kopf waits for the flag in an executor thread, which would hold up the loop's end.
            stop.set()

    def run() -> None:
        error: BaseException | None = None
        try:
            asyncio.run(operate())
        except BaseException as raised:
            error = raised
        _tell(loop, _end, ended, error)

    threading.Thread(target=run, name="kopf", daemon=True).start()
    try:
        await asyncio.shield(ended)
    finally:
        stop.set()
        await asyncio.wait([ended], timeout=STOP_S)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """Call into another thread's loop, which may have ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *arguments)


def _end(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
