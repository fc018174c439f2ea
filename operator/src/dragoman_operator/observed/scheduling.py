"""What the scheduler, a quota and cluster autoscalers say about pods without a node.

Only the scheduler knows the nodes: the operator reads its messages, and has no permission for nodes.

Source: https://github.com/kubernetes/kubernetes/tree/master/pkg/scheduler/framework (FitError, and the plugins' causes)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal

from dragoman_kube.objects import condition_of
from dragoman_kube.quantity import parse
from dragoman_kube.times import parse_time
from dragoman_operator.observed.snapshot import Manifest, is_live

NODE_EVENTS = ("TriggeredScaleUp", "Nominated")
"""Reasons of the events of a pod for which Cluster Autoscaler or Karpenter adds a node."""
PROVISIONING_S = 900.0
"""Time for which such an event holds. Source: Cluster Autoscaler's default of `--max-node-provision-time`."""

_TOTAL = re.compile(r"0/(\d+) nodes are available")
_CAUSE = re.compile(r"(?:^|, |: )(\d+) (.+?)(?=, \d+ |\.?\s*$)")
_LASTING = (
    "node affinity",
    "node selector",
    "untolerated taint",
    "unschedulable",
    "volume node affinity",
    "missing required label",
    "available persistent volumes",
    "requested node name",
)
"""Parts of the causes that do not change when pods of a node end."""
_UNHELPFUL = "Preemption is not helpful"
_INSUFFICIENT = "Insufficient "


def lacks_claim(pod: Manifest) -> bool:
    """Whether the scheduler waits for a PersistentVolumeClaim: it is missing, or has no volume.

    Source: the messages of kube-scheduler's plugin VolumeBinding.
    """
    scheduled = condition_of(pod, "PodScheduled") or {}
    message = str(scheduled.get("message") or "").lower()
    return scheduled.get("status") == "False" and "persistentvolumeclaim" in message


def without_node(pods: Iterable[Manifest]) -> list[Manifest]:
    """Pods for which the scheduler has found no node; a missing claim is not for lack of nodes."""
    return [
        pod
        for pod in filter(is_live, pods)
        if (condition_of(pod, "PodScheduled") or {}).get("status") == "False" and not lacks_claim(pod)
    ]


def can_get_room(pod: Manifest, others: Iterable[Manifest]) -> bool:
    """Whether a pod without a node may find one once one of the other pods ends.

    If the scheduler gives no cause that rules it out, it may.
    """
    scheduled = condition_of(pod, "PodScheduled") or {}
    if scheduled.get("reason") == "SchedulingGated":
        return False
    message = str(scheduled.get("message") or "")
    if "no nodes available" in message:
        return False
    found = _TOTAL.search(message)
    if found is None:
        return True
    causes, _, preemption = message.partition("preemption:")
    total = int(found[1])
    if sum(count for count, cause in _causes(preemption) if _UNHELPFUL in cause) >= total:
        return False
    held = _held([other for other in others if other is not pod])
    lasting = absent = 0
    for count, cause in _causes(causes):
        if any(part in cause for part in _LASTING):
            lasting += count
        elif cause.startswith(_INSUFFICIENT) and held and cause.removeprefix(_INSUFFICIENT) not in held:
            # A node can lack several resources, and counts once for each.
            absent = max(absent, count)
    return lasting + absent < total


def _causes(text: str) -> Iterator[tuple[int, str]]:
    """Numbers of nodes and why they do not fit."""
    _, _, listed = text.partition("nodes are available: ")
    for count, cause in _CAUSE.findall(listed.strip().rstrip(".")):
        yield int(count), cause


def _held(pods: Iterable[Manifest]) -> set[str]:
    """Names of the resources that pods hold; empty if their spec is not known."""
    containers = [each for pod in pods for each in (pod.get("spec") or {}).get("containers") or ()]
    resources = [each.get("resources") or {} for each in containers]
    return {name for each in resources for kind in ("limits", "requests") for name in each.get(kind) or ()}


_AMOUNTS = re.compile(r"requested: (?P<requested>.+?), used: .+?, limited: (?P<limited>.+?)$")


def quota_can_fit(message: str) -> bool:
    """Whether a quota that refused a pod has room for it once other pods end: it is not above the whole limit."""
    found = _AMOUNTS.search(message.strip())
    if found is None:
        return True
    with suppress(ValueError):
        requested, limited = (dict(_amounts(found[name])) for name in ("requested", "limited"))
        return all(amount <= limited.get(name, amount) for name, amount in requested.items())
    return True


def _amounts(text: str) -> Iterator[tuple[str, Decimal]]:
    for each in text.split(","):
        name, _, amount = each.partition("=")
        yield name, parse(amount)


def provisioned(events: Iterable[Manifest], now: datetime) -> frozenset[str]:
    """Uids of the pods for which a cluster autoscaler adds a node, by the pods' events."""
    return frozenset(
        str((event.get("involvedObject") or {}).get("uid"))
        for event in events
        if event.get("reason") in NODE_EVENTS
        and (time := event.get("lastTimestamp") or event.get("eventTime"))
        and now - parse_time(time) < timedelta(seconds=PROVISIONING_S)
    )
