"""What hostile clients cost the others: a good client's latency without them and beside them, in one run.

    python bench/router/hostile.py [--rounds 10] [--requests 50000] [--hostile-rate 300] [--json FILE]

Rounds of three phases, in turn: the good client alone; beside hostile requests to the router; beside the same ones to
an nginx on another port, which cost the machine as much and the router nothing. The second against the first is what a
client sees; the third against the first is the part of it that is the load's and not the router's, which matters where
there are few cores: the router has core 1, the upstream core 0, the good client core 2 and the hostile ones core 3,
where there are as many, else core 0.

What a good client asks is a translation, answered at once by nginx; the router asks for no keys, so that hostile
requests get as far as they can. Half of the hostile requests are broken, smuggled and oversized ones
(`dragoman_bench.hostile`); each of the others has one value that makes slow parsers slow, in any field of any API
(`dragoman_bench.hostile_fields`). The router's event loop is watched (`watched_router.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent))
import proxies
from beside import add_arguments, counted, one_round, table, throw_all
from overhead import fixed_rate, free_ports, stop
from proxies import LOAD_CORE, Proxy

from dragoman_bench.hostile import GOOD, hostile, post
from dragoman_bench.hostile_fields import draws

DEPLOYMENTS = """deployments:
- name: default/a
  languages: [{{source: en, targets: [de]}}]
  replicas: ["127.0.0.1:{0}", "127.0.0.1:{1}"]
"""
SETTLED_S = 10.0
"""The longest of the hostile ones leave 0.3 s after they came; the router's own bounds are longer."""
MOST_CHARS = 300_000
"""Of a hostile value; a body of it is near `--max-body-bytes` where each character is three bytes, or an escape."""


def requests(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Without end; the API that each has a hostile value for, and what is sent."""
    drawn = draws(chance, MOST_CHARS)
    while True:
        if chance.random() < 0.5:
            yield "", hostile(chance)
        else:
            field, value = next(drawn)
            yield field.api, field.request(value).wire()


def state(proxy: Proxy, admin_port: int) -> dict[str, float]:
    """What the router holds: connections of clients, all sockets, memory, requests in flight."""
    # Local address, remote address, state; 01 is established.
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    clients = sum(local.endswith(f":{proxy.port:04X}") and kind == "01" for local, _, kind in rows)
    files = list(Path(f"/proc/{proxy.process.pid}/fd").iterdir())
    status = Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    resident = next(line for line in status if line.startswith("VmRSS:"))
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/load", timeout=5) as answer:
        load = json.load(answer)
    return {
        "clients": clients,
        "sockets": sum(os.readlink(each).startswith("socket:") for each in files if each.is_symlink()),
        "resident_mb": round(int(resident.split()[1]) / 1024, 1),
        "in_flight": sum(each["in_flight"] for each in load["deployments"].values()),
    }


def settled(proxy: Proxy, admin_port: int, clients: float) -> dict[str, float]:
    """The same once no more clients are left than there were, or some time has passed."""
    end_s = time.monotonic() + SETTLED_S
    while (now := state(proxy, admin_port))["clients"] > clients and time.monotonic() < end_s:
        time.sleep(0.2)
    return now


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Start the router and what it is measured with, and go through the rounds."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    one, two, port, admin_port, other = free_ports(5)
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        directory = Path(temporary)
        started = [proxies.upstream(directory, (one, two))]
        try:
            started.append(proxies.nginx(directory, (one, two), other).process)
            stalls = directory / "stalls.json"
            router = proxies.ours(
                directory, (one, two), port, admin_port, deployments=DEPLOYMENTS, keys=False, stalls=stalls
            )
            started.append(router.process)
            proxies.await_ready(port, "/translate", GOOD)
            proxies.await_ready(other, "/translate", GOOD)
            # The first requests bring memory and connections that stay.
            uvloop.run(fixed_rate(port, asked.rate, 2.0, 1, post(GOOD)))
            before = settled(router, admin_port, 0)
            router.process.send_signal(signal.SIGUSR1)
            rows = [one_round(asked, number, port, other) for number in range(asked.rounds)]
            after = settled(router, admin_port, before["clients"]) | json.loads(stalls.read_text())
        finally:
            for process in started:
                process.terminate()
            for process in started:
                stop(process)
    return {"rounds": rows, "before": before, "after": after}


def main() -> int:
    """Measure and tell; or, as the child that throws, throw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser, 50_000)
    asked = parser.parse_args()
    if asked.throw_at:
        print(json.dumps(uvloop.run(throw_all(asked, requests(random.Random(asked.seed))))))
        return 0
    found = measure(asked)
    print(table(found["rounds"]))
    print(f"answers to hostile requests: {counted(found['rounds'], 'statuses')}")
    print(f"hostile values in fields of: {counted(found['rounds'], 'apis')}")
    print(f"before: {found['before']}\nafter: {found['after']}")
    print(
        f"longest stall of the router's loop: {found['after']['cpu_ms']} ms of CPU, {found['after']['wall_ms']} ms"
    )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
