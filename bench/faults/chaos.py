"""Requests at a steady rate while everything under the router is replaced, killed or cut off.

    python bench/faults/chaos.py [--rate 200] [--seconds 180] [--api embedded|kube-apiserver] [--json FILE]

A local cluster, the real operator, two routers and scripted engines. Each request carries a text of its own, and one
answer is right: the text reversed, once and whole. A client whose connection breaks before an answer (its router was
killed) retries at the other router, as one of a Service would; those are counted. Exit status 1 where a request was
lost or answered wrongly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from dragoman_bench.machine import machine
from faults.chaos_world import OUTAGE_S, ChaosWorld
from faults.cluster import local_cluster
from faults.load import FaultLoad
from faults.questions import numbered, translated_twice
from faults.sending import Patience
from faults.world import NAME

STEP_S = 240.0
"""Maximum time for one change of the cluster."""
COLUMNS = (
    *("lasted_s", "sent", "per_s", "lost", "wrong", "reconnected", "resent"),
    *("p50_s", "p99_s", "max_s"),
)
PATIENCE = Patience(attempts=4, waits=False)
"""A caller gives up after four broken connections, each at another router, and at the first refusal."""
PACE = {"first_token_s": 0.02, "token_s": 0.002, "slowdown_ratio": 0.02, "load_s": 0.5}
"""A short sentence takes about 50 ms, as on a GPU that is not full."""


def spec(journal: Path) -> dict[str, Any]:
    """The object's spec: engines without a model, which write their generations to a file."""
    return {
        "languages": [{"source": "en", "targets": ["de", "fr"]}],
        "engine": {"device": "cpu", "maxNumSeqs": 16, "extraArgs": {**PACE, "journal": str(journal)}},
        "rollout": {"drainTimeout": "10s"},
        "podTemplate": {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
    }


def work_of(journal: Path, repeated: Callable[[str], bool]) -> dict[str, int]:
    """How much scripted engines worked on the requests.

    Args:
        journal: What they wrote: for each generation a line of process id, tab, segment.
        repeated: Whether a pod generates a text twice by itself, because a guard finds fault with the first answer.

    Returns:
        `texts`; `generations`; `again`, texts that pods began more than once; `again_elsewhere`, those of them that
        more than one pod began; `most`, how often the most frequent one was begun.
    """
    pods: dict[str, list[str]] = defaultdict(list)
    for line in journal.read_text().splitlines():
        pod, _, text = line.partition("\t")
        pods[text].append(pod)
    twice = {text: len(by) for text, by in pods.items() if len(by) > 1}
    begun = {text: math.ceil(count / 2) if repeated(text) else count for text, count in twice.items()}
    return {
        "texts": len(pods),
        "generations": sum(map(len, pods.values())),
        "again": sum(count > 1 for count in begun.values()),
        "again_elsewhere": sum(len(set(by)) > 1 for by in pods.values()),
        "most": max(begun.values(), default=min(1, len(pods))),
    }


async def chaos(world: ChaosWorld, options: argparse.Namespace, journal: Path) -> dict[str, Any]:
    """All phases, each as long as its share or as what happens in it takes; the figures."""
    await world.create({NAME: {**spec(journal), "replicas": world.replicas}})
    world.start_operator()
    await world.until(lambda: world.rolled_out(world.replicas))
    world.routers = [world.start_router(at) for at in (0, 1)]
    for at in (0, 1):
        await world.router_ready(at)
    await world.settled()
    questions = numbered()
    few, many = 1, world.replicas
    steps: list[tuple[str, Callable[[], Awaitable[None]] | None]] = [
        ("calm", None),
        ("rolling update of all pods", world.roll),
        (f"scale {many} → {few}", lambda: world.scale(few)),
        (f"scale {few} → {many}", lambda: world.scale(many)),
        ("SIGKILL of a pod", world.kill_pod),
        ("SIGKILL of a router", world.kill_router),
        ("SIGTERM of a router", world.drain_router),
        ("restart of the operator", world.restart_operator),
        (f"SIGKILL of the API, then {many} → {many - 1} → {many}", world.restart_api),
        (f"API gone for {OUTAGE_S:g} s", world.cut_off),
        ("calm again", None),
    ]
    load = FaultLoad(world.ports[:2], 1, PATIENCE, lambda: next(questions))
    load.begin(steps[0][0])
    sending = asyncio.create_task(load.send(options.rate, math.inf, "steady"))
    loop = asyncio.get_running_loop()
    try:
        for name, step in steps:
            until_s = loop.time() + options.seconds / len(steps)
            if name != steps[0][0]:
                load.begin(name)
            if step is not None:
                await step()
            await asyncio.sleep(max(0.0, until_s - loop.time()))
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        await load.finish()
    rows = [phase.row() for phase in load.phases]
    return {
        "rate": options.rate,
        "api": options.api,
        "replicas": options.replicas,
        **{name: sum(row[name] for row in rows) for name in ("sent", "lost", "wrong")},
        "work": work_of(journal, translated_twice),
        "machine": machine(None),
        "load_average_1m_5m_15m": [round(each, 1) for each in os.getloadavg()],
        "phases": rows,
    }


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Bring everything up, run all phases, take it down."""
    async with local_cluster(options.dir, options.api, options.preload) as (client, line, _):
        world = ChaosWorld(client, options.dir, line, STEP_S, options.api, options.replicas)
        try:
            return await chaos(world, options, options.dir.resolve() / "journal")
        finally:
            world.stop()


def main() -> int:
    """Run, print a row for each phase, and say whether anything was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second (default: 200)")
    parser.add_argument("--seconds", type=float, default=180, help="of all phases together, at least")
    parser.add_argument("--api", default="embedded", choices=["embedded", "kube-apiserver"])
    parser.add_argument("--replicas", type=int, default=4, help="engine pods (default: 4)")
    parser.add_argument(
        "--preload", metavar="MODULE", help="as in `dragoman devcluster up`: pods start faster"
    )
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--dir", type=Path, help="state and logs; a temporary directory by default")
    options = parser.parse_args()
    if options.replicas < 2:
        parser.error("--replicas: at least 2, one of which is taken away")
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        options.dir = options.dir or Path(temporary)
        options.dir.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(run(options))
    print(f"{'phase':36}" + "".join(f"{name:>12}" for name in COLUMNS))
    for row in found["phases"]:
        print(f"{row['phase']:36}" + "".join(f"{row[name]:>12}" for name in COLUMNS))
        for trouble in [*row["troubles"]["lost"][:3], *row["troubles"]["wrong"][:3]]:
            print(f"    {trouble['why']}")
    print("engines: " + ", ".join(f"{count} {name}" for name, count in found["work"].items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"{found['sent']} requests, {found['lost']} lost, {found['wrong']} wrong")
    return 1 if found["lost"] + found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
