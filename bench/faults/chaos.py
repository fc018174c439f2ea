"""Requests at a steady rate while everything under the router is replaced, killed or cut off.

    python bench/faults/chaos.py [--rate 200] [--seconds 180] [--api embedded|kube-apiserver] [--json FILE]
    python bench/faults/chaos.py --engine vllm [--rate 3] [--replicas 2] [--json FILE]

A local cluster, the real operator, two routers, and engines that are scripted or vLLM on the CPU. Each request carries
a text of its own (vLLM's come again after some minutes), and one answer is right: the text reversed, or its known
translation, once and whole. A client whose connection breaks before an answer (its router was killed) retries at the
other router, as one of a Service would; those are counted. Exit status 1 where a request was lost or answered wrongly.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from dragoman_bench.machine import machine
from faults.chaos_world import OUTAGE_S, ChaosWorld
from faults.client import CheckingClient
from faults.cluster import local_cluster
from faults.engines import Engines, scripted, vllm, work_of
from faults.load import Counts, FaultLoad
from faults.questions import KnownRequest, known_to_the_model, numbered, spoken, translated_twice
from faults.sending import PATH, Patience
from faults.world import NAME

COLUMNS = (
    *("lasted_s", "sent", "per_s", "lost", "wrong", "reconnected", "resent"),
    *("p50_s", "p99_s", "max_s"),
)
PATIENCE = Patience(attempts=4, waits=False)
"""A caller gives up after four broken connections, each at another router, and at the first refusal."""


async def chaos(world: ChaosWorld, options: argparse.Namespace, engines: Engines) -> dict[str, Any]:
    """All phases, each as long as its share or as what happens in it takes; the figures."""
    await world.create({NAME: {**engines.spec, "replicas": world.replicas}})
    world.start_operator()
    await world.until(lambda: world.rolled_out(world.replicas))
    world.routers = [world.start_router(at) for at in (0, 1)]
    for at in (0, 1):
        await world.router_ready(at)
    await world.settled()
    questions, tried = await questions_for(options, world.ports[0])
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
    return figures(options, engines, load.phases, tried)


def figures(
    options: argparse.Namespace, engines: Engines, phases: list[Counts], tried: dict[str, int]
) -> dict[str, Any]:
    """What is written down."""
    rows = [phase.row() for phase in phases]
    return {
        "engine": engines.name,
        "rate": options.rate,
        "api": options.api,
        "replicas": options.replicas,
        "sent": sum(row["sent"] for row in rows),
        "lost": sum(row["lost"] for row in rows),
        "wrong": sum(row["wrong"] for row in rows),
        **tried,
        **({} if engines.journal is None else {"work": work_of(engines.journal, translated_twice)}),
        "machine": machine(None),
        "load_average_1m_5m_15m": [round(load, 1) for load in os.getloadavg()],
        "phases": rows,
    }


async def questions_for(
    options: argparse.Namespace, port: int
) -> tuple[Iterator[KnownRequest], dict[str, int]]:
    """Questions without end, and how many texts were tried and known to the model."""
    if options.engine == "scripted":
        return numbered(), {}
    client = CheckingClient()

    async def answer(question: KnownRequest) -> str:
        return str(json.loads((await client.post(port, PATH, question.body)).body).get("translation"))

    # Phases take longer than they have to: engines need their time to start.
    count = int(options.rate * options.seconds * 2)
    known = await known_to_the_model(spoken(), count, answer)
    client.close()
    return itertools.cycle(known), {"texts_tried": count, "texts_known": len(known)}


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Bring everything up, run all phases, take it down."""
    engines = vllm() if options.engine == "vllm" else scripted(options.dir.resolve() / "journal")
    async with local_cluster(options.dir, options.api, options.preload) as (client, line, _):
        world = ChaosWorld(client, options.dir, line, engines.step_s, options.api, options.replicas)
        try:
            return await chaos(world, options, engines)
        finally:
            world.stop()


def main() -> int:
    """Run, print a row for each phase, and say whether anything was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", default="scripted", choices=["scripted", "vllm"])
    parser.add_argument("--rate", type=float, help="requests a second (default: 200, of vLLM 3)")
    parser.add_argument("--seconds", type=float, default=180, help="of all phases together, at least")
    parser.add_argument("--api", default="embedded", choices=["embedded", "kube-apiserver"])
    parser.add_argument("--replicas", type=int, help="engine pods (default: 4, of vLLM 2)")
    parser.add_argument(
        "--preload", metavar="MODULE", help="as in `dragoman devcluster up`: pods start faster"
    )
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--dir", type=Path, help="state and logs; a temporary directory by default")
    options = parser.parse_args()
    options.rate = options.rate or {"scripted": 200.0, "vllm": 3.0}[options.engine]
    options.replicas = options.replicas or {"scripted": 4, "vllm": 2}[options.engine]
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
    if "work" in found:
        print("engines: " + ", ".join(f"{count} {name}" for name, count in found["work"].items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"{found['sent']} requests, {found['lost']} lost, {found['wrong']} wrong")
    return 1 if found["lost"] + found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
