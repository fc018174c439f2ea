"""Starts pods one after the other, with a cache directory at the same path, and notes where the time goes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman_bench.gpu import GPU
from dragoman_bench.starts.figures import FIRST, SIBLING, WARM, Start, has_time, logged, plan, table
from dragoman_bench.starts.relay import Relay
from dragoman_devcluster.ports import free_port

POLL_S = 0.05
END_S = 30.0
FREED_S = 30.0
FREED_BYTES = 1 << 30
"""A process that has ended holds less than this more than there was before the first one."""
LOG_LINES = 30

Say = Callable[[str], None]


@dataclass(frozen=True)
class StartsPlan:
    """What to measure.

    Args:
        output: Directory for results, logs, and the pods' cache.
        rounds: Of all variants.
        variants: Of `figures.VARIANTS`.
        load_formats: Further ways to load weights, each measured with the first of the variants.
        budget_s: No start begins that would probably end later than this; None: no limit.
        timeout_s: Of one start.
        engine: Further engine arguments.
    """

    model: Path
    device: str
    output: Path
    rounds: int
    variants: tuple[str, ...]
    load_formats: tuple[str, ...]
    budget_s: float | None
    timeout_s: float
    memory_ratio: float
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
        self._secret = secrets.token_hex(32)
        self._used_bytes = gpu.used_bytes if gpu is not None else 0
        self.document: dict[str, Any] = {**head, "starts": []}

    def run(self) -> dict[str, Any]:
        """Make all starts that there is time for; results are written after each.

        Returns:
            The document of results.
        """
        relay = Relay()
        archive = None
        try:
            for start in plan(self._given.rounds, self._given.variants, self._given.load_formats):
                budget_s = self._given.budget_s
                left_s = None if budget_s is None else budget_s - self._elapsed()
                if not has_time(start, left_s, self.document["starts"]):
                    self._say(f"no time for {start.name}")
                    continue
                if start.variant == SIBLING and archive is None:
                    self._say(f"{start.name}: left out, the first pod had no cache")
                    continue
                if start.variant == WARM and self.document["starts"][-1].get("failed"):
                    self._say(f"{start.name}: left out, the start before failed")
                    continue
                relay.archive = archive if start.variant == SIBLING else None
                entry, taken = self._measure(start, relay, left_s)
                if start.variant == FIRST:
                    archive = taken
                    self.document["archive_bytes"] = None if archive is None else len(archive.body)
                self.document["starts"].append(entry)
                self._write()
                self._say(f"{start.name}: {entry.get('failed') or entry['ready_s']}")
        finally:
            relay.close()
        return self.document

    def _measure(self, start: Start, relay: Relay, left_s: float | None) -> tuple[dict[str, Any], Any]:
        cache = self._given.output / "cache"
        if start.variant != WARM:
            shutil.rmtree(cache, ignore_errors=True)
        self._wait_for_memory()
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        log = self._given.output / f"start-{len(self.document['starts'])}.log"
        began_s = time.monotonic()
        entry: dict[str, Any] = {
            "name": start.name,
            "variant": start.variant,
            "load_format": start.load_format,
        }
        timeout_s = self._given.timeout_s if left_s is None else max(1.0, min(self._given.timeout_s, left_s))
        taken = None
        environment = {**os.environ, "DRAGOMAN_START_CACHE_SECRET": self._secret}
        with log.open("wb") as sink:
            pod = subprocess.Popen(
                self._command(start, port, cache, relay.url), stdout=sink, stderr=sink, env=environment
            )
        try:
            report = _until_ready(pod, url, began_s + timeout_s)
            entry["ready_s"] = round(time.monotonic() - began_s, 2)
            entry["answer_s"] = round(_answer_s(url, began_s), 2)
            entry["phases_s"] = report["phases_s"]
            entry["start_cache"] = report["start_cache"]
            if start.variant == FIRST:
                taken = relay.read_from(url)
        except (OSError, ValueError, KeyError) as error:
            tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
            entry["failed"] = f"{type(error).__name__}: {error}"
            entry["log"] = tail
        finally:
            _end(pod)
            entry["took_s"] = round(time.monotonic() - began_s, 2)
        entry["logged"] = logged(log.read_text(encoding="utf-8", errors="replace"))
        return entry, taken

    def _command(self, start: Start, port: int, cache: Path, sibling: str) -> list[str]:
        given = self._given
        engine = {**given.engine, **({"load_format": start.load_format} if start.load_format else {})}
        memory = ["--gpu-memory-utilization", str(given.memory_ratio)] if given.device == "cuda" else []
        return [
            *(sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(port)),
            *("--model", str(given.model), "--device", given.device, "--served-name", "bench"),
            *("--prompt-family", "custom", "--prompt-template", "{text}"),
            *("--cache-dir", str(cache), "--start-cache-url", sibling, *memory),
            *("--max-num-seqs", "512", "--max-num-batched-tokens", "8192", "--max-model-len", "2048"),
            *("--engine-args", json.dumps(engine), "--termination-log", os.devnull),
        ]

    def _wait_for_memory(self) -> None:
        """Wait until the GPU has its memory back: with less, vLLM does not trust a profile."""
        end_s = time.monotonic() + FREED_S
        while self._gpu is not None and self._gpu.used_bytes > self._used_bytes + FREED_BYTES:
            if time.monotonic() > end_s:
                self._say("the GPU's memory is not free again; the next start may profile for this reason")
                return
            time.sleep(POLL_S)

    def _write(self) -> None:
        path = self._given.output / "results.json"
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.document, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(path)
        (self._given.output / "table.md").write_text(table(self.document) + "\n", encoding="utf-8")


def _until_ready(pod: subprocess.Popen[bytes], url: str, end_s: float) -> dict[str, Any]:
    """The pod's own report of its start.

    Raises:
        OSError: It ended, or was not ready in time.
    """
    while True:
        if pod.poll() is not None:
            raise OSError(f"the pod ended with status {pod.returncode}")
        if time.monotonic() > end_s:
            raise TimeoutError("it was not ready in time")
        try:
            with urllib.request.urlopen(f"{url}/startupz", timeout=5) as answer:
                return dict(json.load(answer))
        except OSError:
            # Not listening yet, or 503 with the phase.
            time.sleep(POLL_S)


def _answer_s(url: str, began_s: float) -> float:
    """Seconds from the start to the first answer."""
    body = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as error:
        # Random weights may fail the quality checks: that is an answer too.
        error.close()
    return time.monotonic() - began_s


def _end(pod: subprocess.Popen[bytes]) -> None:
    if pod.poll() is None:
        pod.send_signal(signal.SIGTERM)
        try:
            pod.wait(END_S)
        except subprocess.TimeoutExpired:
            pod.kill()
            pod.wait()
