"""Recommendations of the operator under a load that shifts, each applied at once, on a local cluster.

    python bench/tuning/shifting.py --scripted --phases 12:40,90:80,30:60

The load goes on while replicas are replaced. Every request that gets no translation is counted as lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from dragoman.cluster import Cluster, connect
from dragoman.demo import install, stage, until_available
from dragoman_bench.loads import VARIABLE, stream
from dragoman_tune.client import connections
from dragoman_tune.figures import quantile
from dragoman_tune.requests import Request

NAME = "tuned"
NAMESPACE = "default"
START_S = 400.0
POLL_S = 1.0
PAUSE_S = 0.2
"""Of a client whose request was lost."""

SCRIPT = {"token_s": 0.01, "slowdown_ratio": 0.02}
"""A token takes 10 ms, and 2% longer for each other sequence that runs."""

CPU_MODEL_LEN, GPU_MODEL_LEN = 1024, 2048


@dataclass
class Counts:
    """Of one phase.

    Args:
        latencies_s: Of the requests with a translation.
        lost: Reasons of those without.
    """

    latencies_s: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def phases(text: str) -> list[tuple[int, float]]:
    """Requests in flight and seconds of each phase, from `12:40,90:80`."""
    return [
        (int(count), float(length)) for count, _, length in (part.partition(":") for part in text.split(","))
    ]


def manifest(options: argparse.Namespace) -> dict[str, Any]:
    """The TranslationDeployment; without an autoscaler, so that nothing else replaces pods."""
    spec: dict[str, Any] = {
        "model": {
            "uri": options.model,
            "promptFamily": "custom",
            "promptTemplate": "Translate into {target}: {text}",
        },
        "languages": [{"source": "en", "targets": ["de"]}],
        "engine": {
            "device": options.device,
            "maxNumSeqs": options.max_num_seqs,
            "maxModelLen": CPU_MODEL_LEN if options.device == "cpu" else GPU_MODEL_LEN,
        },
        "replicas": options.replicas,
        "tuning": {"mode": "Recommend", "window": options.window},
    }
    if options.scripted:
        spec["engine"]["extraArgs"] = SCRIPT
        spec["podTemplate"] = {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]}
        spec["resources"] = {"requests": {"cpu": "250m"}}
    return {
        "apiVersion": "dragoman.io/v1alpha1",
        "kind": "TranslationDeployment",
        "metadata": {"name": NAME},
        "spec": spec,
    }


class Run:
    """One run: phases of load, and a log of what is recommended and applied."""

    def __init__(self, options: argparse.Namespace, cluster: Cluster, session: aiohttp.ClientSession) -> None:
        self._options = options
        self._cluster = cluster
        self._session = session
        self._manifest = manifest(options)
        self._requests = stream(VARIABLE, options.tokenizer, None, 3)
        self._began_s = time.monotonic()
        self._url = ""

    async def play(self, kubeconfig: Path) -> None:
        """Install the operator, apply the object, and run all phases."""
        await install(self._cluster, kubeconfig, Path())
        await self._cluster.apply(self._manifest)
        await until_available(self._cluster, START_S, lambda message: self._log(progress=message))
        self._url = f"{await self._cluster.local_url()}/translate"
        for in_flight, seconds in self._options.phases:
            self._log(in_flight=in_flight)
            async with self._load(in_flight) as counts:
                began_s = time.monotonic()
                await self._watch(began_s + seconds)
                took_s = time.monotonic() - began_s
                done = list(counts.latencies_s)
            self._log(
                ended=in_flight,
                requests_per_s=round(len(done) / took_s, 1),
                p95_s=round(quantile(done, 0.95) or 0.0, 3),
                max_num_seqs=self._size,
                lost=len(counts.lost),
                reasons=counts.lost[:3],
            )

    async def _watch(self, end_s: float) -> None:
        """Apply each recommendation until the end of a phase."""
        shown = ""
        while time.monotonic() < end_s:
            await asyncio.sleep(POLL_S)
            found = (await self._cluster.status()).get("recommendation")
            if found is None or found["reason"] == shown:
                continue
            shown = found["reason"]
            self._log(recommended=found["maxNumSeqs"], reason=shown)
            if found["maxNumSeqs"] != self._size:
                self._manifest["spec"]["engine"]["maxNumSeqs"] = found["maxNumSeqs"]
                await self._cluster.apply(self._manifest)
                self._log(applied=self._size)

    @asynccontextmanager
    async def _load(self, in_flight: int) -> AsyncIterator[Counts]:
        """Keep so many requests in flight; at the end, wait for them."""
        counts, ends = Counts(), asyncio.Event()

        async def client() -> None:
            while not ends.is_set():
                began_s = time.monotonic()
                if reason := await self._failure(next(self._requests)):
                    counts.lost.append(reason)
                    await asyncio.sleep(PAUSE_S)
                else:
                    counts.latencies_s.append(time.monotonic() - began_s)

        async with asyncio.TaskGroup() as clients:
            for _ in range(in_flight):
                clients.create_task(client())
            yield counts
            ends.set()

    async def _failure(self, request: Request) -> str:
        """Send one request.

        Returns:
            Why there is no translation; empty where there is one.
        """
        body = {
            "text": request.text,
            "source_lang": request.source_lang,
            "target_lang": request.target_lang,
        }
        try:
            async with self._session.post(self._url, json=body) as answer:
                content = await answer.read()
                return "" if answer.status == 200 else f"{answer.status} {content[:100]!r}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return type(error).__name__

    @property
    def _size(self) -> int:
        return int(self._manifest["spec"]["engine"]["maxNumSeqs"])

    def _log(self, **what: Any) -> None:
        line = json.dumps({"s": round(time.monotonic() - self._began_s, 1), **what})
        print(line, flush=True)
        with self._options.output.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")


async def run(options: argparse.Namespace, kubeconfig: Path) -> None:
    """One run on a cluster."""
    async with connect(kubeconfig, NAME, NAMESPACE) as cluster, connections() as session:
        try:
            await Run(options, cluster, session).play(kubeconfig)
        finally:
            await cluster.delete()


def main() -> None:
    """Start a cluster, and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", default="file:///opt/dragoman/examples/demo-model", metavar="URI", help="(the demo model)")
    add(
        "--tokenizer",
        type=Path,
        default=Path("examples/demo-model"),
        metavar="DIR",
        help="of the load's texts",
    )
    add("--device", choices=("cuda", "cpu"), default="cpu", help="what the model runs on (cpu)")
    add("--scripted", action="store_true", help="scripted engines instead of vLLM")
    add("--replicas", type=int, default=2, metavar="N", help="(2)")
    add("--max-num-seqs", type=int, default=16, metavar="N", help="at the start (16)")
    add("--window", default="15s", help="spec.tuning.window (15s)")
    add(
        "--phases",
        type=phases,
        default="12:40,90:80,30:60",
        metavar="N:S,…",
        help="requests in flight, seconds",
    )
    add("--output", type=Path, default=Path("shifting.jsonl"), metavar="FILE", help="(shifting.jsonl)")
    options = parser.parse_args(namespace=argparse.Namespace(kubeconfig=None, keep=False, api="embedded"))
    with stage(options) as kubeconfig:
        uvloop.run(run(options, kubeconfig))


if __name__ == "__main__":
    main()
