"""The CustomResourceDefinition, generated from the models in `api`: `dragoman crd` prints it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from dragoman_contract.kubernetes import GROUP, KIND, PLURAL, VERSION
from dragoman_operator.api.fields import SpecModel, ValidationRule
from dragoman_operator.api.status import Status
from dragoman_operator.api.v1alpha1 import OBJECT_RULES, TranslationDeploymentSpec

Schema = dict[str, Any]

_KEPT = (
    *("description", "type", "format", "enum", "default", "pattern", "required"),
    *("minLength", "maxLength", "minimum", "maximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
)
"""Keywords that mean the same in JSON Schema and in a structural schema."""

COLUMNS = (
    ("Ready", "integer", ".status.readyReplicas", "Ready pods"),
    ("Desired", "integer", ".status.desiredReplicas", "Desired number of pods"),
    ("Model", "string", ".spec.model.uri", "Location of the model"),
    ("Languages", "string", ".status.languages", "Language pairs that are served"),
    ("Age", "date", ".metadata.creationTimestamp", ""),
    ("Message", "string", ".status.message", "The most important condition message"),
)


def custom_resource_definition() -> dict[str, Any]:
    """The CRD as a Kubernetes object.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["td", "translations"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _object_schema()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [_column(*column) for column in COLUMNS],
                }
            ],
        },
    }


def structural(model: type[BaseModel]) -> Schema:
    """A model's schema in the form that Kubernetes takes: no references, no unions, CEL rules in place.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
    """
    schema = model.model_json_schema(by_alias=True)
    return _convert(schema, schema.get("$defs", {}), _models_by_name(model))


def _object_schema() -> Schema:
    return {
        "type": "object",
        "description": "A translation model and the pods that serve it.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(TranslationDeploymentSpec),
            # A default within the status alone is set only where there is a status.
            "status": structural(Status)
            | {"default": Status().model_dump(mode="json", by_alias=True, exclude_none=True)},
        },
        "x-kubernetes-validations": _validations(OBJECT_RULES),
    }


def _convert(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], models: Mapping[str, type[BaseModel]]
) -> Schema:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        inlined = _convert(definitions[name], definitions, models) | {
            key: value for key in ("description", "default") if (value := schema.get(key)) is not None
        }
        if isinstance(inlined.get("default"), dict):
            # Including nested defaults: the API server validates a default before it sets it.
            inlined["default"] = _without_nulls(inlined["default"])
        if rules := getattr(models.get(name), "RULES", ()):
            inlined["x-kubernetes-validations"] = _validations(rules)
        return inlined
    if "anyOf" in schema:
        (chosen,) = (option for option in schema["anyOf"] if option.get("type") != "null")
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return _convert({**chosen, **rest}, definitions, models)
    converted: Schema = {key: schema[key] for key in _KEPT if key in schema and schema[key] is not None}
    converted |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if exclusive in schema:
            converted |= {bound: schema[exclusive], exclusive: True}
    if "const" in schema:
        converted["enum"] = [schema["const"]]
    if "items" in schema:
        converted["items"] = _convert(schema["items"], definitions, models)
        converted.setdefault("x-kubernetes-list-type", "atomic")
    if "properties" in schema:
        converted["properties"] = {
            name: _convert(field, definitions, models) for name, field in schema["properties"].items()
        }
    if isinstance(schema.get("additionalProperties"), Mapping):
        converted["additionalProperties"] = _convert(schema["additionalProperties"], definitions, models)
    if model := models.get(schema.get("title", "")):
        if model.__doc__ and "description" not in converted:
            converted["description"] = model.__doc__.strip()
        if rules := getattr(model, "RULES", ()):
            converted["x-kubernetes-validations"] = _validations(rules)
    return converted


def _without_nulls(value: Mapping[str, Any]) -> Schema:
    """A default without unset fields."""
    return {
        key: _without_nulls(inner) if isinstance(inner, Mapping) else inner
        for key, inner in value.items()
        if inner is not None
    }


def _validations(rules: Iterable[ValidationRule]) -> list[dict[str, str]]:
    return [{"rule": rule.cel, "message": rule.message} for rule in rules]


def _models_by_name(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Every spec model by the name that its definition has in the schema."""
    found: dict[str, type[BaseModel]] = {model.__name__: model}
    waiting: list[type[SpecModel]] = [SpecModel]
    while waiting:
        for child in waiting.pop().__subclasses__():
            found.setdefault(child.__name__, child)
            waiting.append(child)
    return found


def _column(name: str, kind: str, path: str, description: str) -> dict[str, str]:
    column = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "description": description} if description else column


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which some readers of CRDs do not support."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def render() -> str:
    """The CRD as YAML, the bytes of the file in crds/."""
    return yaml.dump(
        custom_resource_definition(), Dumper=_Plain, sort_keys=False, width=110, allow_unicode=True
    )


def main(argv: list[str]) -> int:
    """Print the CRD; 0."""
    parser = argparse.ArgumentParser(prog="dragoman crd", description=__doc__)
    parser.parse_args(argv)
    sys.stdout.write(render())
    return 0
