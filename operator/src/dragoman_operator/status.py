"""The status: conditions, numbers and the message."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from ipaddress import ip_address
from typing import Any

from dragoman_contract.http import ENGINE_PORT
from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_contract.languages import Languages
from dragoman_contract.models import licence_limit
from dragoman_kube.kinds import DEPLOYMENT, SERVICE
from dragoman_kube.objects import annotations_of, is_true
from dragoman_kube.times import timestamp
from dragoman_operator.api.labels import selector
from dragoman_operator.api.languages import unknown_tags
from dragoman_operator.api.status import Condition, ConditionValue, Scaling, Status
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.values import Proposal, Rule, count_of
from dragoman_operator.autoscaling.view import (
    ScalingView,
    changes,
    mode_of,
    scaling_active,
    sizing,
    status_fields,
)
from dragoman_operator.observed.diagnosis import Finding, diagnose
from dragoman_operator.observed.snapshot import Manifest, Observed, is_live
from dragoman_operator.resources.plan import UNDECIDED, Decisions, Plan
from dragoman_operator.rollout import node_is_expected, rollout_status
from dragoman_operator.tuning.view import recommendation_status, tuning_condition, tuning_status

_progressing = partial(ConditionValue, "Progressing")
_degraded = partial(ConditionValue, "Degraded")
_available = partial(ConditionValue, "Available")


def available(found: Progress) -> ConditionValue:
    """Available: at least one pod is ready."""
    if found.ready:
        return _available(True, "Ready", f"{found.ready} of {found.desired} replicas are ready")
    if found.desired == 0:
        return _available(False, "ScaledToZero", "there are no replicas; scale up to serve requests")
    return _available(False, "NoReadyReplicas", f"0 of {found.desired} replicas are ready")


def progressing(found: Progress, plan: Plan, findings: list[Finding], download: str = "") -> ConditionValue:
    """Progressing: pods are being started, replaced or removed.

    `download` is the progress of a pod that downloads the model; empty without one.
    """
    detail = f"; {download}" if download else ""
    if any(finding.reason == "ProgressDeadlineExceeded" for finding in findings):
        return _progressing(
            False, "ProgressDeadlineExceeded", f"the rollout stopped with {found.ready} replicas ready"
        )
    if plan.waiting:
        return _progressing(True, "Waiting", "; ".join(plan.waiting))
    if found.complete:
        former = plan.kept is not None and plan.kept.reason is not None
        version = "last version that worked" if former else "current spec"
        return _progressing(False, "Complete", f"all {found.desired} replicas run the {version}")
    if not found.applied:
        return _progressing(True, "Applying", "the spec is being written to the Deployment")
    # Without a ready pod the others start: the Deployment's status does not count those of a new object at once.
    if found.updated < found.pods and found.ready:
        return _progressing(
            True, "Replacing", f"{found.updated} of {found.pods} pods have the current spec{detail}"
        )
    if found.pods > found.desired and found.updated == found.pods:
        return _progressing(
            True, "ScalingDown", f"{count_of(found.pods - found.desired)} too many: terminating{detail}"
        )
    return _progressing(
        True, "Starting", f"{found.ready} of {found.desired} replicas are ready, others start{detail}"
    )


def degraded(
    td: TranslationDeployment, plan: Plan, findings: list[Finding], refusals: tuple[str, ...] = ()
) -> ConditionValue:
    """Degraded: manual action is needed."""
    if refusals:
        return _degraded(True, "ApplyFailed", "; ".join(refusals))
    if plan.obstacles:
        return _degraded(True, "NameConflict", "; ".join(plan.obstacles))
    if plan.kept and plan.kept.reason is not None:
        problem = (
            f"the new version failed and was rolled back: {plan.kept.reason}; change the spec to try again"
        )
        return _degraded(True, "RolledBack", problem)
    if findings:
        return _degraded(True, findings[0].reason, "; ".join(f.message for f in findings))
    if tags := unknown_tags(td.spec.languages):
        problem = (
            f"spec.languages has tags of no language: {', '.join(tags)}; pods serve them as they are written"
        )
        return _degraded(True, "UnknownLanguage", problem)
    limit = licence_limit(td.spec.model.prompt_family)
    notes = (*td.deprecated, *([f"licence: {limit}"] if limit else []))
    return _degraded(False, "AsExpected", "; ".join(("nothing needs attention", *notes)))


@dataclass(frozen=True)
class Progress:
    """Numbers of pods, without those that are being deleted and those that have ended, such as evicted ones."""

    desired: int
    pods: int
    ready: int
    updated: int
    """Pods of the latest template."""
    applied: bool
    """Whether the Deployment is in sync and its controller has observed it."""

    @property
    def complete(self) -> bool:
        """Whether exactly the desired pods exist, all up to date and ready."""
        return self.applied and self.pods == self.ready == self.updated == self.desired


def progress_of(observed: Observed, desired: int, *, applied: bool) -> Progress:
    """Count pods."""
    deployment: Manifest = observed.children.get(DEPLOYMENT) or {}
    status: dict[str, Any] = deployment.get("status") or {}
    seen = status.get("observedGeneration", 0) >= deployment.get("metadata", {}).get("generation", 1)
    alive = list(filter(is_live, observed.pods))
    return Progress(
        desired=desired,
        # The Deployment's status can count a pod that is not read yet.
        pods=max(len(alive), status.get("replicas", 0)),
        ready=sum(is_true(pod, "Ready") for pod in alive),
        updated=status.get("updatedReplicas", 0),
        applied=applied and bool(deployment) and seen,
    )


def _download(observed: Observed) -> str:
    """Of the first pod whose progress is known, before pods that wait for it."""
    uids = (pod["metadata"].get("uid", "") for pod in observed.pods if is_live(pod))
    found = [observed.downloads[uid] for uid in uids if uid in observed.downloads]
    found.sort(key=lambda download: download.ratio is None)
    return found[0].sentence if found else ""


MESSAGE_LIMIT = 200
"""Maximum length of the Message column: a line and a half of a terminal."""
LANGUAGES_LIMIT = 60

_BAD = {"Degraded": "True", "ScalingActive": "False", "MetricsAvailable": "False"}
"""Conditions with the status whose event is a warning."""


@dataclass(frozen=True)
class Transition:
    """A change of a condition or of the number of replicas, for an event."""

    warning: bool
    reason: str
    message: str


def status_of(
    td: TranslationDeployment,
    observed: Observed,
    plan: Plan,
    old: Mapping[str, Any],
    refusals: tuple[str, ...] = (),
    decisions: Decisions = UNDECIDED,
) -> dict[str, Any]:
    """The status of an object with a valid spec.

    `observed` is from before the plan was applied; `old` is the stored status, for the times of transitions.
    """
    scaled, tuned = decisions.scaled, decisions.tuned
    sized = sizing(td.spec, scaled)
    found = progress_of(observed, sized.replicas, applied=not plan.changes)
    # Failures are ignored once the rollout is complete: evicted pods stay for days.
    findings: list[Finding] = []
    if not found.complete:
        findings = diagnose(observed.children.get(DEPLOYMENT), observed.pods, observed.mount_failures)
        if node_is_expected(td.spec.rollout, observed):
            findings = [finding for finding in findings if finding.reason != "Unschedulable"]
    values = [
        available(found),
        progressing(found, plan, findings, _download(observed)),
        degraded(td, plan, findings, refusals),
        *scaling_active(td.spec, observed, scaled),
        *([scaled.metrics] if scaled and scaled.metrics else []),
        *([tuning_condition(tuned)] if tuned else []),
    ]
    status = Status(
        observed_generation=td.generation,
        replicas=found.pods,
        ready_replicas=found.ready,
        desired_replicas=sized.replicas,
        selector=",".join(f"{key}={value}" for key, value in sorted(selector(td.name).items())),
        url=url_of(td, observed),
        languages=languages_column(td.spec.languages),
        message=_message(values, sized),
        scaling=_scaling(td, scaled, sized, found.pods, old, observed.now),
        rollout=rollout_status(observed, plan.source, plan.kept, old, complete=found.complete),
        recommendation=recommendation_status(tuned) if tuned else None,
        tuning=tuning_status(tuned) if tuned else None,
        conditions=_stamped(values, td.generation, old, observed.now),
    )
    return written(status)


def _scaling(
    td: TranslationDeployment,
    scaled: ScalingView | None,
    sized: Proposal,
    pods: int,
    old: Mapping[str, Any],
    now: datetime,
) -> Scaling:
    if scaled and scaled.restored and (stored := old.get("scaling")):
        # Measurements and state of the former operator stay until there are new ones.
        fields = Scaling.model_validate(stored)
    else:
        fields = status_fields(scaled) if scaled else Scaling(rule=sized.rule, reason=sized.reason)
    return fields.model_copy(
        update={
            "mode": mode_of(td.spec),
            "desired_replicas": sized.replicas,
            "current_replicas": pods,
            "changes": changes(old, sized, now),
        }
    )


def status_of_bad_spec(
    generation: int, problem: str, observed: Observed, old: Mapping[str, Any]
) -> dict[str, Any]:
    """The status of an object with an invalid spec: the last one, except for `Degraded`."""
    value = ConditionValue("Degraded", True, "InvalidSpec", f"{problem}; running pods stay as they are")
    found = progress_of(observed, int(old.get("desiredReplicas") or 0), applied=True)
    (condition,) = _stamped([value], generation, old, observed.now)
    changed = Status(
        observed_generation=generation,
        replicas=found.pods,
        ready_replicas=found.ready,
        message=_shortened(value.message, MESSAGE_LIMIT),
        conditions=(condition,),
    )
    # Not parsed: a newer operator may have written fields that the models do not have.
    others = [found for kind, found in _by_type(old).items() if kind != "Degraded"]
    fields = written(changed)
    return {**old, **fields, "conditions": [*others, *fields["conditions"]]}


def written(status: Status) -> dict[str, Any]:
    """The status as an object of the API."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def transitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    """Changes of conditions and of the number of replicas, for events.

    At the first reconciliation, conditions without a problem are not included.
    """
    before = _by_type(old)
    changed = []
    for condition in new.get("conditions") or ():
        was = before.get(condition["type"], {})
        differs = (was.get("status"), was.get("reason")) != (condition["status"], condition["reason"])
        warning = _BAD.get(condition["type"]) == condition["status"]
        known = not condition["reason"].endswith("Pending")
        is_first_scrape = not was and condition["type"] == "MetricsAvailable"
        reported = bool(was) or (condition["status"] == "True" and not is_first_scrape) or (warning and known)
        # The spec being written is followed by what becomes of it within a second.
        if differs and reported and condition["reason"] != "Applying":
            changed.append(Transition(warning, condition["reason"], condition["message"]))
    return changed + _resizings(old, new) + _limited_requests(old, new)


def _resizings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    known = (old.get("scaling") or {}).get("changes") or ()
    added = [change for change in (new.get("scaling") or {}).get("changes") or () if change not in known]
    return [
        Transition(
            False,
            "ScaledUp" if change["to"] > change["from"] else "ScaledDown",
            f"from {change['from']} to {change['to']} replicas: {change['reason']}",
        )
        for change in reversed(added)
    ]


def _limited_requests(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    """A number requested in `spec.replicas` that changed nothing."""
    before, after = old.get("scaling") or {}, new.get("scaling") or {}
    same = old.get("desiredReplicas") == new.get("desiredReplicas")
    if not same or after.get("rule") != "Requested" or before.get("reason") == after["reason"]:
        return []
    return [Transition(False, "RequestLimited", after["reason"])]


def url_of(td: TranslationDeployment, observed: Observed) -> str:
    """URL for requests: the Service's name in the cluster, or its address in the devcluster."""
    service = observed.children.get(SERVICE)
    host = f"{td.name}.{td.namespace}.svc"
    if service is not None:
        with suppress(ValueError):
            host = str(ip_address(annotations_of(service).get(LOCAL_ADDRESS, "")))
    return f"http://{host}:{ENGINE_PORT}"


def languages_column(languages: tuple[Languages, ...]) -> str:
    """The language pairs as text: ``en>de,fr; fr>en``, or ``any``."""
    pairs = "; ".join(f"{entry.source}>{','.join(entry.targets)}" for entry in languages)
    return _shortened(pairs, LANGUAGES_LIMIT) or "any"


def _message(values: list[ConditionValue], sized: Proposal) -> str:
    by_type = {value.type: value for value in values}
    for name in ("Degraded", "Progressing"):
        if by_type[name].status:
            return _shortened(by_type[name].message, MESSAGE_LIMIT)
    ready = by_type["Available"].message
    # The last decision may be from before the last replica was ready.
    text = ready if sized.rule is Rule.STARTING else f"{ready}; {sized.reason}"
    return _shortened(text, MESSAGE_LIMIT)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions of a stored status, without those that have no type."""
    conditions = (found for found in status.get("conditions") or () if isinstance(found, Mapping))
    return {found["type"]: found for found in conditions if "type" in found}


def _stamped(
    values: list[ConditionValue], generation: int, old: Mapping[str, Any], now: datetime
) -> tuple[Condition, ...]:
    """Conditions with the time of their last transition: that of `old` if the status is unchanged."""
    before = _by_type(old)
    stamp = timestamp(now)
    stamped = []
    for value in values:
        status = "True" if value.status else "False"
        was = before.get(value.type, {})
        since = was.get("lastTransitionTime") if was.get("status") == status else None
        stamped.append(
            Condition(
                type=value.type,
                status=status,
                reason=value.reason,
                message=value.message[:4096],
                last_transition_time=since or stamp,
                observed_generation=generation,
            )
        )
    return tuple(stamped)
