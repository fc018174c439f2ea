from typing import Any

import pytest

from dragoman_devcluster.api.validation import schema_causes

ENGINE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 2,
            "x-kubernetes-list-type": "set",
        },
        "either": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
SCHEMA = {"type": "object", "properties": {"spec": ENGINE}}


def messages(**fields: Any) -> list[str]:
    found = schema_causes(SCHEMA, {"spec": {"name": "abc", **fields}})
    return [f"{cause.field}: {cause.message}" for cause in found]


def test_a_valid_object_has_no_causes() -> None:
    assert (
        messages(count=1, share=0.5, kind="a", tags=["x"], either="5%", maybe=None, labels={"a": "b"}) == []
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"count": 0},
            "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1",
        ),
        (
            {"count": 10},
            "spec.count: Invalid value: 10: spec.count in body should be less than or equal to 9",
        ),
        ({"share": 0}, "spec.share: Invalid value: 0: spec.share in body should be greater than 0"),
        (
            {"count": "1"},
            'spec.count: Invalid value: "string": spec.count in body must be of type integer: "string"',
        ),
        (
            {"count": True},
            'spec.count: Invalid value: "boolean": spec.count in body must be of type integer: "boolean"',
        ),
        (
            {"count": None},
            'spec.count: Invalid value: "null": spec.count in body must be of type integer: "null"',
        ),
        ({"kind": "c"}, 'spec.kind: Unsupported value: "c": supported values: "a", "b"'),
        ({"name": "abcde"}, "spec.name: Too long: may not be more than 4 bytes"),
        ({"name": "A1"}, "spec.name: Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'"),
        ({"name": "a"}, 'spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'),
        ({"tags": ["a", "b", "c"]}, "spec.tags: Too many: 3: must have at most 2 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"ports": [{"port": 1}, {"port": 1}]}, 'spec.ports[1]: Duplicate value: {"port":1}'),
        (
            {"either": 1.5},
            'spec.either: Invalid value: "number": spec.either in body must be of type integer,string: "number"',
        ),
        (
            {"labels": {"a.b/c": 1}},
            'spec.labels.a.b/c: Invalid value: "integer": spec.labels.a.b/c in body must be of type string: "integer"',
        ),
    ],
)
def test_each_rule_has_the_sentence_of_a_real_server(fields: dict[str, Any], message: str) -> None:
    assert messages(**fields) == [message]


def test_a_missing_field_is_required() -> None:
    (cause,) = schema_causes(SCHEMA, {"spec": {}})
    assert (cause.reason, cause.field, cause.message) == ("FieldValueRequired", "spec.name", "Required value")
