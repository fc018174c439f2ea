"""The changes that bring the children in line with the spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_contract.kubernetes import GROUP, KIND
from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    NETWORK_POLICY,
    SCALED_OBJECT,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    TRIGGER_AUTHENTICATION,
    Kind,
)
from dragoman_kube.objects import annotations_of, controller_of, created_at, is_deleting, uid_of
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.values import Proposal
from dragoman_operator.autoscaling.view import ScalingView, sizing
from dragoman_operator.observed.drift import APPLIED, Applied, as_made, is_superset, signed
from dragoman_operator.observed.snapshot import CHILD_KINDS, KEDA_KINDS, Manifest, Observed
from dragoman_operator.resources.children import (
    Defaults,
    disruption_budget,
    horizontal_pod_autoscaler,
    network_policy,
    scaled_object,
    service,
    service_account,
    start_cache,
    trigger_authentication,
)
from dragoman_operator.resources.pod import deployment, pod_template, source_digest
from dragoman_operator.rollout import Kept, Version, strategy, version_to_keep
from dragoman_operator.tuning.loop import TuningView


@dataclass(frozen=True)
class ReconcileInput:
    """What one reconciliation works from: the object, the cluster, and the decisions of autoscaling and tuning."""

    td: TranslationDeployment
    observed: Observed
    scaled: ScalingView | None = None
    """None unless in mode Internal."""
    tuned: TuningView | None = None
    """None if tuning is off."""


@dataclass(frozen=True)
class Target:
    """What the Deployment should be."""

    sized: Proposal
    """The number of replicas."""
    strategy: Mapping[str, object]
    version: Version
    """The version of the spec."""
    kept: Kept | None = None
    """The former version, if it is kept instead of the spec's."""

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod template."""
        return self.kept.template if self.kept else self.version.template


@dataclass(frozen=True)
class Change:
    """One write to the API server."""

    kind: Kind
    manifest: dict[str, Any] | None
    """What to apply; None deletes."""
    uid: str | None = None
    """The uid of the observed object, so that a deletion cannot affect its successor."""
    cause: str = ""
    """The cause, for the log: `missing`, `spec changed`, `edited by another client`, `no longer needed`."""
    forced: dict[str, Any] | None = None
    """A merge patch, for a child whose edits make an apply invalid."""


@dataclass(frozen=True)
class Plan:
    """The changes to make, and what prevents others."""

    target: Target
    changes: tuple[Change, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Sentences about objects of other owners with a child's name."""
    waiting: tuple[str, ...] = ()
    """Sentences about children of a deleted predecessor that still exist."""

    def creates(self, kind: Kind) -> bool:
        """Whether a child of this kind is among the changes."""
        return any(change.kind is kind for change in self.changes)

    @property
    def is_applied(self) -> bool:
        """Whether there is nothing to change, apart from the Secret of the start cache, which pods can do without."""
        return all(change.kind is SECRET for change in self.changes)


def target_of(given: ReconcileInput, defaults: Defaults) -> Target:
    """What the Deployment should be.

    Raises:
        SpecError: The spec cannot be turned into a pod template.
    """
    td, observed = defaults.completed(given.td), given.observed
    image = defaults.image(td)
    version = Version(pod_template(td, image), source_digest(td, image))
    return Target(
        sized=sizing(td.spec, given.scaled),
        strategy=strategy(td.spec.rollout, observed),
        version=version,
        kept=version_to_keep(version, observed),
    )


def desired_children(
    td: TranslationDeployment, defaults: Defaults, target: Target
) -> dict[Kind, dict[str, Any] | None]:
    """Every desired child; None if it should not exist."""
    return {
        SERVICE_ACCOUNT: service_account(td),
        NETWORK_POLICY: network_policy(td, defaults.namespace) if td.spec.network_policy.enabled else None,
        SERVICE: service(td),
        DISRUPTION_BUDGET: disruption_budget(td),
        HPA: horizontal_pod_autoscaler(td),
        DEPLOYMENT: deployment(td, target.sized.replicas, target.strategy, target.template),
        TRIGGER_AUTHENTICATION: trigger_authentication(td),
        SCALED_OBJECT: scaled_object(td, defaults.prometheus_url, defaults.prometheus_headers),
    }


def plan(given: ReconcileInput, defaults: Defaults) -> Plan:
    """Compare desired and observed children, by the fields that the operator writes.

    Raises:
        SpecError: The spec cannot be turned into manifests.
    """
    td, observed, target = given.td, given.observed, target_of(given, defaults)
    manifests = desired_children(td, defaults, target)
    changes: list[Change] = []
    obstacles, waiting = [], []
    for kind in (*CHILD_KINDS, *(KEDA_KINDS if observed.keda else ())):
        manifest, found = manifests[kind], observed.children.get(kind)
        if (other := observed.foreign.get(kind)) is not None:
            if _predecessor(other, td):
                waiting.append(f"the {kind.name} of a deleted {KIND} of this name is still being removed")
            elif manifest is not None:
                obstacles.append(
                    f"{kind.name} {td.name} exists and is owned by something else: delete or rename it, or rename "
                    f"this {KIND}"
                )
        elif manifest is None:
            if found is not None and not is_deleting(found):
                uid = found["metadata"]["uid"]
                changes.append(Change(kind, None, uid, "no longer needed"))
        elif found is not None and is_deleting(found):
            waiting.append(f"{kind.name} {td.name} is being deleted and will be created again")
        else:
            written = signed(manifest)
            if cause := _difference(found, written, observed.applied.get(kind)):
                forced = _forced(found, manifest) if found is not None else None
                changes.append(Change(kind, written, None, cause, forced))
    if _needs_start_cache(observed, changes):
        # Before the Deployment, whose pods refer to it.
        kinds = [change.kind for change in changes]
        position = kinds.index(DEPLOYMENT) if DEPLOYMENT in kinds else len(changes)
        changes.insert(position, Change(SECRET, start_cache(td), cause="missing"))
    return Plan(target, tuple(changes), tuple(obstacles), tuple(waiting))


GARBAGE_S = 600.0
"""Age of a Service from which the Secret of its predecessor no longer exists: the garbage collector has removed it."""


def _needs_start_cache(observed: Observed, changes: Sequence[Change]) -> bool:
    """Whether to create the Secret of the start cache.

    The operator cannot read it. It knows the one that it has created for the present Service; otherwise it tries to
    create one before each write of the Deployment, and after the Service was replaced, for as long as the Secret of
    the former Service may be in the way.
    """
    service, secret = observed.children.get(SERVICE), observed.children.get(SECRET)
    deployment = observed.children.get(DEPLOYMENT)
    if SERVICE in observed.foreign or (service and is_deleting(service)):
        return False
    if service and secret and (controller_of(secret) or {}).get("uid") == uid_of(service):
        return False
    if service is None or any(change.kind is DEPLOYMENT for change in changes):
        return True
    replaced = secret is not None or (deployment is not None and created_at(service) > created_at(deployment))
    return replaced and (observed.now - created_at(service)).total_seconds() < GARBAGE_S


def _difference(found: Manifest | None, manifest: Mapping[str, Any], applied: Applied | None) -> str | None:
    if found is None:
        return "missing"
    if (
        applied
        and applied.manifest == manifest
        and applied.made["metadata"]["uid"] == found["metadata"]["uid"]
    ):
        same = is_superset(found, as_made(applied.made, manifest)) and not _foreign(found, applied.made)
        return None if same else "edited by another client"
    if annotations_of(found).get(APPLIED) != manifest["metadata"]["annotations"][APPLIED]:
        return "spec changed"
    return None if is_in_sync(found, manifest) else "edited by another client"


def is_in_sync(found: Manifest, manifest: Mapping[str, Any]) -> bool:
    """Whether a child has all desired values, and no additions that change its meaning."""
    return is_superset(found, manifest) and not _foreign(found, manifest)


def _foreign(found: Manifest, manifest: Mapping[str, Any]) -> list[str]:
    """Fields of the spec that other clients added, for kinds whose spec only the operator writes.

    In other kinds additions stay: the API server sets fields of a Service, and users annotate Deployments.
    """
    if manifest["kind"] not in (DISRUPTION_BUDGET.name, NETWORK_POLICY.name):
        return []
    return sorted(found.get("spec", {}).keys() - manifest["spec"].keys())


def _forced(found: Manifest, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The spec as a merge patch, which replaces lists and removes additions of other clients.

    An apply over such edits can be invalid or insufficient: a Service whose port was renumbered would get a second
    port of the same name, a budget with `minAvailable` would have both bounds.
    """
    if "spec" not in manifest:
        return None
    return {"spec": {**dict.fromkeys(_foreign(found, manifest)), **manifest["spec"]}}


def _predecessor(found: Manifest, td: TranslationDeployment) -> bool:
    owner = controller_of(found) or {}
    return (
        owner.get("kind") == KIND
        and owner.get("name") == td.name
        and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
    )
