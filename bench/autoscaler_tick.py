"""What a tick of the autoscaler costs: 300 deployments of 3 pods, each pod with a metrics page as long as vLLM's.

Everything that a tick does is real, from the cached pods over HTTP to every page to the decisions. Pages are served by
a second process, each pod's at a loopback address of its own. Their load does not change, so the replay for the
objective is measured by itself: an hour of bursts.

    python bench/autoscaler_tick.py [--deployments 300] [--pods 3] [--slow 0] [--ticks 5]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import time
from multiprocessing.synchronize import Event
from typing import Any

import aiohttp

from dragoman_contract.http import ENGINE_PORT
from dragoman_kube.objects import Key
from dragoman_operator.api.v1alpha1 import parse
from dragoman_operator.autoscaling.decision.objective import EVERY_S, with_kept
from dragoman_operator.autoscaling.decision.values import ARRIVALS, History, Policy
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.controller.ticker import Ticker
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.prometheus import PrometheusServers
from dragoman_operator.scraping.routers import Routers

TICK_S = 5.0
TIMEOUT_S = 2.0
HISTOGRAMS, BUCKETS = 20, 28
"""About what a vLLM 0.32 shows: 600 lines."""
STAMP = "2026-01-02T03:04:05Z"


def address(number: int) -> str:
    """Where a pod is served."""
    return f"127.80.{number // 250}.{number % 250 + 1}"


def page() -> bytes:
    """A page of metrics."""
    labels = 'engine="0",model_name="td"'
    lines = [
        f"vllm:num_requests_running{{{labels}}} 12.0",
        f"vllm:num_requests_waiting{{{labels}}} 3.0",
        f"vllm:kv_cache_usage_perc{{{labels}}} 0.4",
        *(
            f'vllm:request_success_total{{{labels},finished_reason="{why}"}} 1000.0'
            for why in ("stop", "length", "abort", "error", "repetition")
        ),
    ]
    for number in range(HISTOGRAMS):
        name = f"vllm:some_latency_{number}_seconds"
        lines += [f"# HELP {name} Histogram of something.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{{labels},le="{bucket / 4}"}} {bucket}.0' for bucket in range(BUCKETS)]
    return "\n".join(lines).encode() + b"\n"


def serve(pods: int, slow: int, ready: Event) -> None:
    """Answer for all pods; the first `slow` of them never."""
    body = page()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run() -> None:
        for number in range(pods):
            handler = stay_silent if number < slow else respond
            await asyncio.start_server(handler, address(number), ENGINE_PORT)
        ready.set()
        await asyncio.Event().wait()

    asyncio.run(run())


def pod(deployment: int, number: int) -> dict[str, Any]:
    """A pod with about as much in it as a real one has."""
    padding = {f"annotation-{index}": "x" * 60 for index in range(60)}
    labels = {"dragoman.io/deployment": f"td-{deployment}"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": STAMP}
    return {
        "metadata": {
            "name": f"td-{deployment}-{number}",
            "namespace": "default",
            "uid": str(number),
            "creationTimestamp": STAMP,
            "labels": labels,
            "annotations": padding,
            "ownerReferences": [{"kind": "ReplicaSet", "uid": f"rs-{deployment}", "controller": True}],
        },
        "status": {"phase": "Running", "podIP": address(number), "conditions": [ready]},
    }


def deployment(number: int) -> dict[str, Any]:
    """A TranslationDeployment in mode Internal."""
    return {
        "metadata": {"name": f"td-{number}", "namespace": "default", "uid": str(number), "generation": 1},
        "spec": {
            "model": {"uri": "hf://org/model", "promptFamily": "chatml-generic"},
            "engine": {"device": "cpu", "maxNumSeqs": 32},
            "replicas": 3,
            "autoscaling": {"minReplicas": 3, "maxReplicas": 6},
        },
    }


async def measure(deployments: int, each: int, ticks: int) -> None:
    """Print CPU and wall time of so many ticks."""
    pods = {
        Key("default", f"td-{number}"): [pod(number, number * each + index) for index in range(each)]
        for number in range(deployments)
    }
    marked: list[Key] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        prometheus = PrometheusServers(None, http, "", lambda: None, TIMEOUT_S)  # type: ignore[arg-type]
        routers = Routers(http, marked.append)
        autoscaler = Autoscaler(prometheus, routers, marked.append, TICK_S)
        metrics = PodMetrics(http, TIMEOUT_S)
        ticker = Ticker({"autoscaler": autoscaler}, pods.get, metrics, TICK_S, lambda _: None)
        for number in range(deployments):
            autoscaler.view(parse(deployment(number)), {}, None, {f"rs-{number}"})
        cpu_s, wall_s = [], []
        for _ in range(ticks):
            before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            await ticker.tick()
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu_s.append(round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2))
            wall_s.append(round(time.perf_counter() - began, 2))
        reporting = [
            scaled.latest.ready - scaled.latest.signals.missing
            for scaled in autoscaler.deployments().values()
        ]
        await routers.aclose()
    print(f"{deployments * each} pods of {deployments} deployments, {sum(reporting)} reporting")
    print(f"CPU seconds a tick: {cpu_s}; wall seconds: {wall_s}")


REPLAYS = 50


def measure_replay() -> None:
    """Print the CPU time of a replay of an hour, and of a tick's share in it."""
    arrivals = tuple(2500 if tick % 18 >= 14 else 300 + tick % 7 for tick in range(ARRIVALS))
    history = History(arrivals=arrivals, busiest_s=0.3, start_s=60.0, learned_s=3600.0)
    policy = Policy(min_replicas=1, max_replicas=20, max_num_seqs=32, objective=0.99)
    began = time.process_time()
    for _ in range(REPLAYS):
        with_kept(history, policy, 0.3, 0.0)
    each_ms = 1000 * (time.process_time() - began) / REPLAYS
    share_ms = each_ms * TICK_S / EVERY_S
    print(f"CPU of a replay: {each_ms:.2f} ms each {EVERY_S:g} s, {share_ms:.2f} ms a tick")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, default=300)
    parser.add_argument("--pods", type=int, default=3, help="of each deployment")
    parser.add_argument("--slow", type=int, default=0, help="pods that never answer")
    parser.add_argument("--ticks", type=int, default=5)
    options = parser.parse_args()
    measure_replay()
    ready = multiprocessing.Event()
    server = multiprocessing.Process(
        target=serve, args=(options.deployments * options.pods, options.slow, ready), daemon=True
    )
    server.start()
    ready.wait(30)
    try:
        asyncio.run(measure(options.deployments, options.pods, options.ticks))
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
