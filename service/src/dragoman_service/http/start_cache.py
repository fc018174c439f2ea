"""The start cache over HTTP: what this pod takes before its engine starts, and what it gives once it is ready."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter
from pydantic import SecretStr

from dragoman_contract.http import START_CACHE_SIGNATURE
from dragoman_http.exchange import Exchange
from dragoman_protocols.messages import Answer, json_answer
from dragoman_service.engine.devices import gpu_facts
from dragoman_service.engine.protocol import Phase
from dragoman_service.engine.threads import in_daemon_thread
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.metric_definitions import START_CACHE, START_CACHE_SERVED
from dragoman_service.settings import Settings
from dragoman_service.start_cache.archive import contents
from dragoman_service.start_cache.exchange import Archive, StartCache
from dragoman_service.start_cache.identity import cpu_facts, facts_of, key_of
from dragoman_service.start_cache.taking import Outcome, Result

log = logging.getLogger(__name__)

URL = re.compile(r"http://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}/?")
MIN_SECRET = 32
MAX_SERVED = 4
"""Archives at once; further pods ask again, or start without."""


def start_cache_of(settings: Settings) -> StartCache | None:
    """The pod's start cache; None without a sibling's address, a secret, or a directory for it.

    Wrong values end no start: they come from a Secret that others may edit.
    """
    url, secret = (
        settings.start_cache_url or "",
        (settings.start_cache_secret or SecretStr("")).get_secret_value(),
    )
    if not url or not secret or settings.cache_dir is None:
        return None
    if not URL.fullmatch(url) or len(secret) < MIN_SECRET:
        log.warning(
            "no start cache: its URL is not http://HOST:PORT, or its secret has under %d characters",
            MIN_SECRET,
        )
        return None

    def key() -> str | None:
        if settings.engine == "scripted":
            device = {}
        elif settings.device == "cpu":
            device = cpu_facts(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        else:
            found = gpu_facts()
            if found is None:
                return None
            device = found
        return key_of(facts_of(settings, device))

    return StartCache(url, secret, settings.cache_dir / "vllm", key)


class StartCacheExchange:
    """Takes and serves the start cache, and counts both; off without one."""

    def __init__(self, cache: StartCache | None, lifecycle: Lifecycle, registry: CollectorRegistry) -> None:
        self._cache = cache
        self._lifecycle = lifecycle
        self._serving = 0
        self._taken = Counter(START_CACHE.name, START_CACHE.help, START_CACHE.labels, registry=registry)
        self._served = Counter(START_CACHE_SERVED.name, START_CACHE_SERVED.help, registry=registry)
        for outcome in Outcome:
            self._taken.labels(outcome)

    @property
    def result(self) -> Result:
        """How the exchange ended."""
        return Result(Outcome.OFF) if self._cache is None else self._cache.result

    async def take(self) -> None:
        """Take it in a thread, count the outcome, and log the reason."""
        if self._cache is None:
            self._taken.labels(Outcome.OFF).inc()
            return
        result = await in_daemon_thread(self._cache.take)
        self._taken.labels(result.outcome).inc()
        what = f"{result.files} files, {result.total_bytes / 1e6:.1f} MB" if result.files else result.detail
        unusual = result.outcome in (Outcome.REJECTED, Outcome.FAILED, Outcome.TIMED_OUT)
        level = logging.WARNING if unusual else logging.INFO
        log.log(level, "start cache of a sibling: %s after %.1f s. %s", result.outcome, result.seconds, what)

    async def serve(self, exchange: Exchange) -> Answer | None:
        """Answer `GET /start-cache/KEY`: 200, 404 if this pod has nothing for it, 503 while it serves others."""
        cache, key = self._cache, exchange.request.variables["key"]
        token = (exchange.request.text_header("Authorization") or "").removeprefix("Bearer ")
        if cache is None or self._lifecycle.phase is not Phase.READY or not cache.may_have(key, token):
            return _refusal(404, "no start cache for this key")
        if self._serving >= MAX_SERVED:
            return _refusal(503, "this pod serves its start cache to others")
        self._serving += 1
        try:
            archive = await in_daemon_thread(cache.archive)
            if archive is not None:
                await self._send(exchange, archive, cache.root)
                return None
        except OSError:
            # A file that was listed is gone: vLLM replaces files of its caches.
            if exchange.started:
                raise
        finally:
            self._serving -= 1
        return _refusal(404, "no start cache for this key")

    async def _send(self, exchange: Exchange, archive: Archive, root: Path) -> None:
        headers = [
            (b"content-type", b"application/octet-stream"),
            (b"content-length", b"%d" % archive.total_bytes),
            (START_CACHE_SIGNATURE.lower().encode(), archive.signature.encode()),
        ]
        await exchange.start(200, headers)
        if exchange.request.method == "HEAD":
            await exchange.send(b"", more=False)
            return
        await exchange.send(archive.manifest, more=True)
        parts = contents(root, archive.entries)
        while not exchange.is_gone and (part := await asyncio.to_thread(next, parts, b"")):
            await exchange.send(part, more=True)
        if not exchange.is_gone:
            await exchange.send(b"", more=False)
            self._served.inc()


def _refusal(status: int, message: str) -> Answer:
    return json_answer({"error": {"code": "no_start_cache", "message": message}}, status)
