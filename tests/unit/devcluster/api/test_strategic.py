from typing import Any

import pytest

from dragoman_devcluster.api.builtin_schema import model_schema
from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.patches import strategic_patch

POD = {
    "metadata": {"finalizers": ["a"], "labels": {"x": "1", "y": "2"}},
    "spec": {
        "containers": [
            {"name": "a", "image": "1", "env": [{"name": "E", "value": "1"}]},
            {"name": "b", "image": "2"},
        ],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def patched(patch: Any) -> Any:
    return strategic_patch(model_schema("V1Pod"), POD, patch)


def containers(patch: list[Any], **beside: Any) -> Any:
    return patched({"spec": {"containers": patch, **beside}})["spec"]["containers"]


def test_containers_merge_by_name() -> None:
    assert containers([{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]) == [
        POD["spec"]["containers"][0],  # type: ignore[index]
        {"name": "b", "image": "3"},
        {"name": "c", "image": "4"},
    ]


def test_an_item_is_deleted_by_its_directive() -> None:
    assert containers([{"name": "a", "$patch": "delete"}]) == [{"name": "b", "image": "2"}]


def test_nested_lists_merge_too_and_null_removes() -> None:
    first = containers([{"name": "a", "image": None, "env": [{"name": "F", "value": "2"}]}])[0]
    assert first == {"name": "a", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]}


def test_the_order_can_be_set() -> None:
    order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert [container["name"] for container in containers([], **order)] == ["b", "a"]


def test_atomic_lists_are_replaced() -> None:
    assert patched({"spec": {"tolerations": [{"key": "q"}]}})["spec"]["tolerations"] == [{"key": "q"}]


def test_retained_keys_push_out_the_rest() -> None:
    volume = {"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}
    assert patched({"spec": {"volumes": [volume]}})["spec"]["volumes"] == [
        {"name": "v", "hostPath": {"path": "/"}}
    ]


def test_scalars_are_added_to_and_deleted_from_lists() -> None:
    assert patched({"metadata": {"finalizers": ["b"]}})["metadata"]["finalizers"] == ["a", "b"]
    assert (
        patched({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}})["metadata"]["finalizers"] == []
    )


def test_other_directives_are_refused() -> None:
    for patch in ([{"name": "z"}, {"$patch": "replace"}], [{"name": "a", "env": [{"$patch": "replace"}]}]):
        with pytest.raises(ApiError):
            containers(patch)
