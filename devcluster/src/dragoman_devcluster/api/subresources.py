"""Subresources with bodies of their own: scale, binding, token; logs are in `pod_logs`."""

from __future__ import annotations

import copy
from dataclasses import replace

from dragoman_devcluster.api import patches
from dragoman_devcluster.api.errors import ApiError, Cause, invalid
from dragoman_devcluster.api.kinds import Kind, ScalePaths
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.request import Options, Target
from dragoman_devcluster.api.resources import Answer, Resources


def scale_of(kind: Kind, obj: Object) -> Object:
    """The `autoscaling/v1` Scale of an object."""
    paths = _paths(kind)
    spec = get(obj, *paths.replicas)
    if paths.selector is None:
        labels = get(obj, "spec", "selector", "matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
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


def scaled(kind: Kind, obj: Object, scale: Json) -> Object:
    """The object with the replicas of a Scale; ApiError (Invalid) if they are no number of at least 0."""
    replicas = get(scale, "spec", "replicas", default=0)
    name = obj["metadata"]["name"]
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise ApiError("BadRequest", "Scale.spec.replicas: json: cannot unmarshal into int32")
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [Cause("FieldValueInvalid", message, "spec.replicas")])
    result = copy.deepcopy(obj)
    *parents, last = _paths(kind).replicas
    at = result
    for step in parents:
        at = at.setdefault(step, {})
    at[last] = replicas
    version = get(scale, "metadata", "resourceVersion")
    if version:
        result["metadata"]["resourceVersion"] = version
    return result


def applied_scale(kind: Kind, obj: Object, scale: Json) -> Object:
    """The object's fields that a server-side apply of its Scale sets; ApiError (BadRequest) if it is no Scale."""
    found = (get(scale, "apiVersion"), get(scale, "kind"))
    if found != ("autoscaling/v1", "Scale"):
        raise ApiError("BadRequest", f"the object is a {found[0]} {found[1]}, not an autoscaling/v1 Scale")
    if get(scale, "metadata", "managedFields"):
        raise ApiError("BadRequest", "metadata.managedFields must be nil")
    meta = obj["metadata"]
    result: Object = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {name: meta[name] for name in ("name", "namespace") if name in meta},
    }
    if get(scale, "spec", "replicas") is None:
        return result
    return scaled(kind, result, scale)


class Subresources:
    """Serves subresources over the verbs on objects. `token` is the one that every client uses."""

    def __init__(self, resources: Resources, token: str) -> None:
        self._resources = resources
        self._token = token

    def read_scale(self, target: Target) -> Answer:
        """The Scale of an object."""
        scale = scale_of(target.kind, self._resources.read(target))
        if not scale["spec"]:
            path = "." + ".".join(_paths(target.kind).replicas)
            raise ApiError("InternalError", f'the spec replicas field "{path}" does not exist')
        return Answer(scale)

    def write_scale(
        self, target: Target, body: Json, media_type: str, options: Options, manager: str
    ) -> Answer:
        """Replace or patch (by the media type) the Scale of an object, which changes its replicas."""
        live = self._resources.read(target)
        if media_type == patches.APPLY_PATCH:
            answer = self._resources.apply(
                replace(target, subresource=""),
                applied_scale(target.kind, live, body),
                options,
                written_through="scale",
            )
            return Answer(scale_of(target.kind, answer.body), answer.code)
        current = scale_of(target.kind, live)
        if media_type == patches.JSON_PATCH:
            wanted = patches.json_patch(current, body)
        elif media_type in (patches.MERGE_PATCH, patches.STRATEGIC_PATCH):
            wanted = patches.merge_patch(current, body)
        elif media_type in ("application/json", ""):
            wanted = body
        else:
            raise ApiError(
                "UnsupportedMediaType", "a scale is patched with a JSON, merge or server-side apply patch"
            )
        obj = scaled(target.kind, live, wanted)
        # Written through the object itself, so that generation, validation and ownership are as ever.
        answer = self._resources.update(
            replace(target, subresource=""), obj, options, manager, written_through="scale"
        )
        return Answer(scale_of(target.kind, answer.body), answer.code)

    def bind(self, target: Target, body: Json, options: Options) -> Answer:
        """Assign a pod to the node that a Binding names; ApiError (Conflict) if it has one."""
        live = self._resources.read(target)
        node = get(body, "target", "name")
        if not node:
            raise ApiError("BadRequest", "Binding.target.name: Required value")
        if assigned := get(live, "spec", "nodeName"):
            raise ApiError(
                "Conflict",
                f'Operation cannot be fulfilled on pods/binding "{target.name}": pod {target.name} is already '
                f'assigned to node "{assigned}"',
            )
        obj = copy.deepcopy(live)
        obj["spec"]["nodeName"] = node
        conditions = obj.setdefault("status", {}).setdefault("conditions", [])
        if all(condition["type"] != "PodScheduled" for condition in conditions):
            now = obj["metadata"]["creationTimestamp"]
            conditions.append(
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            )
        self._resources.rewrite(target, obj, options)
        return _done()

    def issue_token(self, target: Target) -> Answer:
        """The token for a service account: the administrator's, because this API does not enforce RBAC."""
        self._resources.read(target)
        status = {"token": self._token, "expirationTimestamp": "9999-12-31T00:00:00Z"}
        api = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return Answer({**api, "metadata": {}, "spec": {}, "status": status}, 201)


def _done() -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Answer(status, 201)
