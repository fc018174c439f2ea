"""The measurement: creation, idle load, repair of drift, takeover; and its table."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dragoman.command_line import markdown
from dragoman_bench.machine import machine
from dragoman_bench.reconcile.audit import Call, calls, counts, without_leases
from dragoman_bench.reconcile.cluster import Installed, installed
from dragoman_bench.reconcile.objects import (
    CHILD_KINDS,
    NAMESPACE,
    TRANSLATION_DEPLOYMENT,
    Observed,
    create_all,
    key_of,
    manifest,
)
from dragoman_bench.reconcile.process import Operator
from dragoman_kube.kinds import DEPLOYMENT, SERVICE
from dragoman_kube.kinds import NAMESPACE as NAMESPACE_KIND
from dragoman_kube.objects import Key, Manifest

QUIET_S = 5.0
"""Time without a change after which the operator has settled."""
AUDIT_FLUSH_S = 2.0
"""The API server writes its audit log in batches, at least every second."""
DRIFTS = 10
PER_OBJECT_S = 1.0
"""Timeout of a phase, by the number of objects."""


@dataclass(frozen=True)
class Objects:
    """What to measure.

    Attributes:
        objects: Number of TranslationDeployments.
        idle_s: Seconds for which the idle load is measured.
        controllers: Whether the local cluster's controllers run.
        output: Directory for the state and the logs.
        seed: Of the choice of objects that are changed.
    """

    objects: int
    idle_s: float
    controllers: bool
    output: Path
    seed: int


async def measure(plan: Objects, say: Callable[[str], None]) -> dict[str, Any]:
    """All figures of one number of objects.

    Raises:
        BenchError: Nothing could be measured.
        TimeoutError: The operator did not finish a phase.
    """
    say("starting kube-apiserver, installing the chart")
    async with installed(plan.output, plan.controllers) as cluster:
        await cluster.kube.create(
            NAMESPACE_KIND, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        leader = Operator(cluster, "first", plan.output)
        standby: Operator | None = None
        try:
            await leader.until_leader(True)
            observed = Observed(cluster.kube)
            async with observed.watched():
                measurement = _Measurement(plan, cluster, observed, say)
                document: dict[str, Any] = {
                    "kind": "reconcile",
                    "machine": machine(None),
                    "objects": plan.objects,
                    "controllers": plan.controllers,
                    "seed": plan.seed,
                    "create": await measurement.create(leader),
                    "idle": await measurement.idle(leader),
                    "drift": await measurement.drift(),
                }
                standby = Operator(cluster, "second", plan.output)
                await standby.until_leader(False)
                document["takeover"] = await measurement.takeover(leader, standby)
                return document
        finally:
            leader.kill()
            if standby is not None:
                standby.kill()


class _Measurement:
    def __init__(
        self, plan: Objects, cluster: Installed, observed: Observed, say: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._observed = observed
        self._say = say
        self._timeout_s = 120 + PER_OBJECT_S * plan.objects
        self._random = random.Random(plan.seed)

    async def create(self, operator: Operator) -> dict[str, Any]:
        """From the first object to the last child, and until nothing changes any more."""
        began, count = time.time(), self._plan.objects
        before = await operator.reconciles()
        expected = count * len(CHILD_KINDS)
        await create_all(self._cluster.kube, count)
        accepted_s = time.time() - began
        self._say(f"{count} objects created after {accepted_s:.1f} s")
        complete = await self._until(lambda: self._observed.children() == expected, operator)
        self._say(f"all children after {complete - began:.1f} s")
        await self._observed.until_quiet(QUIET_S, self._timeout_s)
        after = await operator.reconciles()
        found = without_leases(await self._calls(began, time.time()))
        return {
            "objects_created_s": accepted_s,
            "all_children_s": complete - began,
            "settled_s": self._observed.changed_at - began,
            "cpu_s": operator.cpu_s()[0],
            "memory_bytes": operator.resident_bytes()[0],
            "peak_memory_bytes": operator.resident_bytes()[1],
            "calls_per_object": len(found) / count,
            "calls": counts(found),
            "reconciles_per_object": (after - before) / count,
        }

    async def idle(self, operator: Operator) -> dict[str, Any]:
        """Load without changes."""
        self._say(f"idle for {self._plan.idle_s:g} s")
        began, cpu_s = time.time(), operator.cpu_s()[0]
        await asyncio.sleep(self._plan.idle_s)
        ended, used_s = time.time(), operator.cpu_s()[0] - cpu_s
        found = await self._calls(began, ended)
        return {
            "window_s": ended - began,
            "requests_per_s": len(found) / (ended - began),
            "cores": used_s / (ended - began),
            "calls": counts(found),
            "memory_bytes": operator.resident_bytes()[0],
        }

    async def drift(self) -> dict[str, Any]:
        """Ten children deleted and ten changed; time until each is as it was."""
        self._say("drift")
        numbers = self._random.sample(range(self._plan.objects), min(2 * DRIFTS, self._plan.objects))
        deleted, changed = numbers[::2], numbers[1::2]
        repaired = await asyncio.gather(*map(self._delete, deleted), *map(self._change, changed))
        times = sorted(repaired)
        return {"children": len(times), "median_s": median(times), "max_s": times[-1]}

    async def takeover(self, leader: Operator, standby: Operator) -> dict[str, Any]:
        """The leader is killed; edits, a deletion and a new object wait for the standby."""
        self._say("takeover")
        before = self._observed.uids()
        edited, bare = self._random.sample(range(self._plan.objects), 2)
        new = self._plan.objects
        leader.kill()
        began = time.time()
        await self._cluster.kube.merge(
            TRANSLATION_DEPLOYMENT, key_of(edited), {"spec": {"engine": {"maxNumSeqs": 48}}}
        )
        await self._remove(key_of(bare))
        await self._cluster.kube.create(TRANSLATION_DEPLOYMENT, manifest(new))
        service = before[SERVICE.name, key_of(bare)]

        def done() -> bool:
            found = self._observed.get(SERVICE, key_of(bare))
            return (
                "48" in _arguments(self._observed.get(DEPLOYMENT, key_of(edited)))
                and found is not None
                and found["metadata"]["uid"] != service
                and all(self._observed.get(kind, key_of(new)) for kind in CHILD_KINDS)
            )

        all_done = await self._until(done, standby)
        await self._observed.until_quiet(QUIET_S, self._timeout_s)
        after = self._observed.uids()
        replaced = {child for child, uid in before.items() if after.get(child) != uid}
        found = without_leases(await self._calls(began, time.time()))
        return {
            "edits_reconciled_s": all_done - began,
            "children_lost_or_replaced": len(replaced - {(SERVICE.name, key_of(bare))}),
            "writes": sum(call.verb not in ("get", "list", "watch") for call in found),
            "calls": counts(found),
            "cpu_s": standby.cpu_s()[0],
            "peak_memory_bytes": standby.resident_bytes()[1],
        }

    async def _until(self, holds: Callable[[], bool], operator: Operator) -> float:
        """Wait as `Observed.until`, while the operator runs."""
        ended = asyncio.create_task(operator.until_ended())
        held = asyncio.create_task(self._observed.until(holds, self._timeout_s))
        try:
            await asyncio.wait([ended, held], return_when=asyncio.FIRST_COMPLETED)
            return held.result() if held.done() else ended.result()
        finally:
            ended.cancel()
            held.cancel()

    async def _calls(self, since: float, until: float) -> list[Call]:
        await asyncio.sleep(AUDIT_FLUSH_S)
        with self._cluster.audit_log.open() as lines:
            return list(calls(lines, since, until))

    async def _remove(self, key: Key) -> str:
        found = self._observed.get(SERVICE, key)
        uid = str(found["metadata"]["uid"]) if found else ""
        await self._cluster.kube.delete(SERVICE, key, uid)
        return uid

    async def _delete(self, number: int) -> float:
        key, began = key_of(number), time.time()
        uid = await self._remove(key)

        def is_new() -> bool:
            found = self._observed.get(SERVICE, key)
            return found is not None and found["metadata"]["uid"] != uid

        return await self._observed.until(is_new, self._timeout_s) - began

    async def _change(self, number: int) -> float:
        key, began = key_of(number), time.time()
        changed = await self._cluster.kube.merge(DEPLOYMENT, key, {"spec": {"replicas": 7}})
        version = int(changed["metadata"]["resourceVersion"])

        def is_repaired() -> bool:
            found = self._observed.get(DEPLOYMENT, key)
            newer = found is not None and int(found["metadata"]["resourceVersion"]) > version
            return newer and found is not None and found["spec"]["replicas"] != 7

        return await self._observed.until(is_repaired, self._timeout_s) - began


def _arguments(deployment: Manifest | None) -> list[str]:
    if deployment is None:
        return []
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


HEAD = ("", "measured")


def table(document: dict[str, Any]) -> str:
    """The figures of one run, and its calls by verb and resource."""
    create, idle, drift, takeover = (document[part] for part in ("create", "idle", "drift", "takeover"))
    peak = max(create["peak_memory_bytes"], takeover["peak_memory_bytes"])
    rows = [
        ("objects", str(document["objects"])),
        ("all children after the first apply", f"{create['all_children_s']:.1f} s"),
        ("nothing changes any more after", f"{create['settled_s']:.1f} s"),
        ("API calls an object", f"{create['calls_per_object']:.1f}"),
        ("reconciliations an object", f"{create['reconciles_per_object']:.1f}"),
        ("CPU of the operator", f"{create['cpu_s']:.1f} s"),
        ("peak memory", f"{peak / 1e6:.0f} MB"),
        ("idle: requests", f"{idle['requests_per_s']:.2f} a second"),
        ("idle: CPU", f"{idle['cores']:.1%} of a core"),
        (
            "a child deleted or changed is repaired after",
            f"{drift['median_s']:.2f} s, {drift['max_s']:.2f} s",
        ),
        ("takeover after kill -9", f"{takeover['edits_reconciled_s']:.1f} s"),
        ("children lost or replaced in the takeover", str(takeover["children_lost_or_replaced"])),
        ("writes of the standby for 3 changes", str(takeover["writes"])),
    ]
    calls = [(name, f"{count / document['objects']:.2f}") for name, count in create["calls"].items()]
    return f"{markdown(HEAD, rows)}\n\n{markdown(('calls an object', ''), calls)}"
