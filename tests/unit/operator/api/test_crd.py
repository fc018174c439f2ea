"""The CRD has the models' fields, in the form and within the limits of Kubernetes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

from dragoman_operator.api.crd import custom_resource_definition, main, render

ROOT = Path(__file__).parents[4]
FILE = ROOT / "charts/dragoman/files/translationdeployments.dragoman.io.yaml"
ETCD_LIMIT_BYTES = 262_144


def root_schema() -> dict[str, Any]:
    schema: dict[str, Any] = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword], f"{path}[]")


def ours() -> list[Any]:
    written = [
        node for node in nodes(root_schema()) if node[0] not in {"", ".apiVersion", ".kind", ".metadata"}
    ]
    return [pytest.param(path, schema, id=path) for path, schema in written]


def rules() -> list[Any]:
    return [
        pytest.param(rule, id=f"{path}: {rule['message'][:40]}")
        for path, schema in nodes(root_schema())
        for rule in schema.get("x-kubernetes-validations", ())
    ]


def test_the_file_has_the_models_schema() -> None:
    assert FILE.read_text() == render(), "run `make crd`"


def test_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == custom_resource_definition()


def test_fits_into_an_annotation() -> None:
    # Client-side `kubectl apply` keeps the whole object in an annotation (kserve#3487).
    assert len(render().encode()) < ETCD_LIMIT_BYTES / 4


def test_rendering_has_no_anchors() -> None:
    assert not any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(render()))


@pytest.mark.parametrize(("path", "schema"), ours())
def test_every_field_is_described_and_bounded(path: str, schema: dict[str, Any]) -> None:
    untyped = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    assert schema.get("description") or path.endswith("[]") or path in {".spec", ".status"}
    assert untyped or schema["type"] in {"object", "array", "string", "integer", "number", "boolean"}
    if schema.get("type") == "string" and "enum" not in schema and schema.get("format") != "date-time":
        assert schema["maxLength"] <= 32_768
    if schema.get("type") in {"integer", "number"} and path.startswith(".spec"):
        assert {"minimum", "maximum"} <= schema.keys()
    if schema.get("type") == "array":
        assert schema["maxItems"] <= 200
        assert schema["x-kubernetes-list-type"] in {"atomic", "map"}
    if "additionalProperties" in schema:
        assert schema["maxProperties"] <= 64


@pytest.mark.parametrize(("path", "schema"), ours())
def test_schema_is_structural(path: str, schema: dict[str, Any]) -> None:
    # https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    forbidden = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "const", "title", "definitions"}
    assert not forbidden & schema.keys()
    assert schema.get("default", "") is not None
    assert not ("properties" in schema and "additionalProperties" in schema)
    assert isinstance(schema.get("exclusiveMinimum", False), bool)
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        assert key in schema["items"]["required"]


@pytest.mark.parametrize(("path", "schema"), ours())
def test_defaults_obey_the_rules_beside_them(path: str, schema: dict[str, Any]) -> None:
    # The API server judges a default as it is written, before it fills in the defaults inside.
    if "default" in schema:
        for rule in schema.get("x-kubernetes-validations", ()):
            assert cel.evaluate(rule["rule"], {"self": schema["default"]}) is True
        for name, child in schema.get("properties", {}).items():
            assert ("default" in child) == (name in schema["default"])


@pytest.mark.parametrize("rule", rules())
def test_rules_compile(rule: dict[str, str]) -> None:
    cel.compile(rule["rule"])
    assert len(rule["message"]) <= 200
    assert "\n" not in rule["message"]
    assert "quantity(" not in rule["rule"]


def test_subresources_columns_and_names() -> None:
    spec = custom_resource_definition()["spec"]
    version = spec["versions"][0]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["Ready", "Desired", "Model", "Languages", "Age", "Message"]
    known = {path for path, _ in nodes(root_schema())}
    for column in version["additionalPrinterColumns"]:
        assert column["jsonPath"] in known | {".metadata.creationTimestamp"}
    assert spec["names"]["shortNames"] == ["td", "translations"]
