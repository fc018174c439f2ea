"""The whole status, of a valid and of an invalid spec: both show the pods as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from dragoman_contract.http import ENGINE_PORT
from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_contract.languages import Languages
from dragoman_kube.kinds import DEPLOYMENT, SERVICE
from dragoman_kube.objects import Key, annotations_of
from dragoman_operator.api.labels import selector
from dragoman_operator.api.status import ConditionValue, Status
from dragoman_operator.autoscaling.decision.values import Proposal, Rule
from dragoman_operator.observed.snapshot import Observed
from dragoman_operator.resources.plan import Plan, ReconcileInput
from dragoman_operator.rollout import node_is_expected
from dragoman_operator.status.conditions import (
    available,
    conditions_by_type,
    degraded,
    invalid,
    never_started,
    progressing,
    scaling_active,
    stamped,
    summary,
    tuning,
)
from dragoman_operator.status.fields import (
    recommendation_status,
    rollout_status,
    scaling_status,
    tuning_status,
)
from dragoman_operator.status.progress import Progress, details_of, failures_of, progress_of

MESSAGE_LIMIT = 200
"""Maximum length of the Message column: a line and a half of a terminal."""
LANGUAGES_LIMIT = 60


def status_of(given: ReconcileInput, plan: Plan, refusals: Sequence[str] = ()) -> dict[str, Any]:
    """The status of an object with a valid spec.

    Args:
        given: The object, as observed before the plan was carried out.
        plan: The plan.
        refusals: Errors of the API server.
    """
    td, observed, tuned = given.td, given.observed, given.tuned
    sized, kept = plan.target.sized, plan.target.kept
    found = progress_of(observed, sized.replicas, applied=plan.is_applied)
    findings = failures_of(observed, found, node_expected=node_is_expected(td.spec.rollout, observed))
    version = "last version that worked" if kept and kept.reason is not None else "current spec"
    progress = progressing(found, findings, version, plan.waiting, details_of(observed))
    problem = degraded(td, plan, findings, refusals)
    values = [
        available(found),
        progress,
        problem,
        *summary(progress, problem),
        *scaling_active(td, observed, given.scaled),
        *([given.scaled.metrics] if given.scaled and given.scaled.metrics else []),
        *([tuning(tuned)] if tuned else []),
    ]
    shared = _observed_status(Key(td.namespace, td.name), td.generation, observed, found, values)
    status = shared.model_copy(
        update={
            "languages": languages_column(td.spec.languages),
            "message": _message(values, sized),
            "scaling": scaling_status(given, sized, found.pods),
            "rollout": rollout_status(observed, plan.target, complete=found.complete),
            "recommendation": recommendation_status(tuned) if tuned else None,
            "tuning": tuning_status(tuned) if tuned else None,
        }
    )
    return _written(status)


def status_of_bad_spec(key: Key, generation: int, problem: str, observed: Observed) -> dict[str, Any]:
    """The status of an object with an invalid spec.

    What is observed is shown as it is; what follows from a spec stays as it was with the last valid one.

    Args:
        key: The object.
        generation: Of its spec.
        problem: Why it is invalid.
        observed: The snapshot.
    """
    old, deployment = observed.status, observed.children.get(DEPLOYMENT)
    desired = old.get("desiredReplicas")
    if desired is None and deployment is not None:
        desired = deployment["spec"].get("replicas")
    found = progress_of(observed, desired or 0, applied=True)
    findings = failures_of(observed, found, node_expected=False)
    if desired is None:
        values = never_started()
    else:
        values = [
            available(found),
            progressing(found, findings, "last valid spec", detail=details_of(observed)),
        ]
    values.append(invalid(problem))
    values += summary(values[1], values[2])
    fields = _written(_observed_status(key, generation, observed, found, values))
    shown = {value.type for value in values}
    # Not parsed: a newer operator may have written fields that the models do not have.
    others = [each for kind, each in conditions_by_type(old).items() if kind not in shown]
    if desired is None:
        del fields["desiredReplicas"]
    status = {**old, **fields, "conditions": [*fields["conditions"], *others]}
    status["message"] = _shortened(values[2].message, MESSAGE_LIMIT)
    if scaling := old.get("scaling"):
        status["scaling"] = {**scaling, "currentReplicas": found.pods}
    return status


def _observed_status(
    key: Key, generation: int, observed: Observed, found: Progress, values: list[ConditionValue]
) -> Status:
    """The fields that depend on no spec but through `values`."""
    return Status(
        observed_generation=generation,
        replicas=found.pods,
        ready_replicas=found.ready,
        desired_replicas=found.desired,
        selector=",".join(f"{label}={value}" for label, value in sorted(selector(key.name).items())),
        url=url_of(key, observed),
        conditions=stamped(values, generation, observed.status, observed.now),
    )


def _written(status: Status) -> dict[str, Any]:
    """The status as an object of the API."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def url_of(key: Key, observed: Observed) -> str:
    """URL for requests: the Service's name in the cluster, or its address in the devcluster."""
    service = observed.children.get(SERVICE)
    host = f"{key.name}.{key.namespace}.svc"
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
