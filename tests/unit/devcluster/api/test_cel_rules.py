"""CEL rules of custom resources, as Kubernetes reads them."""

from typing import Any

import pytest

from dragoman_devcluster.api.cel_rules import compile_causes, rule_causes

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
QUANTITIES = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}


def schema(rule: str | dict[str, Any], **properties: Any) -> dict[str, Any]:
    declared = rule if isinstance(rule, dict) else {"rule": rule}
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": [declared]}
    return {"type": "object", "properties": {"spec": spec}}


def causes(rule: str | dict[str, Any], value: Any, **properties: Any) -> list[str]:
    found = rule_causes(schema(rule, **properties), {"spec": value}, [])
    return [f"{cause.field}: {cause.message}" for cause in found]


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.a <= self.b", {"a": 1, "b": 2}),
        ("!has(self.a) || self.a > 1", {}),
        ("self.share > 0.0 && self.share <= 1.0", {"share": 1}),
        ("self.name.matches(r'^file:///.+$')", {"name": "file:///a"}),
        ("self.limits.all(key, !key.startsWith('nvidia.com/'))", {"limits": {"cpu": 1}}),
        ("'nvidia.com/gpu' in self.limits", {"limits": {"nvidia.com/gpu": 1}}),
        (
            "string(self.limits['nvidia.com/gpu']) == string(self.a)",
            {"limits": {"nvidia.com/gpu": "2"}, "a": 2},
        ),
        ("self.limits.exists(key, key.startsWith('nvidia.com/mig-'))", {"limits": {"nvidia.com/mig-1": 1}}),
        ("duration(self.name) >= duration('1s')", {"name": "1m30s"}),
        ("self.items.exists_one(item, item.name == 'a')", {"items": [{"name": "a"}]}),
        ("has(self.name) ? self.name == 'x' : true", {}),
        ("!has(self.name)", {"name": None}),
    ],
)
def test_rules_that_hold(rule: str, value: Any) -> None:
    fields = {"a": INTEGER, "b": INTEGER, "share": NUMBER, "name": STRING, "limits": QUANTITIES}
    items = {"type": "array", "items": {"type": "object", "properties": {"name": STRING}}}
    assert causes(rule, value, **fields, items=items) == []


def test_a_broken_rule_has_its_message() -> None:
    rule = {"rule": "self.a <= self.b", "message": "a must not be above b"}
    message = "spec: Invalid value: a must not be above b"
    assert causes(rule, {"a": 2, "b": 1}, a=INTEGER, b=INTEGER) == [message]


def test_without_a_message_the_rule_is_the_message() -> None:
    assert causes("self.a > 1", {"a": 1}, a=INTEGER) == ["spec: Invalid value: failed rule: self.a > 1"]


def test_a_rule_that_fails_to_evaluate_is_broken() -> None:
    (message,) = causes("self.a > 1", {}, a=INTEGER)
    assert message == 'spec: Invalid value: "object": no such key: a evaluating rule: self.a > 1'


def test_root_rules_see_the_name_and_nothing_else_of_metadata() -> None:
    rule = "self.metadata.name.size() <= 3 && !has(self.metadata.labels)"
    root = {
        "type": "object",
        "properties": {"metadata": {"type": "object"}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    assert rule_causes(root, {"metadata": {"name": "abc", "labels": {}}}, []) == []
    assert len(rule_causes(root, {"metadata": {"name": "abcd"}}, [])) == 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("self.a >", "compilation failed: "),
        ("self.a == oldSelf.a", "the embedded API does not support oldSelf"),
    ],
)
def test_rules_that_do_not_compile(rule: str, message: str) -> None:
    found = list(compile_causes(schema(rule, a=INTEGER, labels=MAP), "schema"))
    assert len(found) == 1
    assert found[0].field == "schema.properties[spec].x-kubernetes-validations[0].rule"
    assert message in found[0].message
