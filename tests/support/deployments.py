"""Builders for the operator's tests: an object as a user writes it, and what the cluster stores for it."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.kinds import SECRET, SERVICE
from dragoman_kube.objects import Key, owner_reference
from dragoman_kube.times import timestamp
from dragoman_operator.api.v1alpha1 import TranslationDeployment, parse
from dragoman_operator.observed.drift import signed
from dragoman_operator.observed.snapshot import CHILD_KINDS, Observed
from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.plan import (
    Plan,
    ReconcileInput,
    desired_children,
    plan,
    target_of,
)
from dragoman_operator.rollout import Version
from dragoman_operator.status.render import status_of, status_of_bad_spec

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
KEY = Key("default", "demo")
DEFAULTS = Defaults(cuda="engine:cuda", cpu="engine:cpu")


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with `change` merged into it; None takes a field away."""
    result = copy.deepcopy(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def make_spec(**groups: Any) -> dict[str, Any]:
    """A small valid spec on the CPU; `engine=…` and its like are merged into it."""
    spec: dict[str, Any] = {
        "model": {"uri": "hf://org/model", "promptFamily": "chatml-generic"},
        "languages": [{"source": "en", "targets": ["de", "fr"]}],
        "engine": {"device": "cpu", "maxNumSeqs": 8},
        "replicas": 2,
    }
    return merged(spec, groups)


def make_body(name: str = "demo", /, status: dict[str, Any] | None = None, **groups: Any) -> dict[str, Any]:
    """A stored object."""
    body: dict[str, Any] = {
        "apiVersion": "dragoman.io/v1alpha1",
        "kind": "TranslationDeployment",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": UID,
            "generation": 3,
            "resourceVersion": "7",
        },
        "spec": make_spec(**groups),
    }
    return body | ({"status": status} if status is not None else {})


def make_td(name: str = "demo", /, **groups: Any) -> TranslationDeployment:
    """A parsed object."""
    return parse(make_body(name, **groups))


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as the API server returns it: numbered, with defaults and fields of other clients."""
    result = copy.deepcopy(manifest)
    result["metadata"] |= {"uid": f"uid-of-{manifest['kind']}", "resourceVersion": "1", "generation": 1}
    result["metadata"]["creationTimestamp"] = timestamp(NOW)
    result["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
    return result


def make_observed(
    td: TranslationDeployment | None = None, pods: Iterable[dict[str, Any]] = (), **status: Any
) -> Observed:
    """What is found once the operator has written everything for `td`; `status` is that of the Deployment."""
    children = {}
    for kind, manifest in (children_of(td) if td else {}).items():
        if manifest is not None:
            children[kind] = stored(signed(manifest))
            if kind.name == "Deployment":
                children[kind]["status"] = {"observedGeneration": 1} | status
    if SERVICE in children:
        children[SECRET] = {"metadata": {"ownerReferences": [owner_reference(children[SERVICE])]}}
    assert [kind for kind in children if kind in CHILD_KINDS] == [k for k in CHILD_KINDS if k in children]
    return Observed(NOW, children, tuple(pods))


def make_pod(
    name: str = "demo-1",
    ready: bool = False,
    container: dict[str, Any] | None = None,
    deleted: bool = False,
    **status: Any,
) -> dict[str, Any]:
    """One engine pod; `container` is the state of its only container."""
    metadata = {"name": name} | ({"deletionTimestamp": "2026-01-02T03:04:05Z"} if deleted else {})
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    containers = [{"name": "engine", "image": "engine:cpu", "ready": ready, **(container or {})}]
    return {
        "metadata": metadata,
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": containers} | status,
    }


def running_pod(
    name: str, ready: bool = True, /, metadata: dict[str, Any] | None = None, **status: Any
) -> dict[str, Any]:
    """An engine pod of `demo` with an address and times, ready after 30 s."""
    known: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    known |= {"labels": {LABEL_DEPLOYMENT: "demo"}, "creationTimestamp": "2026-01-02T03:04:05Z"}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-02T03:04:35Z"}
    found = {"phase": "Running", "podIP": "127.0.0.9", "conditions": [condition]}
    return {"metadata": known | (metadata or {}), "status": found | status}


def children_of(
    td: TranslationDeployment, defaults: Defaults = DEFAULTS, **decisions: Any
) -> dict[Any, dict[str, Any] | None]:
    """Every desired child by kind, before anything is observed."""
    given = ReconcileInput(td, Observed(NOW), **decisions)
    return desired_children(td, defaults, target_of(given, defaults))


def version_of(td: TranslationDeployment, defaults: Defaults = DEFAULTS) -> Version:
    """The version of a spec."""
    return target_of(ReconcileInput(td, Observed(NOW)), defaults).version


def planned(
    td: TranslationDeployment, observed: Observed, defaults: Defaults = DEFAULTS, **decisions: Any
) -> Plan:
    """The plan of one reconciliation."""
    return plan(ReconcileInput(td, observed, **decisions), defaults)


def shown(
    td: TranslationDeployment,
    observed: Observed,
    old: Mapping[str, Any] | None = None,
    refusals: Sequence[str] = (),
    plan: Plan | None = None,
    **given: Any,
) -> dict[str, Any]:
    """The status after a reconciliation that has nothing to change, or after `plan`.

    Args:
        td: The object.
        observed: Its children and pods.
        old: The stored status; None: that of `observed`.
        refusals: Errors of the API server.
        plan: What was carried out.
        given: Decisions, and fields of the plan: kept, obstacles, waiting.
    """
    fields = {name: given.pop(name) for name in ("obstacles", "waiting") if name in given}
    kept = {name: given.pop(name) for name in ("kept",) if name in given}
    inputs = ReconcileInput(td, observed if old is None else replace(observed, status=old), **given)
    target = replace(target_of(inputs, DEFAULTS), **{"kept": None, **kept})
    return status_of(inputs, plan or Plan(target, **fields), refusals)


def shown_bad(
    observed: Observed, old: Mapping[str, Any], problem: str, generation: int = 4
) -> dict[str, Any]:
    """The status of an object whose spec is invalid."""
    return status_of_bad_spec(KEY, generation, problem, replace(observed, status=old))


def condition(status: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """Status and reason of a condition; empty if it is not there."""
    found = _condition(status, kind)
    return found.get("status", ""), found.get("reason", "")


def message(status: Mapping[str, Any], kind: str) -> str:
    """The message of a condition."""
    return str(_condition(status, kind)["message"])


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = [each for each in status["conditions"] if each["type"] == kind]
    assert len(found) <= 1, "a type of condition is there once"
    return found[0] if found else {}
