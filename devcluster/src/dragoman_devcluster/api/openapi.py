"""OpenAPI v3 documents, made from the schemas: enough for `kubectl explain` and for clients' validation.

Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
"""

from __future__ import annotations

import hashlib

from dragoman_devcluster.api.builtin_schema import MODEL, model_schema
from dragoman_devcluster.api.discovery import SERVER_VERSION
from dragoman_devcluster.api.kinds import Kind, Registry
from dragoman_devcluster.api.objects import Json, Object

_GVK = "x-kubernetes-group-version-kind"


def index(registry: Registry) -> Object:
    """`/openapi/v3`: where the document of each group and version is. The hash changes with the registry."""
    paths = sorted({_base(kind) for kind in registry})
    digest = hashlib.sha256(f"{SERVER_VERSION}:{registry.revision}:{id(registry)}".encode()).hexdigest()[:32]
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path in paths}}


def _base(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(registry: Registry, path: str) -> Object | None:
    """The document of a path such as `apis/apps/v1`, or None if nothing is served there."""
    kinds = [kind for kind in registry if _base(kind) == path]
    if not kinds:
        return None
    components: Object = {}
    paths: Object = {}
    for kind in kinds:
        name = component_name(kind)
        components[name] = {**_referring(kind.schema, components, root=True), _GVK: [_gvk(kind)]}
        paths.update(_paths(kind, name))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": SERVER_VERSION},
        "paths": paths,
        "components": {"schemas": components},
    }


def component_name(kind: Kind) -> str:
    """The schema's name: `io.k8s.api.apps.v1.Deployment`, `io.dragoman.v1alpha1.TranslationDeployment`."""
    if kind.custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.name])
    group = kind.group.removesuffix(".k8s.io").rpartition(".")[2] or "core"
    return f"io.k8s.api.{group}.{kind.version}.{kind.name}"


def _gvk(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _referring(schema: Json, components: Object, *, root: bool = False) -> Json:
    """The schema with every model in it moved to `components` and referred to."""
    if isinstance(schema, list):
        return [_referring(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    model = schema.get(MODEL)
    if model and not root:
        name = f"io.k8s.{model.removeprefix('V1')}"
        own = model_schema(model)
        if name not in components:
            components[name] = {}
            components[name] = _referring(own, components, root=True)
        beside = {
            key: schema[key]
            for key in ("description", "default")
            if key in schema and schema[key] != own.get(key)
        }
        return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], **beside}
    return {key: _referring_field(key, value, components) for key, value in schema.items() if key != MODEL}


def _referring_field(key: str, value: Json, components: Object) -> Json:
    if key == "properties":
        return {name: _referring(child, components) for name, child in value.items()}
    if key in ("items", "additionalProperties"):
        return _referring(value, components)
    return value


def _paths(kind: Kind, component: str) -> Object:
    base = f"/{_base(kind)}"
    every = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{component}"}}}}
    answers = {"responses": {"200": {"description": "OK", **body}}}

    def operation(action: str, *parameters: str, sends: bool = False) -> Object:
        listed = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters]
        sent = {"requestBody": body} if sends else {}
        return {
            **answers,
            **sent,
            "parameters": listed,
            "x-kubernetes-action": action,
            _GVK: _gvk(kind),
        }

    writing = ("dryRun", "fieldManager", "fieldValidation")
    return {
        every: {
            "get": operation("list", "labelSelector", "fieldSelector", "watch", "resourceVersion"),
            "post": operation("post", *writing, sends=True),
        },
        f"{every}/{{name}}": {
            "get": operation("get"),
            "put": operation("put", *writing, sends=True),
            "patch": operation("patch", *writing, "force", sends=True),
            "delete": operation("delete", "dryRun", "gracePeriodSeconds", "propagationPolicy"),
        },
    }
