"""What hostile values in any field of any API cost a pod, and a good client beside them.

    python bench/pod/hostile.py [--rounds 10] [--requests 50000] [--most-chars 100000] [--json FILE]

The pod has a scripted engine and core 1. Rounds of three phases, as those of `bench/router/hostile.py`, with which this
shares the method: the good client alone; beside hostile requests to the pod; beside the same ones to an nginx, which
cost the machine as much and the pod nothing (left out where there is no nginx on PATH). The result has the good
client's latencies, the longest stall of the pod's event loop, the statuses, and the pod's memory before and after.

Hostile texts are translated like others, and a pod has a few hundred milliseconds of CPU for them a second: at more
than `--hostile-rate` the good client waits for a busy pod, not for a stalled one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1] / "router"))
import proxies
from beside import add_arguments, counted, one_round, table, throw_all
from overhead import fixed_rate, free_ports, stop
from proxies import LOAD_CORE, PROXY_CORE, Proxy

from dragoman_bench.hostile import GOOD, post
from dragoman_bench.hostile_fields import draws
from dragoman_bench.stalls import Stalls

PATIENCE_S = 2.0
"""A pod translates what it is sent, which takes longer than a router's refusal."""


def generated(seed: int, most_chars: int) -> Iterator[tuple[str, bytes]]:
    """Without end; the API of each request, and what is sent."""
    for field, value in draws(random.Random(seed), most_chars):
        yield field.api, field.request(value).wire()


def pod_at(directory: Path, port: int) -> Proxy:
    """A watched pod with a scripted engine."""
    program = str(Path(__file__).parent / "watched_pod.py")
    flags = ["--model=org/model", "--engine=scripted", "--host=127.0.0.1", f"--port={port}"]
    flags.append(f"--termination-log={directory}/last-words")
    command = [sys.executable, program, str(directory / "stalls"), *flags]
    return Proxy("dragoman serve", port, proxies.start(directory, PROXY_CORE, "pod", *command))


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Start the pod and nginx, and go through the rounds."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    port, second, third = free_ports(3)
    other = second if shutil.which("nginx") else None
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        directory = Path(temporary)
        stalls = Stalls(directory / "stalls")
        try:
            if other is not None:
                started.append(proxies.upstream(directory, (other, third)))
            pod = pod_at(directory, port)
            started.append(pod.process)
            proxies.await_ready(port, "/translate", GOOD)
            if other is not None:
                proxies.await_ready(other, "/translate", GOOD)
            # The first requests load what stays: the names of languages, the model that detects them.
            uvloop.run(fixed_rate(port, asked.rate, 2.0, 1, post(GOOD)))
            before_mb = pod.memory_mb()
            rows = []
            for number in range(asked.rounds):
                stalls.reset()
                row = one_round(asked, number, port, other)
                row["stall"] = stalls.settle()[0]._asdict()
                rows.append(row)
            after_mb = pod.memory_mb()
            alive = pod.process.poll() is None
        finally:
            for process in started:
                process.terminate()
            for process in started:
                stop(process)
    worst = {name: max(row["stall"][name] for row in rows) for name in ("loop_s", "process_s", "wall_s")}
    statuses = counted(rows, "statuses")
    return {
        "rounds": rows,
        "stall": worst,
        "statuses": statuses,
        "apis": counted(rows, "apis"),
        "unforeseen": statuses.get("500", 0),
        "before_mb": before_mb,
        "after_mb": after_mb,
        "alive": alive,
    }


def main() -> int:
    """Measure and tell; or, as the child that throws, throw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser, 50_000)
    parser.set_defaults(hostile_rate=20.0)
    parser.add_argument("--most-chars", type=int, default=100_000, help="largest value")
    asked = parser.parse_args()
    if asked.throw_at:
        thrown = throw_all(asked, generated(asked.seed, asked.most_chars), PATIENCE_S)
        print(json.dumps(uvloop.run(thrown)))
        return 0
    found = measure(asked)
    print(table(found["rounds"]))
    for name in ("stall", "statuses", "apis", "unforeseen", "before_mb", "after_mb", "alive"):
        print(f"{name}: {found[name]}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
