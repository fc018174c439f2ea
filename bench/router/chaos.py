"""Requests at a steady rate while everything under the router is replaced, killed or cut off.

    python bench/router/chaos.py [--rate 200] [--seconds 180] [--api embedded|kube-apiserver]

A local cluster, the real operator, scripted engines, two routers. Each request carries a text of its own and has to
come back reversed. A client whose connection breaks before an answer (its router was killed) asks the other router, as
one of a Service would; those are counted. Exit status 1 where a request was lost or answered wrongly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from chaos_line import Line
from chaos_load import Load, Phase
from chaos_world import OUTAGE_S, World, until
from kubernetes.aio import config

from dragoman_local.lifecycle import bring_up, take_down
from dragoman_local.node.backoff import Backoff
from dragoman_local.options import ClusterOptions


async def chaos(world: World, rate: float, seconds: float) -> list[Phase]:
    """All phases, each as long as its share or as what happens in it takes."""
    await world.create()
    world.start_operator()
    await until(lambda: world.rolled_out(world.replicas))
    world.routers = [world.start_router(at) for at in (0, 1)]
    for at in (0, 1):
        await world.router_ready(at)
    steps: list[tuple[str, Callable[[], Awaitable[None]] | None]] = [
        ("calm", None),
        ("rolling update of all pods", world.roll),
        (f"scale {world.replicas} → 1", lambda: world.scale(1)),
        (f"scale 1 → {world.replicas}", lambda: world.scale(world.replicas)),
        ("SIGKILL of a pod", world.kill_pod),
        ("SIGKILL of a router", world.kill_router),
        ("SIGTERM of a router", world.drain_router),
        ("restart of the operator", world.restart_operator),
        (f"API gone for {OUTAGE_S:g} s", world.cut_off),
        ("calm again", None),
    ]
    load = Load(rate, world.ports[:2])
    load.begin(steps[0][0])
    sending = asyncio.create_task(load.run())
    loop = asyncio.get_running_loop()
    try:
        for name, step in steps:
            until_s = loop.time() + seconds / len(steps)
            if name != steps[0][0]:
                load.begin(name)
            if step is not None:
                await step()
            await asyncio.sleep(max(0.0, until_s - loop.time()))
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
    return load.phases


async def run(rate: float, seconds: float, api_kind: str, directory: Path, replicas: int) -> list[Phase]:
    """Bring everything up, run all phases, take it down."""
    options = ClusterOptions(dir=directory / "cluster", api=api_kind, gpus=0, backoff=Backoff(0.2, 2.0))
    supervisor = bring_up(options)
    kubeconfig = directory / "cluster" / "kubeconfig"
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        server = urlsplit(document["clusters"][0]["cluster"]["server"])
        line = Line(str(server.hostname), int(server.port or 443))
        client = await config.new_client_from_config(config_file=str(kubeconfig), persist_config=False)
        async with line.laid() as port, client:
            document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
            (directory / "through-the-line").write_text(yaml.safe_dump(document))
            world = World(client, directory, supervisor.api, replicas)
            world.line = line
            try:
                return await chaos(world, rate, seconds)
            finally:
                world.stop()
    finally:
        take_down(options.dir)


def main() -> int:
    """Run, print a row for each phase, and say whether anything was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--seconds", type=float, default=180, help="of all phases together, at least")
    parser.add_argument("--api", default="embedded", choices=["embedded", "kube-apiserver"])
    parser.add_argument("--replicas", type=int, default=4, help="engine pods")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--dir", type=Path, help="state and logs; a temporary directory by default")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        directory = asked.dir or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        phases = asyncio.run(run(asked.rate, asked.seconds, asked.api, directory, asked.replicas))
    rows = [phase.row() for phase in phases]
    names = ("sent", "lost", "wrong", "reconnected", "p50_ms", "p99_ms", "max_ms")
    print(f"{'phase':28}" + "".join(f"{name:>13}" for name in names))
    for row in rows:
        print(f"{row['phase']:28}" + "".join(f"{row[name]:>13}" for name in names))
        for why in row["why"]:
            print(f"    {why}")
    if asked.json:
        asked.json.write_text(
            json.dumps({"rate": asked.rate, "api": asked.api, "phases": rows}, indent=1) + "\n"
        )
    failed = sum(row["lost"] + row["wrong"] for row in rows)
    print(f"{sum(row['sent'] for row in rows)} requests, {failed} lost or wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
