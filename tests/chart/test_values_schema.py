import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def schema(chart: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((chart / "values.schema.json").read_text())
    return loaded


@pytest.fixture
def defaults(chart: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((chart / "values.yaml").read_text())
    return loaded


def leaves(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of everything that a user can set by itself."""
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in {"requests", "limits"}:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Dotted name and schema of every value that is named by the schema."""
    for key, inner in schema["properties"].items():
        if "properties" in inner:
            yield from fields(inner, f"{path}{key}.")
        else:
            yield f"{path}{key}", inner


def test_schema_and_defaults_name_the_same_values(schema, defaults):
    named = {name for name, _ in fields(schema)}
    assert named == {name for name, _ in leaves(defaults)}


def test_objects_of_the_schema_are_closed(schema):
    def open_objects(inner: Any, path: str) -> Iterator[str]:
        if isinstance(inner, dict):
            if "properties" in inner and inner.get("additionalProperties") is not False:
                yield path
            for key, value in inner.items():
                yield from open_objects(value, f"{path}.{key}")

    # Helm hands all charts of a release the same `global`.
    found = {path for path in open_objects(schema, "") if "metricsFrom" not in path}
    assert found == {".properties.global"}


def test_groups_and_values_that_have_to_be_set_cannot_be_null(schema, defaults):
    # Helm removes what is null, and templates would fail with a nil pointer, or render an empty field.
    def optional(inner: dict[str, Any], values: dict[str, Any], path: str = "") -> Iterator[str]:
        for key, child in inner["properties"].items():
            is_group = "properties" in child
            if (
                (is_group or isinstance(values[key], str | int))
                and values[key]
                and key not in inner.get("required", ())
            ):
                yield path + key
            elif is_group:
                yield from optional(child, values[key], f"{path}{key}.")

    assert set(optional(schema, defaults)) == {"podSecurityContext", "resources", "router.resources"}


def test_readme_lists_every_value_with_its_default(chart, defaults):
    rows = [line.split("|")[1:4] for line in (chart / "README.md").read_text().splitlines() if "|" in line]
    documented = {name.strip().strip("`"): default.strip().strip("`") for name, default, _ in rows[2:]}
    assert {name: yaml.safe_load(text) for name, text in documented.items()} == dict(leaves(defaults))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"watchNamespace": ["a"]}, "watchNamespace"),
        ({"image": {"repo": "x"}}, "repo"),
        ({"crds": {"instal": True}}, "instal"),
        ({"engineImages": {"gpu": {}}}, "gpu"),
        ({"networkPolicy": {"metricsFrom": [{"pods": {}}]}}, "pods"),
        ({"watchNamespaces": "team-a"}, "watchNamespaces"),
        ({"watchNamespaces": ["Team A"]}, "watchNamespaces"),
        ({"watchNamespaces": ["a", "a"]}, "watchNamespaces"),
        ({"replicas": "2"}, "replicas"),
        ({"replicas": -1}, "replicas"),
        ({"image": {"tag": 1.0}}, "tag"),
        ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"logLevel": "loud"}, "logLevel"),
        ({"resources": {"limits": {"memory": "much"}}}, "memory"),
        ({"monitoring": {"interval": "often"}}, "interval"),
        ({"podLabels": {"a": 1}}, "podLabels"),
        ({"extraArgs": ["workers=16"]}, "extraArgs"),
        ({"router": {"extraArgs": ["--no-page --audit-log"]}}, "extraArgs"),
        ({"podSecurityContext": {"runAsUser": "root"}}, "runAsUser"),
        ({"router": {"service": {"ipFamilies": ["IPv5"]}}}, "ipFamilies"),
        ({"prometheus": {"headers": {"a b": "c"}}}, "headers"),
        ({"fullnameOverride": "A"}, "fullnameOverride"),
        ({"router": None}, "router is required"),
        ({"router": {"oidc": None}}, "oidc is required"),
        ({"image": {"repository": "a: b"}}, "repository"),
        ({"monitoring": {"runbooks": "a #b"}}, "runbooks"),
        ({"commonLabels": {"team": "a b"}}, "commonLabels"),
        ({"podLabels": {"a b": ""}}, "podLabels"),
        ({"podAnnotations": {"a/b/c": ""}}, "podAnnotations"),
        ({"priorityClassName": "A"}, "priorityClassName"),
        ({"router": {"tlsSecret": "a..b"}}, "tlsSecret"),
        ({"global": {"imagePullSecrets": [{"name": "A"}]}}, "imagePullSecrets"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_by_name(refusal, values, named):
    assert named in refusal(**values)


def test_a_missing_service_account_is_refused_with_the_way_out(refusal):
    assert "serviceAccount.name is needed" in refusal(serviceAccount={"create": False})
