"""CustomResourceDefinitions: whether they are legal, what the server adds, and the kinds that they define."""

from __future__ import annotations

import datetime
import re
from typing import Any

from jsonschema import Draft4Validator, SchemaError

from dragoman_devcluster.api.builtin_schema import model_schema
from dragoman_devcluster.api.cel_rules import compile_causes
from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.kinds import BUILT_IN, Column, Kind, ScalePaths
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.validation import field_path
from dragoman_kube.times import timestamp

CRDS = next(kind for kind in BUILT_IN if kind.plural == "customresourcedefinitions")
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition that is being deleted until its objects are gone."""

_PATH = re.compile(r"(?:\.[A-Za-z_][\w-]*)+")


def complete(crd: Object, now: datetime.datetime) -> None:
    """Fill in the names and conditions of a definition as a real server does, in place: accepted at once."""
    spec = crd["spec"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    status = crd.setdefault("status", {})
    status["acceptedNames"] = dict(names)
    status["storedVersions"] = [spec["versions"][0]["name"]]
    known = {condition["type"] for condition in status.setdefault("conditions", [])}
    for kind, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        if kind not in known:
            status["conditions"].append(
                {
                    "type": kind,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": timestamp(now),
                }
            )


def crd_causes(crd: Object) -> list[Cause]:
    """What is wrong with a definition, before anything is filled in."""
    spec: Object = crd.get("spec") or {}
    names: Object = spec.get("names") or {}
    found = []
    expected = f"{names.get('plural')}.{spec.get('group')}"
    if get(crd, "metadata", "name") != expected:
        message = f'Invalid value: "{get(crd, "metadata", "name")}": must be spec.names.plural+"."+spec.group'
        found.append(Cause("FieldValueInvalid", message, "metadata.name"))
    versions = spec.get("versions") or []
    if len(versions) != 1 or not (versions[0].get("served") and versions[0].get("storage")):
        message = "Invalid value: the embedded API supports one version, which is served and stored"
        return [*found, Cause("FieldValueInvalid", message, "spec.versions")]
    schema = get(versions[0], "schema", "openAPIV3Schema")
    return [*found, *_schema_causes(schema, "spec.versions[0].schema.openAPIV3Schema")]


def kind_of(crd: Object) -> Kind:
    """The kind that an accepted definition serves."""
    spec = crd["spec"]
    names, (version,) = spec["names"], spec["versions"]
    return Kind(
        group=spec["group"],
        version=version["name"],
        name=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        has_status=get(version, "subresources", "status") is not None,
        has_generation=True,
        scale=_scale(get(version, "subresources", "scale")),
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        schema=_root_schema(version["schema"]["openAPIV3Schema"]),
        custom=True,
    )


def _root_schema(schema: Object) -> Object:
    properties = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": model_schema("V1ObjectMeta"),
    }
    return {**schema, "properties": properties}


def _scale(declared: Any) -> ScalePaths | None:
    if declared is None:
        return None
    selector = declared.get("labelSelectorPath")
    return ScalePaths(
        _keys(declared["specReplicasPath"]),
        _keys(declared["statusReplicasPath"]),
        _keys(selector) if selector else (),
    )


def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.strip(".").split(".")) if _PATH.fullmatch(path) else ()


def _column(declared: Object) -> Column:
    return Column(
        name=declared["name"],
        type=declared["type"],
        path=declared["jsonPath"],
        format=declared.get("format", ""),
        description=declared.get("description")
        or f"Custom resource definition column (in JSONPath format): {declared['jsonPath']}",
        priority=int(declared.get("priority") or 0),
    )


def _schema_causes(schema: Json, path: str) -> list[Cause]:
    """What is wrong with the schema of a definition; `path` is where it is."""
    try:
        # OpenAPI v3.0 is close to JSON Schema's draft 4.
        Draft4Validator.check_schema(schema)
    except SchemaError as malformed:
        at = field_path([path, *malformed.absolute_path])
        return [Cause("FieldValueInvalid", f"Invalid value: {malformed.message}", at)]
    if schema.get("type") != "object":
        return [Cause("FieldValueInvalid", "Invalid value: must be object at the root", f"{path}.type")]
    return list(compile_causes(schema, path))
