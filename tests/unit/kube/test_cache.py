"""What the cache keeps of events, lists and own writes, and what its listeners are notified of."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_kube.cache import Cache


def make(name: str = "a", version: int = 1, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata}


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def changes(cache: Cache) -> list[tuple[str | None, str | None]]:
    seen: list[tuple[str | None, str | None]] = []

    def version(manifest: dict[str, Any] | None) -> str | None:
        return manifest["metadata"]["resourceVersion"] if manifest else None

    cache.listeners.append(lambda before, after: seen.append((version(before), version(after))))
    return seen


def names(cache: Cache) -> set[str]:
    return {key.name for key in cache.items}


def test_a_version_older_than_the_known_one_is_ignored(cache: Cache, changes: Any) -> None:
    for version in (1, 3, 2, 3, 4):
        cache.put(make(version=version))
    assert changes == [(None, "1"), ("1", "3"), ("3", "4")]


def test_versions_are_compared_as_numbers(cache: Cache, changes: Any) -> None:
    cache.put(make(version=9))
    cache.put(make(version=10))
    assert changes == [(None, "9"), ("9", "10")]


def test_a_deleted_object_does_not_come_back(cache: Cache, changes: Any) -> None:
    cache.put(make(version=1))
    cache.remove(make(version=2))
    cache.put(make(version=1))
    assert changes == [(None, "1"), ("1", None)]
    cache.put(make(version=3, uid="another"))
    assert changes[-1] == (None, "3")


def test_an_object_that_a_selector_selects_again_comes_back(cache: Cache, changes: Any) -> None:
    cache.put(make(version=1))
    cache.remove(make(version=2))
    cache.put(make(version=3))
    assert changes == [(None, "1"), ("1", None), (None, "3")]


def test_an_object_that_a_list_misses_comes_back_with_a_newer_version_only(cache: Cache) -> None:
    cache.put(make(version=1))
    cache.replace([], "5")
    cache.put(make(version=4))
    assert names(cache) == set()
    cache.put(make(version=6))
    assert names(cache) == {"a"}


def test_the_deletion_of_a_predecessor_keeps_its_successor(cache: Cache) -> None:
    cache.put(make(version=5, uid="new"))
    cache.remove(make(version=4, uid="old"))
    assert names(cache) == {"a"}


def test_a_list_replaces_what_is_not_newer(cache: Cache, changes: Any) -> None:
    cache.put(make("gone", 1))
    cache.put(make("stays", 2))
    cache.put(make("just created", 8))
    cache.replace([make("stays", 2), make("fresh", 6)], "7")
    assert names(cache) == {"stays", "just created", "fresh"}
    assert changes[3:] == [("1", None), (None, "6")]


def test_a_list_replaces_a_predecessor_of_the_same_name(cache: Cache, changes: Any) -> None:
    cache.put(make("a", 3, "old"))
    cache.replace([make("a", 5, "new")], "6")
    assert changes == [(None, "3"), ("3", None), (None, "5")]


def test_a_server_that_was_restored_from_a_backup_replaces_everything(cache: Cache, changes: Any) -> None:
    cache.replace([make("a", 90), make("b", 95)], "100")
    cache.remove(make("c", 101))
    cache.replace([make("a", 40), make("c", 30)], "50")
    assert names(cache) == {"a", "c"}
    assert changes[2:] == [("95", None), ("90", "40"), (None, "30")]
    cache.put(make("a", 51))
    assert changes[-1] == ("40", "51")
