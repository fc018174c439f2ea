"""What a collection keeps of events, lists and own writes, and what its listeners are notified of."""

from typing import Any

import pytest

from dragoman_kube.collection import Collection


def make(name: str = "a", version: int = 1, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata}


@pytest.fixture
def collection() -> Collection:
    return Collection()


@pytest.fixture
def changes(collection: Collection) -> list[tuple[str | None, str | None]]:
    seen: list[tuple[str | None, str | None]] = []

    def version(manifest: dict[str, Any] | None) -> str | None:
        return manifest["metadata"]["resourceVersion"] if manifest else None

    collection.listeners.append(lambda before, after: seen.append((version(before), version(after))))
    return seen


def names(collection: Collection) -> set[str]:
    return {key.name for key in collection.items}


def test_a_version_older_than_the_known_one_is_ignored(collection: Collection, changes: Any) -> None:
    for version in (1, 3, 2, 3, 4):
        collection.put(make(version=version))
    assert changes == [(None, "1"), ("1", "3"), ("3", "4")]


def test_versions_are_compared_as_numbers(collection: Collection, changes: Any) -> None:
    collection.put(make(version=9))
    collection.put(make(version=10))
    assert changes == [(None, "9"), ("9", "10")]


def test_a_deleted_object_does_not_come_back(collection: Collection, changes: Any) -> None:
    collection.put(make(version=1))
    collection.remove(make(version=2))
    collection.put(make(version=1))
    assert changes == [(None, "1"), ("1", None)]
    collection.put(make(version=3, uid="another"))
    assert changes[-1] == (None, "3")


def test_an_object_that_a_selector_selects_again_comes_back(collection: Collection, changes: Any) -> None:
    collection.put(make(version=1))
    collection.remove(make(version=2))
    collection.put(make(version=3))
    assert changes == [(None, "1"), ("1", None), (None, "3")]


def test_an_object_that_a_list_misses_comes_back_with_a_newer_version_only(collection: Collection) -> None:
    collection.put(make(version=1))
    collection.replace([], "5")
    collection.put(make(version=4))
    assert names(collection) == set()
    collection.put(make(version=6))
    assert names(collection) == {"a"}


def test_the_deletion_of_a_predecessor_keeps_its_successor(collection: Collection) -> None:
    collection.put(make(version=5, uid="new"))
    collection.remove(make(version=4, uid="old"))
    assert names(collection) == {"a"}


def test_a_list_replaces_what_is_not_newer(collection: Collection, changes: Any) -> None:
    collection.put(make("gone", 1))
    collection.put(make("stays", 2))
    collection.put(make("just created", 8))
    collection.replace([make("stays", 2), make("fresh", 6)], "7")
    assert names(collection) == {"stays", "just created", "fresh"}
    assert changes[3:] == [(None, "6"), ("1", None)], "additions come first"


def test_a_list_replaces_a_predecessor_of_the_same_name(collection: Collection, changes: Any) -> None:
    collection.put(make("a", 3, "old"))
    collection.replace([make("a", 5, "new")], "6")
    assert changes == [(None, "3"), ("3", "5")]
    collection.put(make("a", 4, "old"))
    collection.remove(make("a", 7, "new"))
    collection.put(make("a", 3, "old"))
    assert names(collection) == set(), "a late response about the predecessor"


def test_a_server_that_was_restored_from_a_backup_replaces_everything(
    collection: Collection, changes: Any
) -> None:
    collection.replace([make("a", 90), make("b", 95)], "100")
    collection.remove(make("c", 101))
    collection.replace([make("a", 40), make("c", 30)], "50")
    assert names(collection) == {"a", "c"}
    assert changes[2:] == [("90", "40"), (None, "30"), ("95", None)]
    collection.put(make("a", 51))
    assert changes[-1] == ("40", "51")


def test_a_list_of_one_namespace_leaves_the_others(collection: Collection) -> None:
    elsewhere = make("elsewhere", 2)
    elsewhere["metadata"]["namespace"] = "m"
    collection.replace([make("a", 1), make("b", 1)], "5", "n")
    collection.replace([elsewhere], "3", "m")
    assert names(collection) == {"a", "b", "elsewhere"}, (
        "a lower version in another namespace is no restored server"
    )
    collection.replace([make("a", 1)], "6", "n")
    assert names(collection) == {"a", "elsewhere"}


def controlled(name: str, version: int, owner: str) -> dict[str, Any]:
    found = make(name, version)
    found["metadata"]["ownerReferences"] = [{"uid": "bystander"}, {"uid": owner, "controller": True}]
    return found


def test_objects_are_found_by_the_uid_of_their_controller(collection: Collection) -> None:
    collection.put(controlled("a", 1, "one"))
    collection.put(controlled("b", 2, "one"))
    collection.put(make("free", 3))

    def owned(uid: str) -> list[str]:
        return [found["metadata"]["name"] for found in collection.controlled(uid, "n")]

    assert (owned("one"), owned("bystander")) == (["a", "b"], [])
    assert collection.controlled("one", "other namespace") == [], (
        "owners are in the namespace of what they own"
    )
    collection.put(controlled("a", 4, "two"))
    assert (owned("one"), owned("two")) == (["b"], ["a"])
    collection.remove(make("b", 5))
    collection.put(make("a", 6))
    assert (owned("one"), owned("two"), collection._controlled) == ([], [], {})


def test_fields_of_managers_are_not_kept(collection: Collection) -> None:
    manifest = make()
    manifest["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
    collection.put(manifest)
    assert next(iter(collection.items.values()))["metadata"]["managedFields"] == [{"manager": "kubectl"}]
