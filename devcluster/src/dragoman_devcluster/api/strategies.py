"""What single built-in kinds do beyond their schema: defaults that depend on other fields, and checks.

Source: pkg/apis/*/v1/defaults.go and pkg/registry/*/strategy.go of Kubernetes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_kube.objects import selects


def default_object(resource: str, obj: Object) -> None:
    """Fill in what depends on other fields, in place, on every write. `resource` as the store names it."""
    if resource in _DEFAULTS:
        _DEFAULTS[resource](obj)


def complete_new(resource: str, obj: Object) -> None:
    """Add the fields and the first status that the server itself sets on a new object, in place."""
    if resource == "pods":
        obj.setdefault("spec", {})
        obj["status"] = {"phase": "Pending"}
        obj["spec"].setdefault("serviceAccountName", "default")
        obj["spec"].setdefault("serviceAccount", obj["spec"]["serviceAccountName"])
    elif resource == "namespaces":
        obj["status"] = {"phase": "Active"}
        obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    elif resource == "persistentvolumeclaims":
        obj["status"] = {"phase": "Pending"}
    elif resource == "services":
        obj["status"] = {"loadBalancer": {}}
    elif resource in ("deployments.apps", "replicasets.apps"):
        obj["status"] = {} if resource == "deployments.apps" else {"replicas": 0}


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def _secret(obj: Object) -> None:
    plain = obj.pop("stringData", None) or {}
    for key, text in plain.items():
        obj.setdefault("data", {})[key] = base64.b64encode(str(text).encode()).decode()


def _deployment(obj: Object) -> None:
    strategy = get(obj, "spec", "strategy")
    if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _template(obj)


def _template(obj: Object) -> None:
    _pod(get(obj, "spec", "template"))


def _pod(obj: Json) -> None:
    spec = get(obj, "spec")
    if not isinstance(spec, dict):
        return
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for volume in spec.get("volumes") or ():
        if isinstance(volume, dict) and set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _service(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    for port in spec.get("ports") or ():
        port.setdefault("targetPort", port.get("port"))
    if spec.get("type") != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "namespaces": _namespace,
    "secrets": _secret,
    "pods": _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _template,
    "services": _service,
}


def causes(resource: str, obj: Object, live: Object | None) -> list[Cause]:
    """What is wrong with an object of a built-in kind beyond its schema; `live` is what it replaces."""
    found: list[Cause] = []
    if resource in ("deployments.apps", "replicasets.apps"):
        found += _workload_causes(obj, live)
    elif resource == "services" and not get(obj, "spec", "ports") and get(obj, "spec", "clusterIP") != "None":
        found.append(Cause("FieldValueRequired", "Required value", "spec.ports"))
    elif resource == "pods":
        found += _container_causes(obj.get("spec") or {}, "spec")
    return found


def _workload_causes(obj: Object, live: Object | None) -> list[Cause]:
    found = []
    selector = get(obj, "spec", "selector")
    labels = get(obj, "spec", "template", "metadata", "labels")
    if selector == {}:
        message = "Invalid value: {}: empty selector is invalid for deployment"
        found.append(Cause("FieldValueInvalid", message, "spec.selector"))
    elif not selects(selector, labels or {}):
        message = f"Invalid value: {_shown(labels)}: `selector` does not match template `labels`"
        found.append(Cause("FieldValueInvalid", message, "spec.template.metadata.labels"))
    found += _container_causes(get(obj, "spec", "template", "spec") or {}, "spec.template.spec")
    if get(obj, "spec", "paused"):
        message = "Forbidden: the embedded API does not support paused Deployments"
        found.append(Cause("FieldValueForbidden", message, "spec.paused"))
    if live and get(live, "spec", "selector") != selector:
        message = f"Invalid value: {_shown(selector)}: field is immutable"
        found.append(Cause("FieldValueInvalid", message, "spec.selector"))
    return found


def _shown(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _container_causes(spec: Object, path: str) -> list[Cause]:
    found = []
    if not spec.get("containers"):
        found.append(Cause("FieldValueRequired", "Required value", f"{path}.containers"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for index, container in enumerate(spec.get("containers") or ()):
        at = f"{path}.containers[{index}]"
        found += [
            Cause("FieldValueRequired", "Required value", f"{at}.{field}")
            for field in ("name", "image")
            if not container.get(field)
        ]
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            if mount.get("name") not in volumes:
                message = f'Not found: "{mount.get("name")}"'
                found.append(Cause("FieldValueNotFound", message, f"{at}.volumeMounts[{number}].name"))
    return found
