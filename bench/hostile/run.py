"""What hostile clients cost the others: a good client's latency without them and beside them, in one run.

    python bench/hostile/run.py router|pod [--rounds 10] [--requests 50000] [--hostile-rate 300] [--json FILE]

Rounds of three phases, in turn: the good client alone; beside hostile requests to the server; beside the same ones to
an nginx, which cost the machine as much and the server nothing. The second against the first is what a client sees; the
third against the first is the part of it that is the load's and not the server's, which matters where there are few
cores: the server has core 1, the upstream core 0, the good client core 2 and the hostile ones core 3, where there are
as many, else core 0. The result has the good client's latencies, the longest stall of the server's event loop
(`watched.py`), the statuses, and the server's memory before and after.

A router gets translations, answered at once by nginx, and requires no keys, so that hostile requests get as far as they
can. Half of them are broken, smuggled and oversized ones (`dragoman_bench.hostile`); each of the others has one value
that makes slow parsers slow, in any field of any API (`dragoman_bench.hostile_fields`).

A pod has a scripted engine, and gets requests with such values alone. Hostile texts are translated like others, and a
pod has a few hundred milliseconds of CPU for them a second: at more than its default of `--hostile-rate` the good
client waits for a busy pod, not for a stalled one. `--pod-cores` gives it other cores than core 1. Without nginx on
PATH a pod is measured without the third phase.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1] / "router"))
import proxies
from beside import add_arguments, counted, one_round, table, throw_all
from overhead import fixed_rate, stop_all
from proxies import LOAD_CORE, PROXY_CORE, Proxy

from dragoman_bench.hostile import GOOD, hostile, post
from dragoman_bench.hostile_fields import draws
from dragoman_bench.stalls import Stalls
from dragoman_devcluster.ports import free_port

WATCHED = str(Path(__file__).with_name("watched.py"))
DEPLOYMENTS = """deployments:
- name: default/a
  languages: [{{source: en, targets: [de]}}]
  replicas: ["127.0.0.1:{0}", "127.0.0.1:{1}"]
"""
SETTLED_S = 10.0
"""The longest of the hostile ones leave 0.3 s after they came; the router's own bounds are longer."""
PATIENCE_S = {"router": 0.3, "pod": 2.0}
"""A pod translates what it receives, which takes longer than a router's refusal."""
MAX_CHARS = {"router": 300_000, "pod": 100_000}
"""Of a hostile value; at a router a body of it is near `--max-body-bytes` where a character is three bytes."""
HOSTILE_RATE = {"router": 300.0, "pod": 20.0}


def requests(server: str, chance: random.Random, max_chars: int) -> Iterator[tuple[str, bytes]]:
    """Without end; the API that each has a hostile value for, and what is sent."""
    drawn = draws(chance, max_chars)
    while True:
        if server == "router" and chance.random() < 0.5:
            yield "", hostile(chance)
        else:
            field, value = next(drawn)
            yield field.api, field.request(value).wire()


def state(proxy: Proxy, admin_port: int) -> dict[str, float]:
    """What the router has: connections of clients, all sockets, memory, requests in flight."""
    # Local address, remote address, state; 01 is established.
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    clients = sum(local.endswith(f":{proxy.port:04X}") and kind == "01" for local, _, kind in rows)
    files = list(Path(f"/proc/{proxy.process.pid}/fd").iterdir())
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/load", timeout=5) as answer:
        load = json.load(answer)
    return {
        "clients": clients,
        "sockets": sum(os.readlink(each).startswith("socket:") for each in files if each.is_symlink()),
        "memory_mb": proxy.memory_mb(),
        "in_flight": sum(each["in_flight"] for each in load["deployments"].values()),
    }


def settled(proxy: Proxy, admin_port: int | None, clients: float) -> dict[str, float]:
    """Memory, and of a router `state`, once no more clients are left than there were, or some time has passed."""
    if admin_port is None:
        return {"memory_mb": proxy.memory_mb()}
    end_s = time.monotonic() + SETTLED_S
    while (now := state(proxy, admin_port))["clients"] > clients and time.monotonic() < end_s:
        time.sleep(0.2)
    return now


def pod_at(directory: Path, port: int, cores: str, more_flags: str) -> Proxy:
    """A watched pod with a scripted engine."""
    flags = ["--model=org/model", "--engine=scripted", "--host=127.0.0.1", f"--port={port}"]
    flags += [f"--termination-log={directory}/last-words", *shlex.split(more_flags)]
    command = [sys.executable, WATCHED, str(directory / "stalls"), "serve", *flags]
    return Proxy("dragoman serve", port, proxies.start(directory, cores, "pod", *command))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Start the server and what it is measured with, and go through the rounds."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    one, two, port, admin_port, other = (free_port() for _ in range(5))
    is_router = arguments.server == "router"
    has_nginx = is_router or shutil.which("nginx") is not None
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        directory = Path(temporary)
        stalls = Stalls(directory / "stalls")
        try:
            if has_nginx:
                started.append(proxies.upstream(directory, (one, two)))
                started.append(proxies.nginx(directory, (one, two), other).process)
            if is_router:
                program = (WATCHED, str(directory / "stalls"), "router")
                server = proxies.ours(
                    *(directory, (one, two), port, admin_port),
                    deployments=DEPLOYMENTS,
                    keys=False,
                    program=program,
                )
            else:
                server = pod_at(directory, port, arguments.pod_cores, arguments.pod_flags)
            started.append(server.process)
            for each in (port, other) if has_nginx else (port,):
                proxies.await_ready(each, "/translate", GOOD)
            # The first requests bring memory and connections that stay, and load the names of languages.
            uvloop.run(fixed_rate(port, arguments.rate, 2.0, 1, post(GOOD)))
            before = settled(server, admin_port if is_router else None, 0)
            rows = []
            for number in range(arguments.rounds):
                stalls.reset()
                row = one_round(arguments, number, port, other if has_nginx else None)
                row["stall"] = stalls.settle()[0]._asdict()
                rows.append(row)
            after = settled(server, admin_port if is_router else None, before.get("clients", 0))
            alive = server.process.poll() is None
        finally:
            stop_all(started)
    statuses = counted(rows, "statuses")
    return {
        "rounds": rows,
        "stall": {name: max(row["stall"][name] for row in rows) for name in rows[0]["stall"]},
        "statuses": statuses,
        "apis": counted(rows, "apis"),
        "unforeseen": statuses.get("500", 0),
        "before": before,
        "after": after,
        "alive": alive,
    }


def main() -> int:
    """Measure and print; or, as the child that throws, throw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("server", choices=("router", "pod"))
    parser.add_argument("--pod-cores", default=PROXY_CORE, help="of the pod, such as 4,5,6")
    parser.add_argument(
        "--pod-flags", default="", help="more of the pod's, such as --pod-flags='--guard-process true'"
    )
    parser.add_argument("--max-chars", type=int, help="largest value (router 300000, pod 100000)")
    add_arguments(parser, 50_000)
    arguments = parser.parse_args()
    if arguments.hostile_rate is None:
        arguments.hostile_rate = HOSTILE_RATE[arguments.server]
    if arguments.throw_at:
        max_chars = arguments.max_chars or MAX_CHARS[arguments.server]
        thrown = requests(arguments.server, random.Random(arguments.seed), max_chars)
        print(json.dumps(uvloop.run(throw_all(arguments, thrown, PATIENCE_S[arguments.server]))))
        return 0
    found = measure(arguments)
    print(table(found["rounds"]))
    for name, value in found.items():
        if name != "rounds":
            print(f"{name}: {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
