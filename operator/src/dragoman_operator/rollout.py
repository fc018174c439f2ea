"""Rolling updates: the strategy of the Deployment, and rollback to the last working version.

Only the scheduler knows whether a suitable GPU is free (labels, taints, quotas and other pods matter). Therefore
`surge: Auto` starts with a surge; if the new pod remains unschedulable, and the room of an old pod may help, by the
scheduler's message, an old pod is terminated first.

With a surge, old pods stay until new ones are ready, and a failed rollout stops. If an old pod is terminated first,
its capacity is missing while the new version fails; with one replica that is all capacity. Therefore the status
records the last template whose pods were all ready, and it is restored after a permanent failure of the new one.

A newer operator may make another template of the same spec and image. That alone replaces no pod: the running template
stays until spec or image change. The status records of which of them it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import condition_of, created_at, is_deleting, is_true
from dragoman_kube.times import parse_time
from dragoman_operator.api.labels import ENGINE_CONTAINER, FETCH_CONTAINER
from dragoman_operator.api.pods import Rollout
from dragoman_operator.observed.containers import Finding
from dragoman_operator.observed.diagnosis import diagnose
from dragoman_operator.observed.drift import is_superset
from dragoman_operator.observed.scheduling import can_get_room, quota_can_fit, without_node
from dragoman_operator.observed.snapshot import TEMPLATE_HASH, Manifest, Observed, is_live, template_hash

MAX_FAILURES = 2
"""Failures of an engine, or of its download, that count as permanent."""
STUCK_AFTER_S = 60.0
"""Time after which an image that cannot be pulled, or a missing Secret, ConfigMap or volume, counts as permanent."""

_AT_ONCE = frozenset({"DownloadFailed", "EngineFailed", "OOMKilled"})
_LATER = frozenset({"ImagePullFailed", "CreateContainerError", "FailedMount"})


@dataclass(frozen=True)
class Version:
    """The pod template that this operator makes of spec and image."""

    template: Mapping[str, Any]
    source: str
    """Digest of the fields of the spec that pods depend on, and of the image; see `pod.source_digest`."""


@dataclass(frozen=True)
class Kept:
    """The former version, which is kept instead of that of the spec.

    Args:
        template: Its pod template, without the label of its ReplicaSet.
        reason: Reason of the failure of the spec's version; None if the former one was made of the same spec and image
            by another version of the operator.
    """

    template: Mapping[str, Any]
    reason: str | None = None


def version_to_keep(version: Version, observed: Observed) -> Kept | None:
    """The version to keep instead of `version`, that of the spec; None if the latter may be rolled out."""
    rollout = observed.status.get("rollout") or {}
    good = str(rollout.get("lastReadyTemplateHash") or "")
    former = next((found for found in observed.replica_sets if good and template_hash(found) == good), None)
    if former is None:
        return None
    template = _plain(former, version.template)
    if rollout.get("failedTemplateDigest") == version.source:
        return Kept(template, str(rollout.get("reason") or ""))
    # The spec has the working version again: no rollback is needed.
    if is_superset(template, version.template):
        return None
    if rollout.get("lastReadySource") == version.source:
        return Kept(template)
    if not replaces(observed):
        return None
    newer = [pod for pod in observed.pods if template_hash(pod) != good]
    failure = permanent_failure(newer, observed)
    return Kept(template, failure.message) if failure else None


def _plain(replica_set: Manifest, template: Mapping[str, Any]) -> dict[str, Any]:
    """The pod template of a ReplicaSet without its label.

    Annotations that `template` does not have are of other clients, such as `kubectl rollout restart`.
    """
    plain = replica_set["spec"]["template"]
    metadata = {name: value for name, value in (plain.get("metadata") or {}).items() if value is not None}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != TEMPLATE_HASH}
    own = (template.get("metadata") or {}).get("annotations") or {}
    annotations = {
        name: value for name, value in (metadata.pop("annotations", None) or {}).items() if name in own
    }
    return {
        **plain,
        "metadata": {**metadata, "labels": labels, **({"annotations": annotations} if annotations else {})},
    }


def permanent_failure(pods: Iterable[Manifest], observed: Observed) -> Finding | None:
    """A permanent failure of one of the pods; None without one.

    A pod that finds no node is one only if no replica serves: else the rollout waits, and nothing is lost by that.
    """
    serves = _serves(observed)
    for pod in pods:
        created = created_at(pod)
        status = pod.get("status", {})
        containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        failures = max(map(_failures, containers), default=0)
        for finding in diagnose(None, [pod], observed.mount_failures):
            failed = finding.reason in _AT_ONCE and failures >= MAX_FAILURES
            stuck = finding.reason in _LATER and (observed.now - created).total_seconds() >= STUCK_AFTER_S
            if finding.reason == "Unschedulable":
                stuck = not serves and observed.now >= _node_expected_until(pod)
            if failed or stuck:
                return finding
    return None


def _failures(container: Mapping[str, Any]) -> int:
    """Number of times that the engine, or its download, ended; a running attempt does not count."""
    if container.get("name") not in (ENGINE_CONTAINER, FETCH_CONTAINER):
        return 0
    state = container.get("state") or {}
    if container.get("name") == FETCH_CONTAINER and (state.get("terminated") or {}).get("exitCode") == 0:
        return 0
    return int(container.get("restartCount", 0)) + ("running" not in state)


UNSCHEDULABLE_TIMEOUT_S = 10.0
"""Time for which a new pod may be unschedulable before an old one is terminated: a node from a cluster autoscaler takes
minutes (`surge: Always` waits for it)."""

SURGE: dict[str, object] = {"maxSurge": 1, "maxUnavailable": 0}
REPLACE: dict[str, object] = {"maxSurge": 0, "maxUnavailable": 1}


def strategy(rollout: Rollout, observed: Observed) -> dict[str, object]:
    """The Deployment's `strategy`.

    Returns:
        `SURGE`, which keeps all replicas ready, or `REPLACE`, with which one may be missing.
    """
    replaces = rollout.surge == "Never" or (rollout.surge == "Auto" and has_no_spare_node(observed))
    return {"type": "RollingUpdate", "rollingUpdate": dict(REPLACE if replaces else SURGE)}


def has_no_spare_node(observed: Observed) -> bool:
    """Whether new pods cannot be scheduled beside the old ones.

    It remains true until all pods have one version, and one of them is ready: otherwise each replaced pod would wait
    again, and a version that fails once the last old pod is gone would not be rolled back.
    """
    failures = diagnose(observed.children.get(DEPLOYMENT), ())
    if any(found.reason == "QuotaExceeded" and quota_can_fit(found.message) for found in failures):
        return True
    if replaces(observed):
        wanted = ((observed.children.get(DEPLOYMENT) or {}).get("spec") or {}).get("replicas", 1)
        if wanted > 0 and not _serves(observed):
            return True
        return _mixed(observed.pods) and (not without_node(observed.pods) or bool(_waiting(observed)))
    return unschedulable_time_left_s(observed) == 0


def unschedulable_time_left_s(observed: Observed) -> float | None:
    """Seconds until an old pod is terminated for an unschedulable one, 0 if that is due; else None.

    Once a pod of the new version has found a node, the next one gets that of the old pod which terminated for it, and
    has the time of a termination more.
    """
    if not _mixed(observed.pods) or replaces(observed):
        return None
    placeless = without_node(observed.pods)
    placed = {template_hash(pod) for pod in filter(is_live, observed.pods) if pod not in placeless}
    ends = []
    for pod in _waiting(observed):
        if since := (condition_of(pod, "PodScheduled") or {}).get("lastTransitionTime"):
            limit_s = UNSCHEDULABLE_TIMEOUT_S + (_grace_s(pod) if template_hash(pod) in placed else 0)
            ends.append(parse_time(since) + timedelta(seconds=limit_s))
    return _seconds_until(ends, observed.now)


def time_left_s(observed: Observed) -> float | None:
    """Seconds until time alone changes the rollout: an old pod is terminated, or a failure is permanent; else None."""
    if not replaces(observed):
        return unschedulable_time_left_s(observed)
    pods = [pod for pod in filter(is_live, observed.pods) if not is_true(pod, "Ready")]
    ends = [created_at(pod) + timedelta(seconds=STUCK_AFTER_S) for pod in pods]
    ends += map(_node_expected_until, without_node(pods))
    return _seconds_until((end for end in ends if end > observed.now), observed.now)


def node_is_expected(rollout: Rollout, observed: Observed) -> bool:
    """Whether the pods without a node get those of terminating pods soon, or of old pods in a rollout."""
    # The API server sets the time of a deletion to the end of the grace period.
    ends = [pod["metadata"]["deletionTimestamp"] for pod in observed.pods if is_deleting(pod)]
    if any(parse_time(end) > observed.now for end in ends):
        return True
    in_rollout = rollout.surge != "Always" and (_mixed(observed.pods) or replaces(observed))
    others = list(filter(is_live, observed.pods))
    return in_rollout and all(
        observed.now < _node_expected_until(pod) and can_get_room(pod, others)
        for pod in without_node(observed.pods)
    )


def _node_expected_until(pod: Manifest) -> datetime:
    """The time by which an old pod has been terminated for this one and its resources have been free for a while."""
    return created_at(pod) + timedelta(seconds=UNSCHEDULABLE_TIMEOUT_S + _grace_s(pod) + STUCK_AFTER_S)


def _grace_s(pod: Manifest) -> float:
    """Maximum time of its termination."""
    return float((pod.get("spec") or {}).get("terminationGracePeriodSeconds", 30))


def _seconds_until(times: Iterable[datetime], now: datetime) -> float | None:
    """Seconds until the first of the times, at least 0; None without any."""
    left = [(time - now).total_seconds() for time in times]
    return max(0.0, min(left)) if left else None


def replaces(observed: Observed) -> bool:
    """Whether the Deployment terminates an old pod before it creates a new one."""
    deployment = observed.children.get(DEPLOYMENT) or {}
    update = ((deployment.get("spec") or {}).get("strategy") or {}).get("rollingUpdate") or {}
    return update.get("maxSurge") == 0


def _serves(observed: Observed) -> bool:
    return any(is_true(pod, "Ready") for pod in filter(is_live, observed.pods))


def _mixed(pods: Iterable[Manifest]) -> bool:
    return len({template_hash(pod) for pod in filter(is_live, pods)}) > 1


def _waiting(observed: Observed) -> list[Manifest]:
    """Pods that may get the room of an old pod, and no node of a cluster autoscaler."""
    others = list(filter(is_live, observed.pods))
    return [
        pod
        for pod in without_node(observed.pods)
        if pod["metadata"].get("uid") not in observed.provisioned and can_get_room(pod, others)
    ]
