"""An hour of requests while random faults happen: nothing is lost, nothing grows, and all goes back to zero.

    python bench/faults/soak.py [--seconds 3600] [--rate 50] [--seed N] [--api embedded|kube-apiserver]
                             [--json FILE] [--dir DIRECTORY] [--every 10,30]

A local cluster, the real operator, two routers, and two objects with scripted engines whose replicas the operator
scales; one of them by a real Prometheus, where one is installed. Which fault comes when is drawn from the seed and is
in the result, with what happened. Several runs may go on side by side.

A request is right where it got one right answer within its deadline. Until then its client uses the other router where
a connection is refused or breaks before an answer, and tries again after Retry-After where the answer is 429 or 503;
both are counted. Exit status 1, and a sentence for each, where a request was lost or answered wrongly, a process grew,
a fault could not be carried out, or something was left over at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from dragoman_bench.machine import machine
from faults.cluster import api_server, local_cluster
from faults.growth import LIMITS, SHORTEST_S, WARM_UP_S, grown
from faults.injection import Injector
from faults.load import FaultLoad
from faults.prometheus import PROMETHEUS, Prometheus
from faults.reading import Reader
from faults.schedule import EVERY_S, schedule
from faults.sending import Patience
from faults.world import World

DIRECT, BY_PROMETHEUS = "demo", "measured"
NAMES = (DIRECT, BY_PROMETHEUS)
STEP_S = 240.0
LEASE_S = (9.0, 6.0, 1.0)
"""As far apart as the defaults, 15, 10 and 2: a busy machine has to leave the operator in office."""
SAMPLE_S = 10.0
PROGRESS_S = 30.0
EMPTY_S = 120.0
"""Longest time from the last answer until everything is back to zero: idle connections to pods are kept for 30 s, and
what a client has left is given up after 60 s."""

PACE = {"first_token_s": 0.1, "token_s": 0.02, "load_s": 0.5}
TEXT_S = 0.55
"""What a steady request takes with it, on average; 0.25 to 0.85 s."""
BUSY = 0.75
"""Share of the least replicas' sequences that the steady load uses."""
REPLICAS = (2, 4)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    seconds: float
    rate: float
    seed: int
    api: str
    directory: Path
    every_s: tuple[float, float]


def specs(rate: float, prometheus: Prometheus | None) -> dict[str, dict[str, Any]]:
    """The two objects: each has half of the steady load."""
    least, most = REPLICAS
    engine = {
        "device": "cpu",
        "maxNumSeqs": max(2, round(rate / len(NAMES) * TEXT_S / least / BUSY)),
        # Big answers have tokens to be admitted for.
        "maxModelLen": 32768,
        "extraArgs": PACE,
    }
    scaling = {"minReplicas": least, "maxReplicas": most, "scaleDownStabilizationWindow": "60s"}

    def spec(target: str, scaling: dict[str, Any]) -> dict[str, Any]:
        return {
            "languages": [{"source": "en", "targets": [target]}],
            "engine": engine,
            "rollout": {"drainTimeout": "30s"},
            "podTemplate": {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
            "replicas": least,
            "autoscaling": scaling,
        }

    measured = scaling if prometheus is None else {**scaling, "prometheus": {"url": prometheus.url}}
    return {DIRECT: spec("de", scaling), BY_PROMETHEUS: spec("fr", measured)}


class Soak:
    """One run."""

    def __init__(
        self, options: Options, world: World, prometheus: Prometheus | None, supervisor: int
    ) -> None:
        self._options, self._world, self._prometheus = options, world, prometheus
        others = {"local cluster": supervisor}
        if (api := api_server(options.api, world.dir / "cluster")) is not None:
            others["API"] = api
        self._reader = Reader(world, NAMES, others)
        self._samples: list[dict[str, Any]] = []
        self._ended: list[str] = []

    async def run(self) -> dict[str, Any]:
        """Everything, from the first pod to the last check; the result."""
        world, options = self._world, self._options
        await world.create(specs(options.rate, self._prometheus))
        world.start_operator()
        scraping = asyncio.create_task(self._scrape())
        try:
            await self._settled()
            world.routers = [world.start_router(at) for at in (0, 1)]
            for at in (0, 1):
                await world.router_ready(at)
            load = FaultLoad(world.ports[:2], options.seed, Patience())
            injector = Injector(world, NAMES, load, options.rate, self._prometheus)
            await self._under_load(load, injector)
            leftovers = await self._emptied(load, injector)
        finally:
            scraping.cancel()
            with suppress(asyncio.CancelledError):
                await scraping
        return self._result(load, injector, leftovers)

    async def _under_load(self, load: FaultLoad, injector: Injector) -> None:
        options = self._options
        faults = schedule(options.seed, options.seconds, options.every_s)
        beside = [
            asyncio.create_task(each) for each in (self._sample(load, injector), _progress(load, injector))
        ]
        try:
            await asyncio.gather(load.send(options.rate, options.seconds, "steady"), injector.run(faults))
            await load.finish()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _sample(self, load: FaultLoad, injector: Injector) -> None:
        while True:
            try:
                await self._one_sample(load, injector)
            except Exception as error:
                # One sample less says less than a run that ends here.
                self._samples.append({"at_s": round(load.now_s, 1), "problem": repr(error)})
            await asyncio.sleep(SAMPLE_S)

    async def _one_sample(self, load: FaultLoad, injector: Injector) -> None:
        world = self._world
        named = {
            "operator": world.operator,
            **{f"router-{at}": each for at, each in enumerate(world.routers)},
        }
        for name, process in named.items():
            status = None if process is None or name in injector.down else process.poll()
            sentence = f"{name} ended by itself with status {status}"
            if status is not None and sentence not in self._ended:
                self._ended.append(sentence)
        pods = await self._reader.pods()
        self._reader.note(self._reader.processes(pods), load.now_s)
        held = await self._reader.held(pods)
        routers = {name: values for name, values in held.items() if name.startswith("router-")}
        sums: Counter[str] = Counter()
        for name, values in held.items():
            if name not in routers:
                sums.update(values)
        self._samples.append(
            {
                "at_s": round(load.now_s, 1),
                "clients": load.in_flight,
                "routers": routers,
                "pods": {"count": len(pods), "answering": len(held) - len(routers), **_rounded(sums)},
            }
        )

    async def _emptied(self, load: FaultLoad, injector: Injector) -> list[str]:
        """Wait until nothing is left of the load; what is, in sentences, once the time is up."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + EMPTY_S
        while True:
            left = await self._left()
            if not left or loop.time() > until_s:
                break
            await asyncio.sleep(1)
        await self._one_sample(load, injector)
        try:
            for name in NAMES:
                await self._world.acted_on(name)
            await self._settled()
        except TimeoutError:
            left.append(
                f"the operator has not acted on a change, or the pods are not ready, within {STEP_S:g} s"
            )
        return left

    async def _left(self) -> list[str]:
        pods = await self._reader.pods()
        held = await self._reader.held(pods)
        names = [*(f"router-{at}" for at in (0, 1)), *(pod.metadata.name for pod in pods)]
        return [f"{name} does not answer" for name in names if name not in held] + [
            f"{name}: {gauge} is {value:g}"
            for name, values in held.items()
            for gauge, value in values.items()
            if value
        ]

    async def _settled(self) -> None:
        for name in NAMES:
            await self._world.until(lambda name=name: self._world.rolled_out(name=name))  # type: ignore[misc]

    async def _scrape(self) -> None:
        """Name the pods to Prometheus as they come and go."""
        while self._prometheus is not None:
            # The API may be busy; the next time is soon.
            with suppress(Exception):
                pods = await self._world.all_pods(BY_PROMETHEUS)
                addresses = {pod.metadata.name: pod.status.pod_ip for pod in pods}
                await asyncio.to_thread(self._prometheus.scrape, "default", addresses)
            await asyncio.sleep(1)

    def _result(self, load: FaultLoad, injector: Injector, leftovers: list[str]) -> dict[str, Any]:
        counts = load.counts.row()
        lifetimes = list(self._reader.lifetimes.values())
        growth, growing = grown(lifetimes)
        violations = [f"{counts[kind]} requests {kind}" for kind in ("lost", "wrong") if counts[kind]]
        violations += [
            f"{each['kind']} at {each['at_s']:g} s: {each['problem']}"
            for each in injector.happened
            if "problem" in each
        ]
        violations += [*self._ended, *growing, *(f"after the load: {each}" for each in leftovers)]
        for log in sorted(self._world.dir.glob("router-*.log")):
            if found := log.read_text(errors="replace").count("Traceback (most recent call last)"):
                violations.append(f"{log.name}: {found} tracebacks")
        options = self._options
        return {
            "seconds": options.seconds,
            "rate": options.rate,
            "seed": options.seed,
            "every_s": list(options.every_s),
            "api": options.api,
            "prometheus": self._prometheus is not None,
            "violations": violations,
            **counts,
            "faults": injector.happened,
            "growth": growth,
            "growth_limits": {name: vars(limit) for name, limit in LIMITS.items()},
            "machine": machine(None),
            "load_average_1m_5m_15m": [round(each, 1) for each in os.getloadavg()],
            "samples": self._samples,
            "lifetimes": [vars(each) for each in lifetimes],
        }


async def _progress(load: FaultLoad, injector: Injector) -> None:
    while True:
        await asyncio.sleep(PROGRESS_S)
        counts = load.counts
        faults = ", ".join(injector.in_progress) or "none"
        print(
            f"{load.now_s:6.0f} s  sent {counts.sent}  ok {counts.ok}  retried {counts.refused}  "
            f"reconnected {counts.reconnected}  lost {counts.lost}  wrong {counts.wrong}  "
            f"open {load.in_flight}  faults: {faults}",
            flush=True,
        )


def _rounded(values: Counter[str]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


async def soak(options: Options) -> dict[str, Any]:
    """Bring everything up, run, take it down."""
    prometheus = Prometheus(options.directory / "prometheus") if PROMETHEUS else None
    async with local_cluster(options.directory, options.api) as (client, line, supervisor):
        world = World(client, options.directory, line, STEP_S, lease_s=LEASE_S)
        try:
            if prometheus is not None:
                prometheus.start()
            return await Soak(options, world, prometheus, supervisor.pid).run()
        finally:
            world.stop()
            if prometheus is not None:
                prometheus.kill()


def summary(result: dict[str, Any]) -> str:
    """The result for people."""
    lines = [
        f"{count:4} × {kind}" for kind, count in Counter(each["kind"] for each in result["faults"]).items()
    ]
    lines += [
        f"{row['role']:9} {row['measure']:7} {row['long_enough']} of {row['processes']} processes long enough, "
        f"{row['hours']:.2f} h: {row['per_hour']:+.1f} an hour, largest {row['largest']:+.1f}"
        for row in result["growth"]
    ]
    if not any(row["long_enough"] for row in result["growth"]):
        lines.append(f"no process lived for {WARM_UP_S + SHORTEST_S:g} s: growth is not judged")
    lines.append(
        f"{result['sent']} requests, {result['ok']} ok, {result['lost']} lost, {result['wrong']} wrong; "
        f"{result['reconnected']} connections to the other router, {result['refused']} refusals retried; "
        f"slow readers {result['slow_whole']} whole, {result['slow_cut']} cut off; {result['left']} clients left; "
        f"p50 {result['p50_s']:g} s, p99 {result['p99_s']:g} s, max {result['max_s']:g} s"
    )
    for kind in ("lost", "wrong"):
        lines += [
            f"{kind} at {each['at_s']:g} s after {each['took_s']:g} s ({each['load']}): {each['why']}; {each['way']}"
            for each in result["troubles"][kind][:10]
        ]
    lines += [f"VIOLATION: {each}" for each in result["violations"]]
    return "\n".join(lines)


def bounds(text: str) -> tuple[float, float]:
    """`--every`."""
    least, _, most = text.partition(",")
    return float(least), float(most or least)


def main() -> int:
    """Run, print what happened, and say what is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3600, help="of load (default: 3600)")
    parser.add_argument("--rate", type=float, default=50, help="requests a second (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="of faults and texts (default: 1)")
    parser.add_argument("--api", default="embedded", choices=["embedded", "kube-apiserver"])
    parser.add_argument(
        "--every", type=bounds, default=EVERY_S, help="seconds between faults (default: 10,30)"
    )
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--dir", type=Path, help="state and logs; a temporary directory by default")
    given = parser.parse_args()
    # What was started ends with this process in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        directory = given.dir or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        options = Options(given.seconds, given.rate, given.seed, given.api, directory, given.every)
        result = asyncio.run(soak(options))
    if given.json:
        given.json.write_text(json.dumps(result, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(summary(result))
    return 1 if result["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
