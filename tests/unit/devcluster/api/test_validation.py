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


def causes(**fields: Any) -> list[tuple[str, str]]:
    found = schema_causes(SCHEMA, {"spec": {"name": "abc", **fields}})
    return [(cause.field, cause.reason.removeprefix("FieldValue")) for cause in found]


def test_a_valid_object_has_no_causes() -> None:
    assert causes(count=1, share=0.5, kind="a", tags=["x"], either="5%", maybe=None, labels={"a": "b"}) == []


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"count": 0}, "spec.count", "Invalid"),
        ({"count": 10}, "spec.count", "Invalid"),
        ({"share": 0}, "spec.share", "Invalid"),
        ({"count": "1"}, "spec.count", "TypeInvalid"),
        ({"count": True}, "spec.count", "TypeInvalid"),
        ({"count": None}, "spec.count", "TypeInvalid"),
        ({"kind": "c"}, "spec.kind", "NotSupported"),
        ({"name": "abcde"}, "spec.name", "TooLong"),
        ({"name": "A1"}, "spec.name", "Invalid"),
        ({"name": "a"}, "spec.name", "Invalid"),
        ({"tags": ["a", "b", "c"]}, "spec.tags", "TooMany"),
        ({"tags": ["a", "a"]}, "spec.tags[1]", "Duplicate"),
        ({"ports": [{"port": 1}, {"port": 1}]}, "spec.ports[1]", "Duplicate"),
        ({"either": 1.5}, "spec.either", "TypeInvalid"),
        ({"labels": {"a.b/c": 1}}, "spec.labels.a.b/c", "TypeInvalid"),
    ],
)
def test_each_rule_names_the_field(fields: dict[str, Any], field: str, reason: str) -> None:
    assert causes(**fields) == [(field, reason)]


def test_a_missing_field_is_required() -> None:
    (cause,) = schema_causes(SCHEMA, {"spec": {}})
    assert (cause.reason, cause.field, cause.message) == ("FieldValueRequired", "spec.name", "Required value")
