"""Back to the version that worked, where the new one fails and the old pods have had to go first.

While a rollout surges, the old pods stay until new ones are ready, and one that fails just stops. Where an old
pod must leave first, its capacity is gone for as long as the new version fails; with one replica that is all of
it. So the last template whose pods were all ready is remembered, and put back once the new one is hopeless.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dragoman_operator.api.labels import ENGINE_CONTAINER
from dragoman_operator.api.status import RolloutStatus
from dragoman_operator.observed.diagnosis import Finding, diagnose
from dragoman_operator.observed.drift import holds
from dragoman_operator.observed.snapshot import Manifest, Observed
from dragoman_operator.rollout.strategy import TEMPLATE_HASH, replaces, template_hash

HOPELESS_FAILURES = 2
"""An engine that failed this often will not start by itself."""
HOPELESS_AFTER_S = 60.0
"""An image that cannot be pulled, or a Secret or ConfigMap that is missing, may come right within this time."""

_AT_ONCE = frozenset({"EngineFailed", "OutOfMemory"})
_LATER = frozenset({"ImagePullFailed", "ConfigurationMissing", "MountFailed"})


@dataclass(frozen=True)
class Kept:
    """The former version, which runs on although the spec asks for another.

    Args:
        template: Its pod template, without the label of its ReplicaSet.
        failed: Digest of the template that failed.
        reason: Why it did.
    """

    template: Mapping[str, Any]
    failed: str
    reason: str


def digest(template: Mapping[str, Any]) -> str:
    """A short name of a pod template as we write it."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kept(template: Mapping[str, Any], observed: Observed, status: Mapping[str, Any]) -> Kept | None:
    """The version to keep instead of the one that the spec asks for; None where that one has its chance.

    Args:
        template: The pod template that the spec asks for.
        observed: What runs.
        status: The status as stored; may be empty.
    """
    rollout = status.get("rollout") or {}
    good = str(rollout.get("goodTemplate") or "")
    former = next((found for found in observed.replica_sets if good and template_hash(found) == good), None)
    if former is None:
        return None
    wanted = digest(template)
    if rollout.get("failedTemplate") == wanted:
        return Kept(_plain(former), wanted, str(rollout.get("reason") or ""))
    # Where the version that works is asked for again there is nothing to go back to.
    if not replaces(observed) or holds(_plain(former), template):
        return None
    newer = [pod for pod in observed.pods if template_hash(pod) != good]
    failure = hopeless(newer, observed)
    return Kept(_plain(former), wanted, failure.message) if failure else None


def rollout_status(
    observed: Observed, found: Kept | None, status: Mapping[str, Any], *, complete: bool
) -> RolloutStatus | None:
    """What is to be remembered of it.

    Args:
        observed: What runs.
        found: What `kept` said.
        status: The status as stored; may be empty.
        complete: Whether all pods are of the latest template, and ready.
    """
    good = str((status.get("rollout") or {}).get("goodTemplate") or "")
    running = {template_hash(pod) for pod in observed.pods if "deletionTimestamp" not in pod["metadata"]}
    if complete and len(running) == 1:
        good = running.pop()
    if not good and not found:
        return None
    return RolloutStatus(
        good_template=good or None,
        failed_template=found.failed if found else None,
        reason=found.reason if found else None,
    )


def _plain(replica_set: Manifest) -> dict[str, Any]:
    template = replica_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != TEMPLATE_HASH}
    kept_metadata = {name: value for name, value in metadata.items() if value is not None}
    return {**template, "metadata": {**kept_metadata, "labels": labels}}


def hopeless(pods: Iterable[Manifest], observed: Observed) -> Finding | None:
    """What keeps one of the pods from ever starting by itself; None where they may.

    Args:
        pods: Of one version.
        observed: The look that they were found in.
    """
    for pod in pods:
        created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        containers = pod.get("status", {}).get("containerStatuses") or ()
        failures = max(map(_failures, containers), default=0)
        for finding in diagnose(None, [pod], observed.mount_failures):
            failed = finding.reason in _AT_ONCE and failures >= HOPELESS_FAILURES
            stuck = finding.reason in _LATER and (observed.now - created).total_seconds() >= HOPELESS_AFTER_S
            if failed or stuck:
                return finding
    return None


def _failures(container: Mapping[str, Any]) -> int:
    """How often the engine ended: an attempt that is still running has not."""
    ended = "running" not in (container.get("state") or {})
    return int(container.get("restartCount", 0)) + ended if container.get("name") == ENGINE_CONTAINER else 0
