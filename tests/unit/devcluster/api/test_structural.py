from dragoman_devcluster.api.structural import apply_defaults, prune

SCHEMA = {
    "type": "object",
    "properties": {
        "known": {"type": "string"},
        "nested": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 3}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}},
        },
        "nothing": {"type": "string", "nullable": True, "default": "y"},
    },
}


def test_unknown_fields_are_dropped_and_named() -> None:
    value = {
        "known": "a",
        "other": 1,
        "nested": {"m": 1},
        "free": {"x": {"y": 1}},
        "items": [{"a": "b", "c": 1}],
    }
    assert prune(SCHEMA, value) == ["other", "nested.m", "items[0].c"]
    assert value == {"known": "a", "nested": {}, "free": {"x": {"y": 1}}, "items": [{"a": "b"}]}


def test_map_entries_are_kept() -> None:
    value = {"labels": {"a/b": "c"}}
    assert prune(SCHEMA, value) == []


def test_defaults_reach_into_defaults_and_items() -> None:
    value = {"items": [{}, {"a": "z"}]}
    apply_defaults(SCHEMA, value)
    assert value == {"items": [{"a": "x"}, {"a": "z"}], "nested": {"n": 3}, "nothing": "y"}


def test_null_is_defaulted_only_where_it_may_not_be() -> None:
    value = {"nested": None, "nothing": None}
    apply_defaults(SCHEMA, value)
    assert value == {"nested": {"n": 3}, "nothing": None}


def test_a_default_is_never_shared() -> None:
    first: dict[str, dict[str, int]] = {}
    apply_defaults(SCHEMA, first)
    first["nested"]["n"] = 9
    second: dict[str, dict[str, int]] = {}
    apply_defaults(SCHEMA, second)
    assert second["nested"] == {"n": 3}
