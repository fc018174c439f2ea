"""The table and the description of TranslationDeployments, from their spec and status; without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from dragoman_kube.times import parse_time

Manifest = Mapping[str, Any]

UNKNOWN = "-"
NEEDS_ATTENTION = {
    "Degraded": "True",
    "ScalingActive": "False",
    "MetricsAvailable": "False",
    "Available": "False",
}
"""The status of each condition that needs action, most important first."""
QUIET = {"ScaledToZero"}
"""Reasons that are as the spec wants it."""


class Row(NamedTuple):
    """One line of the table of all objects; every field as it is printed."""

    namespace: str
    name: str
    ready: str
    """Ready of wanted replicas."""
    running: str
    """Sequences in the engines."""
    queue: str
    """Requests that wait in engines and routers."""
    decision: str
    """The last change of the number of replicas, with its rule and age, else the rule in force."""
    state: str
    """The reason of the condition that matters most."""


COLUMNS = ("NAMESPACE", "NAME", "READY", "RUNNING", "QUEUE", "LAST DECISION", "STATE")
"""Titles of the fields of `Row`."""


def row(manifest: Manifest, now: datetime) -> Row:
    """One object's line."""
    metadata, status = manifest["metadata"], _status(manifest)
    scaling = status.get("scaling") or {}
    signals = scaling.get("signals") or {}
    return Row(
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
        f"{status.get('readyReplicas', 0)}/{wanted(manifest)}",
        _number(signals.get("running")),
        _number(_sum(signals.get("waiting"), signals.get("queuedAtRouters"))),
        _last_decision(scaling, now),
        state(status),
    )


def wanted(manifest: Manifest) -> int:
    """Replicas that are desired; the spec's before the operator has seen the object."""
    desired = _status(manifest).get("desiredReplicas")
    return int((manifest.get("spec") or {}).get("replicas", 1) if desired is None else desired)


def state(status: Manifest) -> str:
    """The most important reason, in one word."""
    found = _conditions(status)
    if not found:
        return "NotReconciled"
    order = [("Degraded", "True"), ("Progressing", "True"), ("Available", "False"), ("Available", "True")]
    for kind, value in order:
        if (condition := found.get(kind)) and condition.get("status") == value:
            return str(condition.get("reason", kind))
    return UNKNOWN


def details(manifest: Manifest, now: datetime) -> list[str]:
    """One object in full: its size and the reason for it, its conditions, and what to do."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, _status(manifest)
    model = spec.get("model") or {}
    lines = [
        f"{metadata.get('namespace', '')}/{metadata['name']}: "
        f"{status.get('readyReplicas', 0)} of {wanted(manifest)} replicas are ready",
        f"  model      {model.get('uri', UNKNOWN)} ({model.get('promptFamily', UNKNOWN)})",
        f"  languages  {status.get('languages', UNKNOWN)}",
        f"  url        {status.get('url', UNKNOWN)}",
        "",
        "Size",
        *_size(manifest, now),
        "",
        "Conditions",
        *(_condition(condition, now) for condition in _conditions(status).values()),
    ]
    if not _conditions(status):
        lines.append("  none: the operator has not reconciled the object; is it running?")
    if steps := list(what_to_do(manifest)):
        lines += ["", "What to do", *(f"  - {step}" for step in steps)]
    return lines


def what_to_do(manifest: Manifest) -> Iterator[str]:
    """What to do about each condition that needs action."""
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace", "default")
    found = _conditions(_status(manifest))
    for kind, value in NEEDS_ATTENTION.items():
        condition = found.get(kind, {})
        reason = str(condition.get("reason", ""))
        if condition.get("status") != value or reason in QUIET:
            continue
        # What starts becomes available by itself.
        if kind == "Available" and found.get("Progressing", {}).get("status") == "True":
            continue
        step = ADVICE.get(reason) or ADVICE[kind]
        yield f"{reason}: {step.format(name=name, namespace=namespace)}"


_LOGS = "kubectl logs --namespace {namespace} --selector dragoman.io/deployment={name} --prefix --tail 50"
_PODS = "kubectl describe pods --namespace {namespace} --selector dragoman.io/deployment={name}"

ADVICE: Mapping[str, str] = {
    "InvalidSpec": "correct the field that the message names (kubectl explain td.spec) and apply the object again",
    "NameConflict": "rename the TranslationDeployment, or delete the object that has its name",
    "ApplyFailed": "give the operator the permission or the quota that the message names",
    "DownloadFailed": "check spec.model: the uri, the token's Secret, and the room of the cache; then "
    + _LOGS,
    "EngineFailed": "change the setting that the message names; the rest of the start is in " + _LOGS,
    "OOMKilled": "raise resources.limits.memory, or lower engine.maxNumSeqs or engine.maxModelLen",
    "SidecarFailed": "repair the container that a webhook added, or keep the webhook from adding it; see "
    + _PODS,
    "ImagePullFailed": "correct spec.image, and name the registry's credentials in spec.imagePullSecrets",
    "CreateContainerError": "create the Secret or ConfigMap that the message names; see " + _PODS,
    "FailedMount": "create the volume that the message names; see " + _PODS,
    "QuotaExceeded": "raise the namespace's ResourceQuota, or lower the number of replicas",
    "FailedCreate": "the cluster does not admit the pods: do what the message says",
    "Unschedulable": "no node has what the pods request: free it or add nodes, or lower resources; see "
    + _PODS,
    "PodRejected": "repair the node or its device plugin; see " + _PODS,
    "NodeUnreachable": "repair the node or delete it; Kubernetes then replaces its pods",
    "NodeShutdown": "Kubernetes starts the pod on another node; add one if none has room",
    "Paused": "continue the rollout: kubectl rollout resume deployment {name} --namespace {namespace}",
    "Evicted": "its node had too little disk or memory: raise resources.requests, or free the node",
    "RolledBack": "the last version runs on; change the spec to try again",
    "ProgressDeadlineExceeded": "raise rollout.startTimeout if a start takes that long; see " + _LOGS,
    "UnknownLanguage": "correct the tags in spec.languages; they are BCP-47, such as de, pt-BR or zh-Hant",
    "Degraded": "do what the message says; docs/how-to/troubleshooting.md has more",
    "ScalingActive": "the number of replicas stays as it is: do what the message says",
    "MetricsAvailable": "the number of replicas stays as it is until pods report; see " + _LOGS,
    "Available": "nothing answers: see " + _PODS,
}
"""By the reason of a condition, else by its type."""


def _size(manifest: Manifest, now: datetime) -> Iterator[str]:
    scaling = _status(manifest).get("scaling") or {}
    rule = f" ({scaling['rule']})" if scaling.get("rule") else ""
    count = wanted(manifest)
    yield f"  {count} replica{'' if count == 1 else 's'}{rule}: {scaling.get('reason', 'no decision yet')}"
    if measured := ", ".join(_measurements(scaling.get("signals") or {})):
        yield f"  {measured}{_age_in(scaling.get('evaluationTime'), now, ', measured {} ago')}"
    for change in scaling.get("changes") or ():
        age = _age_in(change.get("time"), now, "{} ago")
        yield f"  {age:>8}  {change['from']} → {change['to']}  {change['rule']}: {change['reason']}"


def _measurements(signals: Manifest) -> Iterator[str]:
    for field, text in (
        ("running", "{:g} running"),
        ("waiting", "{:g} wait in engines"),
        ("queuedAtRouters", "{:g} wait in routers"),
        ("kvCacheUsage", "KV cache {:.0%} used"),
        ("arrivalsPerSecond", "{:g} requests a second"),
    ):
        if signals.get(field) is not None:
            yield text.format(signals[field])


def _condition(condition: Manifest, now: datetime) -> str:
    status = {"True": "yes", "False": "no"}.get(str(condition.get("status")), "unknown")
    since = _age_in(condition.get("lastTransitionTime"), now, "for {}")
    return (
        f"  {condition['type']:<16}  {status:<7}  {since:<8}  {condition.get('reason', '')}: "
        f"{condition.get('message', '')}"
    )


def _last_decision(scaling: Manifest, now: datetime) -> str:
    for change in scaling.get("changes") or ():
        age = _age_in(change.get("time"), now, ", {} ago")
        return f"{change['from']} → {change['to']} {change['rule']}{age}"
    return str(scaling.get("rule") or UNKNOWN)


def _status(manifest: Manifest) -> Manifest:
    found: Manifest = manifest.get("status") or {}
    return found


def _conditions(status: Manifest) -> dict[str, Manifest]:
    return {found["type"]: found for found in status.get("conditions") or () if "type" in found}


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:g}"


def _age_in(time: str | None, now: datetime, text: str) -> str:
    """`text` with the age of an RFC 3339 time; empty where it has none."""
    try:
        return text.format(age(now - parse_time(time or "")))
    except ValueError:
        return ""


def age(span: timedelta) -> str:
    """A span of time in its largest unit, as kubectl has it."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length or (seconds >= length and unit != "m"):
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
