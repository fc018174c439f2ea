"""The status: conditions, numbers and the one sentence of the Why column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

from dragoman_contract.http import ENGINE_PORT
from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_contract.languages import Languages
from dragoman_operator.api.labels import selector
from dragoman_operator.api.status import Condition, ConditionValue, Scaling, Status
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.conditions import metrics_available, scaling_active
from dragoman_operator.autoscaling.replicas import mode_of, sizing
from dragoman_operator.autoscaling.status import Scaled, Sizing, changes, status_fields
from dragoman_operator.observed.diagnosis import Finding, diagnose
from dragoman_operator.observed.snapshot import DEPLOYMENT, SERVICE, Observed
from dragoman_operator.resources.plan import UNDECIDED, Decisions, Plan
from dragoman_operator.rollout.rollback import rollout_status
from dragoman_operator.status.conditions import available, degraded, progressing
from dragoman_operator.status.progress import progress_of
from dragoman_operator.tuning.status import recommendation_status, tuning_condition, tuning_status

WHY_LIMIT = 200
"""Characters of the Why column: a terminal's line and a half."""
LANGUAGES_LIMIT = 60

_BAD = {"Degraded": "True", "ScalingActive": "False", "MetricsAvailable": "False"}
"""Conditions whose event is a warning, in the status that is bad."""


@dataclass(frozen=True)
class Transition:
    """A condition or a number of replicas that changed, for an event."""

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
    """The status of an object whose spec is understood.

    Args:
        td: What should run.
        observed: What was found, before the plan was carried out.
        plan: What is being changed.
        old: The status as stored, for the times of transitions; may be empty.
        refusals: What the API server said no to while the plan was carried out.
        decisions: Of autoscaling and tuning.
    """
    scaled, tuned = decisions.scaled, decisions.tuned
    sized = sizing(td.spec, scaled)
    found = progress_of(observed, sized.replicas, settled=not plan.changes)
    # What failed on the way does not count once all is well: evicted pods stay for days.
    findings: list[Finding] = []
    if not found.complete:
        findings = diagnose(observed.children.get(DEPLOYMENT), observed.pods, observed.mount_failures)
    verdicts = [
        available(found),
        progressing(found, plan, findings, tuned.tried_beside if tuned else None),
        degraded(plan, findings, refusals),
        *scaling_active(td.spec, observed, scaled),
        *metrics_available(scaled),
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
        why=_why(verdicts, sized.reason),
        scaling=_scaling(td, scaled, sized, found.pods, old, observed.now),
        rollout=rollout_status(observed, plan.kept, old, complete=found.complete),
        recommendation=recommendation_status(tuned) if tuned else None,
        tuning=tuning_status(tuned) if tuned else None,
        conditions=_stamped(verdicts, td.generation, old, observed.now),
    )
    return written(status)


def _scaling(
    td: TranslationDeployment,
    scaled: Scaled | None,
    sized: Sizing,
    pods: int,
    old: Mapping[str, Any],
    now: datetime,
) -> Scaling:
    told = status_fields(scaled) if scaled else Scaling(rule=sized.rule, reason=sized.reason)
    return told.model_copy(
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
    """The status of an object whose spec cannot be followed: the last good one stays, but for `Degraded`.

    Args:
        generation: The object's generation.
        problem: What is wrong with the spec, and what to do.
        observed: What was found.
        old: The status as stored.
    """
    verdict = ConditionValue("Degraded", True, "InvalidSpec", f"{problem}; running pods stay as they are")
    found = progress_of(observed, int(old.get("desiredReplicas") or 0), settled=True)
    (condition,) = _stamped([verdict], generation, old, observed.now)
    changed = Status(
        observed_generation=generation,
        replicas=found.pods,
        ready_replicas=found.ready,
        why=_shortened(verdict.message, WHY_LIMIT),
        conditions=(condition,),
    )
    # Not read into our models: a newer operator may have written what they do not know.
    others = [found for kind, found in _by_type(old).items() if kind != "Degraded"]
    fields = written(changed)
    return {**old, **fields, "conditions": [*others, *fields["conditions"]]}


def written(status: Status) -> dict[str, Any]:
    """The status as the API takes it."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def transitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    """Conditions whose status or reason changed, and new numbers of replicas, as events.

    What is well at the first look at an object is none.

    Args:
        old: The status as stored; may be empty.
        new: The status to be stored.
    """
    before = _by_type(old)
    changed = []
    for condition in new.get("conditions") or ():
        was = before.get(condition["type"], {})
        differs = (was.get("status"), was.get("reason")) != (condition["status"], condition["reason"])
        warning = _BAD.get(condition["type"]) == condition["status"]
        worth_saying = bool(was) or condition["status"] == "True" or (warning and not _is_pending(condition))
        if differs and worth_saying:
            changed.append(Transition(warning, condition["reason"], condition["message"]))
    return changed + _resizings(old, new)


def _is_pending(condition: Mapping[str, Any]) -> bool:
    """Whether it is only too early to say."""
    return str(condition["reason"]).endswith("Pending")


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


def url_of(td: TranslationDeployment, observed: Observed) -> str:
    """Where requests go: the Service's name in the cluster, or the address that the local cluster gave it."""
    service = observed.children.get(SERVICE) or {}
    annotations = service.get("metadata", {}).get("annotations") or {}
    host = annotations.get(LOCAL_ADDRESS)
    if not host or not _is_address(host):
        host = f"{td.name}.{td.namespace}.svc"
    return f"http://{host}:{ENGINE_PORT}"


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def languages_column(languages: tuple[Languages, ...]) -> str:
    """The pairs for people: ``en>de,fr; fr>en``, or ``any``."""
    pairs = "; ".join(f"{entry.source}>{','.join(entry.targets)}" for entry in languages)
    return _shortened(pairs, LANGUAGES_LIMIT) or "any"


def _why(verdicts: list[ConditionValue], scaling: str) -> str:
    by_type = {verdict.type: verdict for verdict in verdicts}
    for name in ("Degraded", "Progressing"):
        if by_type[name].holds:
            return _shortened(by_type[name].message, WHY_LIMIT)
    return _shortened(f"{by_type['Available'].message}; {scaling}", WHY_LIMIT)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions of a stored status, without those that have no type."""
    conditions = (found for found in status.get("conditions") or () if isinstance(found, Mapping))
    return {found["type"]: found for found in conditions if "type" in found}


def _stamped(
    verdicts: list[ConditionValue], generation: int, old: Mapping[str, Any], now: datetime
) -> tuple[Condition, ...]:
    """Conditions with the time of their last transition: that of `old` where the status is the same."""
    before = _by_type(old)
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    stamped = []
    for verdict in verdicts:
        status = "True" if verdict.holds else "False"
        was = before.get(verdict.type, {})
        since = was.get("lastTransitionTime") if was.get("status") == status else None
        stamped.append(
            Condition(
                type=verdict.type,
                status=status,
                reason=verdict.reason,
                message=verdict.message[:4096],
                last_transition_time=since or stamp,
                observed_generation=generation,
            )
        )
    return tuple(stamped)
