"""Subresources with bodies of their own: scale, binding, eviction, token; logs are in `pod_logs`."""

from __future__ import annotations

import datetime
from dataclasses import replace

from dragoman_devcluster.api import patches
from dragoman_devcluster.api.admission import Admission
from dragoman_devcluster.api.errors import (
    ApiError,
    BadRequestError,
    Cause,
    ConflictError,
    TooManyRequestsError,
    UnsupportedMediaTypeError,
    invalid,
)
from dragoman_devcluster.api.kinds import BUILT_IN, Kind, ScalePaths
from dragoman_devcluster.api.objects import Json, Object, copied, get
from dragoman_devcluster.api.request import Options, Target
from dragoman_devcluster.api.resources import Answer, Resources
from dragoman_devcluster.api.selectors import object_selector
from dragoman_devcluster.api.tokens import TokenIssuer

_PDB = next(kind for kind in BUILT_IN if kind.plural == "poddisruptionbudgets")
_TOKEN_LIFETIME_S = 3600


def scale_of(kind: Kind, obj: Object) -> Object:
    """The `autoscaling/v1` Scale of an object."""
    paths = _paths(kind)
    spec = get(obj, *paths.replicas)
    if paths.selector is None:
        selector = _serialised(get(obj, "spec", "selector") or {})
    else:
        selector = get(obj, *paths.selector) or "" if paths.selector else ""
    meta = obj["metadata"]
    status: Object = {"replicas": get(obj, *paths.ready) or 0}
    if selector:
        status["selector"] = selector
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {} if spec is None else {"replicas": spec},
        "status": status,
    }


def _paths(kind: Kind) -> ScalePaths:
    assert kind.scale is not None
    return kind.scale


def _serialised(selector: Object) -> str:
    """A LabelSelector object as text."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for wanted in selector.get("matchExpressions") or []:
        operator, values = wanted["operator"], ",".join(sorted(wanted.get("values") or []))
        listed = {"In": f"{wanted['key']} in ({values})", "NotIn": f"{wanted['key']} notin ({values})"}
        parts.append(listed.get(operator, wanted["key"] if operator == "Exists" else f"!{wanted['key']}"))
    return ",".join(parts)


def scaled(kind: Kind, obj: Object, scale: Json) -> Object:
    """The object with the replicas of a Scale; InvalidError if they are no number of at least 0."""
    replicas = get(scale, "spec", "replicas", default=0)
    name = obj["metadata"]["name"]
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise BadRequestError("Scale.spec.replicas: json: cannot unmarshal into int32")
    if replicas < 0:
        told = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [Cause("FieldValueInvalid", told, "spec.replicas")])
    result = copied(obj)
    *parents, last = _paths(kind).replicas
    at = result
    for step in parents:
        at = at.setdefault(step, {})
    at[last] = replicas
    version = get(scale, "metadata", "resourceVersion")
    if version:
        result["metadata"]["resourceVersion"] = version
    return result


class Subresources:
    """Serves subresources over the verbs on objects."""

    def __init__(self, resources: Resources, admission: Admission, tokens: TokenIssuer) -> None:
        self._resources = resources
        self._admission = admission
        self._tokens = tokens

    def read_scale(self, target: Target) -> Answer:
        """The Scale of an object."""
        scale = scale_of(target.kind, self._resources.read(target))
        if not scale["spec"]:
            path = "." + ".".join(_paths(target.kind).replicas)
            raise ApiError(f'Internal error occurred: the spec replicas field "{path}" does not exist')
        return Answer(scale)

    def write_scale(
        self, target: Target, body: Json, media_type: str, options: Options, manager: str
    ) -> Answer:
        """Replace or patch (by the media type) the Scale of an object, which changes its replicas."""
        live = self._resources.read(target)
        current = scale_of(target.kind, live)
        if media_type == patches.JSON_PATCH:
            wanted = patches.json_patch(current, body)
        elif media_type in (patches.MERGE_PATCH, patches.STRATEGIC_PATCH):
            wanted = patches.merge_patch(current, body)
        elif media_type in ("application/json", ""):
            wanted = body
        else:
            raise UnsupportedMediaTypeError("a scale is patched with a JSON patch or a merge patch")
        obj = scaled(target.kind, live, wanted)
        # Written through the object itself, so that generation, validation and ownership are as ever.
        answer = self._resources.update(
            replace(target, subresource=""), obj, options, manager, written_through="scale"
        )
        return Answer(scale_of(target.kind, answer.body), answer.code, answer.warnings)

    def bind(self, target: Target, body: Json, options: Options) -> Answer:
        """Assign a pod to the node that a Binding names; ConflictError if it has one."""
        live = self._resources.read(target)
        node = get(body, "target", "name")
        if not node:
            raise BadRequestError("Binding.target.name: Required value")
        if assigned := get(live, "spec", "nodeName"):
            raise ConflictError(
                f'Operation cannot be fulfilled on pods/binding "{target.name}": pod {target.name} is already '
                f'assigned to node "{assigned}"'
            )
        obj = copied(live)
        obj["spec"]["nodeName"] = node
        conditions = obj.setdefault("status", {}).setdefault("conditions", [])
        if all(condition["type"] != "PodScheduled" for condition in conditions):
            now = obj["metadata"]["creationTimestamp"]
            conditions.append(
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            )
        self._resources.rewrite(target, obj, options)
        return _done()

    def evict(self, target: Target, body: Json, options: Options) -> Answer:
        """Delete a pod if every disruption budget over it allows one more; TooManyRequestsError if not."""
        pod = self._resources.read(target)
        settled = get(pod, "status", "phase") in ("Pending", "Succeeded", "Failed")
        if not settled and not get(pod, "metadata", "deletionTimestamp"):
            for budget in self._resources.store.listed(_PDB.resource, target.namespace):
                if object_selector(get(budget, "spec", "selector"))(pod):
                    self._spend(budget, pod, options)
        asked = get(body, "deleteOptions") or {}
        grace_s = asked.get("gracePeriodSeconds", options.grace_period_s)
        self._resources.delete(
            replace(target, subresource=""),
            replace(options, grace_period_s=grace_s),
            asked.get("preconditions") or {},
        )
        return _done()

    def _spend(self, budget: Object, pod: Object, options: Options) -> None:
        name = budget["metadata"]["name"]
        allowed = get(budget, "status", "disruptionsAllowed") or 0
        observed = get(budget, "status", "observedGeneration") or 0
        if observed < budget["metadata"]["generation"]:
            told = f"The disruption budget {name} is still being processed by the server."
            raise TooManyRequestsError(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"retryAfterSeconds": 10},
                causes=[Cause("DisruptionBudget", told, "")],
            )
        if allowed < 1:
            current = get(budget, "status", "currentHealthy") or 0
            desired = get(budget, "status", "desiredHealthy") or 0
            told = f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
            raise TooManyRequestsError(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[Cause("DisruptionBudget", told, "")],
            )
        spent = copied(budget)
        spent["status"]["disruptionsAllowed"] = allowed - 1
        spent["status"].setdefault("disruptedPods", {})[pod["metadata"]["name"]] = self._resources.now()
        at = Target(_PDB, budget["metadata"]["namespace"], name)
        self._resources.rewrite(at, spent, options)

    def issue_token(self, target: Target, body: Json) -> Answer:
        """A token for a service account."""
        account = self._resources.read(target)
        lifetime_s = int(get(body, "spec", "expirationSeconds") or _TOKEN_LIFETIME_S)
        expires = self._resources.clock() + datetime.timedelta(seconds=lifetime_s)
        user = f"system:serviceaccount:{target.namespace}:{account['metadata']['name']}"
        token = self._tokens.issue(user, expires)
        status = {"token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
        api = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return Answer({**api, "metadata": {}, "spec": get(body, "spec") or {}, "status": status}, 201)


def _done() -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Answer(status, 201)
