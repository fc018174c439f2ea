"""What to change, so that the children are as the spec says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_contract.kubernetes import GROUP, KIND
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.replicas import sizing
from dragoman_operator.autoscaling.status import Scaled
from dragoman_operator.observed.drift import APPLIED, Applied, as_made, holds, signed
from dragoman_operator.observed.ownership import controller, is_child
from dragoman_operator.observed.snapshot import (
    CHILD_KINDS,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    KEDA_KINDS,
    NETWORK_POLICY,
    NOTHING,
    SCALED_OBJECT,
    SERVICE,
    SERVICE_ACCOUNT,
    TRIGGER_AUTHENTICATION,
    Kind,
    Manifest,
    Observed,
)
from dragoman_operator.resources.manifests import (
    Images,
    deployment,
    disruption_budget,
    horizontal_pod_autoscaler,
    network_policy,
    scaled_object,
    service,
    service_account,
    trigger_authentication,
)
from dragoman_operator.resources.manifests.pod import pod_template
from dragoman_operator.rollout.rollback import Kept, kept
from dragoman_operator.rollout.strategy import strategy
from dragoman_operator.tuning.sizes import Tuned, for_pods, in_force


@dataclass(frozen=True)
class Decisions:
    """What autoscaling and tuning decided for one object."""

    scaled: Scaled | None = None
    """None where the autoscaler does not decide."""
    tuned: Tuned | None = None
    """None where tuning is off."""


UNDECIDED = Decisions()


@dataclass(frozen=True)
class Change:
    """One write to the API server."""

    kind: Kind
    manifest: dict[str, Any] | None
    """What to apply; None deletes."""
    uid: str | None = None
    """The object that was looked at, for a deletion that must not hit another."""
    cause: str = ""
    """Why, for the log: `missing`, `spec changed`, `edited by someone else`, `no longer wanted`."""
    forced: dict[str, Any] | None = None
    """A merge patch for a child that was edited so that applying over it is not valid."""


@dataclass(frozen=True)
class Plan:
    """The changes to make, and what stands in their way."""

    changes: tuple[Change, ...] = ()
    obstacles: tuple[str, ...] = ()
    """Sentences about children that belong to somebody else and are left alone."""
    waiting: tuple[str, ...] = ()
    """Sentences about children of a deleted predecessor that are still going."""
    kept: Kept | None = None
    """The former version, where it runs on because the new one failed."""


def wanted(
    td: TranslationDeployment,
    images: Images,
    observed: Observed = NOTHING,
    prometheus_url: str = "",
    decisions: Decisions = UNDECIDED,
) -> dict[Kind, dict[str, Any] | None]:
    """Every child as it should be; None where it should not exist.

    Args:
        td: What should run.
        images: Engine images where `td` names none.
        observed: What was found: the number of pods and the way they are replaced follow from it.
        prometheus_url: Prometheus where `td` names none; empty where there is none.
        decisions: Of autoscaling and tuning.

    Raises:
        SpecError: The spec cannot be turned into manifests.
    """
    former = kept_version(td, images, observed, decisions)
    tuned = decisions.tuned
    pods, td = for_pods(td, tuned), in_force(td, tuned)
    return {
        SERVICE_ACCOUNT: service_account(td),
        NETWORK_POLICY: network_policy(td) if td.spec.network_policy.enabled else None,
        SERVICE: service(td),
        DISRUPTION_BUDGET: disruption_budget(td),
        HPA: horizontal_pod_autoscaler(td),
        DEPLOYMENT: deployment(
            pods,
            images,
            sizing(td.spec, decisions.scaled).replicas,
            strategy(td.spec.rollout, observed),
            former.template if former else None,
            holds=tuned is not None and tuned.holds,
        ),
        TRIGGER_AUTHENTICATION: trigger_authentication(td),
        SCALED_OBJECT: scaled_object(td, prometheus_url),
    }


def kept_version(
    td: TranslationDeployment, images: Images, observed: Observed, decisions: Decisions
) -> Kept | None:
    """The former version, where it has to run on; see `rollback.kept`."""
    pods = for_pods(td, decisions.tuned)
    return kept(pod_template(pods, images.of(pods)), observed, observed.status)


def plan(
    td: TranslationDeployment,
    images: Images,
    observed: Observed,
    prometheus_url: str = "",
    decisions: Decisions = UNDECIDED,
) -> Plan:
    """Compare what should be with what is, looking only at fields we write.

    Args:
        td: What should run.
        images: Engine images where `td` names none.
        observed: What was found.
        prometheus_url: Prometheus where `td` names none; empty where there is none.
        decisions: Of autoscaling and tuning.

    Raises:
        SpecError: The spec cannot be turned into manifests.
    """
    changes, obstacles, waiting = [], [], []
    manifests = wanted(td, images, observed, prometheus_url, decisions)
    for kind in (*CHILD_KINDS, *(KEDA_KINDS if observed.keda else ())):
        manifest, found = manifests[kind], observed.children.get(kind)
        if found is not None and not is_child(found, td.uid):
            if _predecessor(found, td):
                waiting.append(f"the {kind.name} of a deleted {KIND} of this name is still being removed")
            elif manifest is not None:
                obstacles.append(
                    f"a {kind.name} named {td.name} exists and is not ours: delete or rename it, or rename "
                    f"this {KIND}"
                )
        elif manifest is None:
            if found is not None and not _is_going(found):
                uid = found["metadata"]["uid"]
                changes.append(Change(kind, None, uid, "no longer wanted"))
        elif found is not None and _is_going(found):
            waiting.append(f"the {kind.name} is being deleted and is made anew afterwards")
        elif cause := _difference(found, signed(manifest), observed.applied.get(kind)):
            forced = _forced(found, manifest) if found is not None else None
            changes.append(Change(kind, signed(manifest), None, cause, forced))
    former = kept_version(td, images, observed, decisions)
    return Plan(tuple(changes), tuple(obstacles), tuple(waiting), former)


def _difference(found: Manifest | None, manifest: Mapping[str, Any], applied: Applied | None) -> str | None:
    if found is None:
        return "missing"
    if (
        applied
        and applied.manifest == manifest
        and applied.made["metadata"]["uid"] == found["metadata"]["uid"]
    ):
        same = holds(found, as_made(applied.made, manifest)) and not _foreign(found, applied.made)
        return None if same else "edited by someone else"
    annotations = found["metadata"].get("annotations") or {}
    if annotations.get(APPLIED) != manifest["metadata"]["annotations"][APPLIED]:
        return "spec changed"
    return None if settled(found, manifest) else "edited by someone else"


def settled(found: Manifest, manifest: Mapping[str, Any]) -> bool:
    """Whether a child is as it should be: all that we write holds, and nobody changed its meaning by adding.

    Args:
        found: The child as the API server returned it.
        manifest: What we applied.
    """
    return holds(found, manifest) and not _foreign(found, manifest)


def _foreign(found: Manifest, manifest: Mapping[str, Any]) -> list[str]:
    """Fields of the spec that others added, for kinds whose spec is ours alone.

    Elsewhere additions may stay: the API server fills in a Service, and people annotate Deployments.
    """
    if manifest["kind"] not in (DISRUPTION_BUDGET.name, NETWORK_POLICY.name):
        return []
    return sorted(found.get("spec", {}).keys() - manifest["spec"].keys())


def _forced(found: Manifest, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Our spec as a merge patch, in which lists replace lists and what others added goes.

    Applying over a foreign edit can be invalid as a whole, or not enough: a Service whose port was renumbered
    would get a second port of the same name, a budget with `minAvailable` would have both bounds.
    """
    if "spec" not in manifest:
        return None
    return {"spec": {**dict.fromkeys(_foreign(found, manifest)), **manifest["spec"]}}


def _is_going(found: Manifest) -> bool:
    return "deletionTimestamp" in found["metadata"]


def _predecessor(found: Manifest, td: TranslationDeployment) -> bool:
    owner = controller(found)
    return (
        owner.get("kind") == KIND
        and owner.get("name") == td.name
        and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
    )
