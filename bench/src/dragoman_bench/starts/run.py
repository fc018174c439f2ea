"""Starts pods one after the other, with a cache directory at the same path, and notes where the time goes."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_bench.catalogue import LARGE, pod
from dragoman_bench.gpu import GPU
from dragoman_bench.plan import RunPlan
from dragoman_bench.results import Results
from dragoman_bench.starts.figures import FIRST, SIBLING, WARM, Start, has_time, logged, plan, table
from dragoman_bench.starts.relay import Archive, Relay
from dragoman_devcluster.ports import free_port
from dragoman_tune.client import connections, translate
from dragoman_tune.errors import ServerError
from dragoman_tune.requests import SampleRequest
from dragoman_tune.server import Server, running

POLL_S = 0.05
FREED_S = 30.0
FREED_BYTES = 1 << 30
"""A process that has ended holds less than this more than there was before the first one."""
LOG_LINES = 30
HELLO = SampleRequest("Hello", "en", "de")

Say = Callable[[str], None]


@dataclass(frozen=True)
class StartsPlan:
    """What to measure.

    Args:
        pod: Model, device, memory, and the time that one start gets.
        output: Directory for results, logs, and the pods' cache.
        rounds: Of all variants.
        variants: Of `figures.VARIANTS`.
        load_formats: Further ways to load weights, each measured with the first of the variants.
        budget_s: No start begins that would probably end later than this; None: no limit.
        engine: Further engine arguments.
    """

    pod: RunPlan
    output: Path
    rounds: int
    variants: tuple[str, ...]
    load_formats: tuple[str, ...]
    budget_s: float | None
    engine: dict[str, Any] = field(default_factory=dict)


class Starts:
    """One run.

    Args:
        given: What to measure.
        head: What the results begin with: machine, model.
        gpu: Its memory is free before each start; None on a CPU.
        say: Prints a line of progress.
        elapsed: Seconds since the run began.
    """

    def __init__(
        self, given: StartsPlan, head: dict[str, Any], gpu: GPU | None, say: Say, elapsed: Callable[[], float]
    ) -> None:
        self._given = given
        self._gpu = gpu
        self._say = say
        self._elapsed = elapsed
        self._environment = given.pod.environment | {"DRAGOMAN_START_CACHE_SECRET": secrets.token_hex(32)}
        self._used_bytes = gpu.used_bytes if gpu is not None else 0
        self._results = Results(given.output, {**head, "starts": []})
        self._done: list[dict[str, Any]] = self._results.document["starts"]

    async def run(self) -> dict[str, Any]:
        """Make all starts that there is time for; results are written after each.

        Returns:
            The document of results.
        """
        relay = Relay()
        archive: Archive | None = None
        try:
            for start in plan(self._given.rounds, self._given.variants, self._given.load_formats):
                budget_s = self._given.budget_s
                left_s = None if budget_s is None else budget_s - self._elapsed()
                if reason := self._left_out(start, left_s, archive):
                    self._say(f"{start.name}: left out, {reason}")
                    continue
                relay.archive = archive if start.variant == SIBLING else None
                entry, taken = await self._measure(start, relay, left_s)
                more = {}
                if start.variant == FIRST:
                    archive = taken
                    more = {"archive_bytes": None if archive is None else len(archive.body)}
                self._done.append(entry)
                self._results.write(**more)
                text = table(self._results.document)
                (self._given.output / "table.md").write_text(text + "\n", encoding="utf-8")
                self._say(f"{start.name}: {entry.get('failed') or entry['ready_s']}")
        finally:
            relay.close()
        return self._results.document

    def _left_out(self, start: Start, left_s: float | None, archive: Archive | None) -> str:
        """Why a start is not made; empty if it is."""
        if not has_time(start, left_s, self._done):
            return "there is no time for it"
        if start.variant == SIBLING and archive is None:
            return "the first pod had no cache"
        if start.variant == WARM and self._done[-1].get("failed"):
            return "the start before failed"
        return ""

    async def _measure(
        self, start: Start, relay: Relay, left_s: float | None
    ) -> tuple[dict[str, Any], Archive | None]:
        cache = self._given.output / "cache"
        if start.variant != WARM:
            shutil.rmtree(cache, ignore_errors=True)
        await self._wait_for_memory()
        port = free_port()
        log = self._given.output / f"start-{len(self._done)}.log"
        entry: dict[str, Any] = {
            "name": start.name,
            "variant": start.variant,
            "load_format": start.load_format,
        }
        limit_s = self._given.pod.start_s
        taken = None
        began_s = time.monotonic()
        server = Server(
            "the pod", self._command(start, port, cache, relay.url), port, "/startupz", log, self._environment
        )
        try:
            async with (
                running(server, limit_s if left_s is None else max(1.0, min(limit_s, left_s))),
                connections() as session,
            ):
                entry["ready_s"] = round(time.monotonic() - began_s, 2)
                # Random weights may fail the quality checks: that is an answer too.
                await translate(session, server.url, HELLO)
                entry["answer_s"] = round(time.monotonic() - began_s, 2)
                async with session.get(f"{server.url}/startupz") as answer:
                    report = await answer.json()
                entry |= {"phases_s": report["phases_s"], "start_cache": report["start_cache"]}
                if start.variant == FIRST:
                    taken = await asyncio.to_thread(relay.read_from, server.url)
        except (ServerError, aiohttp.ClientError, OSError, ValueError, KeyError) as error:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
            entry["failed"] = f"{type(error).__name__}: {error}"
            entry["log"] = tail
        entry["took_s"] = round(time.monotonic() - began_s, 2)
        entry["logged"] = logged(log.read_text(encoding="utf-8", errors="replace"))
        return entry, taken

    def _command(self, start: Start, port: int, cache: Path, sibling: str) -> list[str]:
        load_format = {"load_format": start.load_format} if start.load_format else {}
        command = pod(**(LARGE | self._given.engine | load_format))
        return [
            *command(self._given.pod, port),
            # vLLM logs how long it took.
            *("--log-level", "info", "--served-name", "bench", "--termination-log", os.devnull),
            *("--cache-dir", str(cache), "--start-cache-url", sibling),
        ]

    async def _wait_for_memory(self) -> None:
        """Wait until the GPU has its memory back: with less, vLLM does not trust a profile."""
        end_s = time.monotonic() + FREED_S
        while self._gpu is not None and self._gpu.used_bytes > self._used_bytes + FREED_BYTES:
            if time.monotonic() > end_s:
                self._say("the GPU's memory is not free again; the next start may profile for this reason")
                return
            await asyncio.sleep(POLL_S)
