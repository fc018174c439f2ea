"""Which ReplicaSets a Deployment creates, scales and removes next.

Source: https://github.com/kubernetes/kubernetes/tree/v1.34.0/pkg/controller/deployment (rolling.go, sync.go)
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman_kube.objects import Manifest, annotations_of, created_at, is_deleting, owner_reference

REVISION = "deployment.kubernetes.io/revision"
TEMPLATE_HASH = "pod-template-hash"
_HASH_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that spell no words, as Kubernetes uses them in generated names."""


@dataclass(frozen=True)
class RolloutPlan:
    """Changes to the ReplicaSets of a Deployment, to be made in this order; those that differ.

    `change` is merged into the current ReplicaSet.
    """

    create: Manifest | None = None
    change: Manifest | None = None
    scale: dict[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()


def unsupported(deployment: Manifest) -> str:
    """Why this Deployment is not rolled out here; empty if it is. The embedded API refuses such Deployments."""
    if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        return "devcluster does not support the strategy Recreate; use RollingUpdate with maxSurge 0"
    return "devcluster does not support spec.paused" if deployment["spec"].get("paused") else ""


def plan_rollout(deployment: Manifest, replica_sets: Sequence[Manifest]) -> RolloutPlan:
    """The next step from the ReplicaSets there are to the Deployment's template and replicas."""
    live = [replica_set for replica_set in replica_sets if not is_deleting(replica_set)]
    current = current_replica_set(deployment, live)
    old = sorted((item for item in live if item is not current), key=created_at)
    if current is None:
        return RolloutPlan(create=new_replica_set(deployment, old))
    min_ready_s = deployment["spec"].get("minReadySeconds") or 0
    if min_ready_s != (current["spec"].get("minReadySeconds") or 0):
        # Before anything is scaled: availability follows from it. Former ReplicaSets keep theirs.
        return RolloutPlan(change={"spec": {"minReadySeconds": min_ready_s}})
    change, last = None, _last_revision(old)
    if _revision_of(current) <= last:
        change = {"metadata": {"annotations": {REVISION: str(last + 1)}}}
    if size := _scale_current(deployment, current, old):
        return RolloutPlan(change=change, scale=size)
    sizes = _scale_down_old(deployment, current, old)
    remove = () if sizes else _forgotten(deployment, current, old)
    return RolloutPlan(change=change, scale=sizes, remove=remove)


def name_of(manifest: Manifest) -> str:
    """The object's name."""
    return str(manifest["metadata"]["name"])


def desired_of(manifest: Manifest) -> int:
    """``spec.replicas`` of a Deployment or ReplicaSet; 1 if it is left out."""
    replicas = manifest["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def available_of(replica_set: Manifest) -> int:
    """``status.availableReplicas``; 0 before the first status."""
    return int((replica_set.get("status") or {}).get("availableReplicas") or 0)


def current_replica_set(deployment: Manifest, replica_sets: Sequence[Manifest]) -> Manifest | None:
    """The ReplicaSet whose template is the Deployment's; the oldest if there are several."""
    wanted = _comparable(deployment["spec"]["template"])
    matching = [item for item in replica_sets if _comparable(item["spec"]["template"]) == wanted]
    return min(matching, key=created_at, default=None)


def new_replica_set(deployment: Manifest, old: Sequence[Manifest]) -> Manifest:
    """The ReplicaSet for the Deployment's template, at the size it may have at once."""
    spec = deployment["spec"]
    template_hash = hash_template(spec["template"])
    template = json.loads(json.dumps(spec["template"]))
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[TEMPLATE_HASH] = template_hash
    selector = spec["selector"]
    match_labels = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: template_hash}
    annotations = {
        name: value
        for name, value in annotations_of(deployment).items()
        if name != "kubectl.kubernetes.io/last-applied-configuration"
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{template_hash}",
            "namespace": deployment["metadata"]["namespace"],
            "labels": dict(labels),
            "annotations": {**annotations, REVISION: str(_last_revision(old) + 1)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": min(desired_of(deployment), _room(deployment, old)),
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": {**selector, "matchLabels": match_labels},
            "template": template,
        },
    }


def hash_template(template: Manifest) -> str:
    """A short name of a pod template: equal templates have equal hashes."""
    number = int.from_bytes(hashlib.sha256(_comparable(template).encode()).digest()[:8])
    letters = ""
    while len(letters) < 10:
        number, index = divmod(number, len(_HASH_ALPHABET))
        letters += _HASH_ALPHABET[index]
    return letters


def surge_and_unavailable(deployment: Manifest) -> tuple[int, int]:
    """How many pods a rolling update may have above, and may lack below, the desired number.

    Percentages are of ``spec.replicas``; the surge is rounded up, what may lack is rounded down. Where both
    come to nothing, one may lack, or no update could ever proceed.
    """
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    desired = desired_of(deployment)
    surge = math.ceil(_share(rolling.get("maxSurge", "25%"), desired))
    unavailable = math.floor(_share(rolling.get("maxUnavailable", "25%"), desired))
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: int | str, total: int) -> float:
    if isinstance(value, str) and value.endswith("%"):
        return int(value[:-1]) * total / 100
    return float(int(value))


def _room(deployment: Manifest, others: Sequence[Manifest]) -> int:
    surge, _ = surge_and_unavailable(deployment)
    return max(0, desired_of(deployment) + surge - sum(map(desired_of, others)))


def _scale_current(deployment: Manifest, current: Manifest, old: Sequence[Manifest]) -> dict[str, int]:
    desired, present = desired_of(deployment), desired_of(current)
    size = min(desired, max(present, _room(deployment, old)))
    return {name_of(current): size} if size != present else {}


def _scale_down_old(deployment: Manifest, current: Manifest, old: Sequence[Manifest]) -> dict[str, int]:
    if not any(map(desired_of, old)):
        return {}
    _, unavailable = surge_and_unavailable(deployment)
    everything = [*old, current]
    minimum = desired_of(deployment) - unavailable
    not_yet_available = max(0, desired_of(current) - available_of(current))
    budget = sum(map(desired_of, everything)) - minimum - not_yet_available
    sizes = {name_of(item): desired_of(item) for item in old}
    # First the old pods that do not work anyway …
    for item in old:
        broken = max(0, desired_of(item) - available_of(item))
        step = max(0, min(broken, budget))
        sizes[name_of(item)] -= step
        budget -= step
    # … then those that work, as far as enough others do.
    budget = min(budget, sum(map(available_of, everything)) - minimum)
    for item in old:
        step = max(0, min(sizes[name_of(item)], budget))
        sizes[name_of(item)] -= step
        budget -= step
    return {name_of(item): sizes[name_of(item)] for item in old if sizes[name_of(item)] != desired_of(item)}


def _forgotten(deployment: Manifest, current: Manifest, old: Sequence[Manifest]) -> tuple[str, ...]:
    if available_of(current) < desired_of(deployment):
        return ()
    limit = deployment["spec"].get("revisionHistoryLimit")
    keep = 10 if limit is None else int(limit)
    empty = [item for item in old if not desired_of(item) and not (item.get("status") or {}).get("replicas")]
    empty.sort(key=_revision_of)
    return tuple(name_of(item) for item in empty[: max(0, len(empty) - keep)])


def _revision_of(replica_set: Manifest) -> int:
    return int(annotations_of(replica_set).get(REVISION) or 0)


def _last_revision(replica_sets: Sequence[Manifest]) -> int:
    return max(map(_revision_of, replica_sets), default=0)


def _comparable(template: Manifest) -> str:
    metadata = dict(template.get("metadata") or {})
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name != TEMPLATE_HASH}
    metadata = {name: value for name, value in {**metadata, "labels": labels}.items() if value}
    return json.dumps({**template, "metadata": metadata}, sort_keys=True)
