"""Recommendations of the operator under a load that shifts, each applied at once, on a local cluster.

    python bench/tuning/shifting.py --scripted --phases 12:40,90:80,30:60

The load goes through the router, and continues while replicas are replaced. Every request that gets no translation is
counted as lost. A phase with a third number is a reference: it begins once all replicas have that `maxNumSeqs`, and
applies no recommendation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from dragoman.cluster import Cluster, connect
from dragoman.demo import install, stage, until_available
from dragoman.reach import find
from dragoman_bench.loads import VARIABLE, stream
from dragoman_tune.client import connections, translate
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from dragoman_tune.requests import Answer, Request

NAME = "tuned"
NAMESPACE = "default"
START_S = 400.0
POLL_S = 1.0
REPORT_S = 5.0
"""Interval of the lines with the throughput."""
DRAIN_S = 60.0
"""Maximum wait for the requests that are in flight at the end of a phase."""

SCRIPT = {"token_s": 0.01, "slowdown_ratio": 0.02}
"""A token takes 10 ms, and 2% longer for each other sequence that runs."""

CPU_MODEL_LEN, GPU_MODEL_LEN = 1024, 2048


@dataclass(frozen=True)
class Phase:
    """A load, and how long it lasts.

    Args:
        in_flight: Requests, at all times.
        seconds: Without the drain.
        max_num_seqs: Of a reference; None: recommendations are applied.
    """

    in_flight: int
    seconds: float
    max_num_seqs: int | None = None


def phases(text: str) -> list[Phase]:
    """All phases, from `12:40,90:80,90:30:64`."""
    return [
        Phase(int(count), float(length), int(size[0]) if size else None)
        for count, length, *size in (part.split(":") for part in text.split(","))
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
    if options.device == "cuda":
        spec["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    return {
        "apiVersion": "dragoman.io/v1alpha1",
        "kind": "TranslationDeployment",
        "metadata": {"name": NAME},
        "spec": spec,
    }


class Run:
    """One run: phases of load, and a log of what is recommended and applied.

    Args:
        options: Of the command line.
        cluster: With the object.
        session: For the load.
    """

    def __init__(self, options: argparse.Namespace, cluster: Cluster, session: aiohttp.ClientSession) -> None:
        self._options = options
        self._cluster = cluster
        self._session = session
        self._manifest = manifest(options)
        self._requests = stream(VARIABLE, options.tokenizer, None, 3)
        self._began_s = time.monotonic()
        self._url = ""
        self._lost: Counter[str] = Counter()
        self._answered = 0

    async def play(self, kubeconfig: Path) -> None:
        """Install the operator, apply the object, and run all phases."""
        await install(self._cluster, kubeconfig, Path(), "router.enabled=true", "router.replicas=1")
        await self._cluster.apply(self._manifest)
        await until_available(self._cluster, START_S, lambda message: self._log(progress=message))
        self._url = (await find(kubeconfig, None, "")).url
        for phase in self._options.phases:
            if phase.max_num_seqs is not None:
                await self._change(phase.max_num_seqs)
                await self._until_replaced()
            self._log(in_flight=phase.in_flight, max_num_seqs=self._size)
            self._lost.clear()
            pace = Pace(window_s=phase.seconds, ramp_s=0.0, drain_s=DRAIN_S)
            window, _ = await asyncio.gather(
                closed_loop(self._send, self._requests, phase.in_flight, pace),
                self._watch(time.monotonic() + phase.seconds, phase.max_num_seqs is None),
            )
            found = figures(window)
            self._log(
                ended=phase.in_flight,
                requests_per_s=round(found.requests_per_s, 1),
                p95_s=found.p95_s,
                max_num_seqs=self._size,
                lost=dict(self._lost),
            )

    async def _send(self, request: Request) -> Answer:
        answer = await translate(self._session, self._url, request)
        if answer.error is None:
            self._answered += 1
        else:
            self._lost[answer.error] += 1
        return answer

    async def _watch(self, end_s: float, apply: bool) -> None:
        """Apply each recommendation until the end of a phase, and report the throughput."""
        shown = ""
        reported_s, answered = time.monotonic(), self._answered
        while time.monotonic() < end_s:
            await asyncio.sleep(POLL_S)
            status = await self._cluster.status()
            passed_s = time.monotonic() - reported_s
            if passed_s >= REPORT_S:
                rate = (self._answered - answered) / passed_s
                self._log(requests_per_s=round(rate, 1), ready=status.get("readyReplicas", 0))
                reported_s, answered = time.monotonic(), self._answered
            found = status.get("recommendation")
            if not apply or found is None or found["reason"] == shown:
                continue
            shown = found["reason"]
            self._log(recommended=found["maxNumSeqs"], reason=shown)
            await self._change(found["maxNumSeqs"])

    async def _change(self, max_num_seqs: int) -> None:
        if max_num_seqs != self._size:
            self._manifest["spec"]["engine"]["maxNumSeqs"] = max_num_seqs
            await self._cluster.apply(self._manifest)
            self._log(applied=max_num_seqs)

    async def _until_replaced(self) -> None:
        """Wait until all replicas are ready with the current size.

        Raises:
            TimeoutError: They are not within `START_S`.
        """
        option = ("--max-num-seqs", str(self._size))
        async with asyncio.timeout(START_S):
            while True:
                pods = await self._cluster.pods()
                current = [
                    pod for pod in pods if pod.spec and option in pairwise(pod.spec.containers[0].args or [])
                ]
                ready = (await self._cluster.status()).get("readyReplicas", 0)
                if len(pods) == len(current) == ready == self._options.replicas:
                    return
                await asyncio.sleep(POLL_S)

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
    outside = "not in /tmp, which each pod has its own of (the demo model)"
    add("--model", default="file:///opt/dragoman/examples/demo-model", metavar="URI", help=outside)
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
        metavar="N:S,N:S:SIZE,…",
        help="requests in flight, seconds, and maxNumSeqs of a reference",
    )
    add("--output", type=Path, default=Path("shifting.jsonl"), metavar="FILE", help="(shifting.jsonl)")
    options = parser.parse_args(namespace=argparse.Namespace(kubeconfig=None, keep=False, api="embedded"))
    with stage(options) as kubeconfig:
        uvloop.run(run(options, kubeconfig))


if __name__ == "__main__":
    main()
