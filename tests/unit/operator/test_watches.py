"""The index of children and pods by their TranslationDeployment."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.collection import Collection as ObjectCache
from dragoman_kube.kinds import POD, SERVICE, Kind
from dragoman_kube.objects import Key
from dragoman_operator.controller.watches import OwnedIndex

DEMO, OTHER = Key("ns", "demo"), Key("ns", "other")


def body(name: str, version: int, owner: str = "demo", uid: str = "") -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": uid or name,
            "resourceVersion": str(version),
            "labels": {LABEL_DEPLOYMENT: owner},
        }
    }


class World:
    def __init__(self, kind: Kind) -> None:
        self.enqueued: set[Key] = set()
        self.forgotten: list[str] = []
        self.index = OwnedIndex(kind, self.enqueued.add, lambda kind, key, uid: self.forgotten.append(uid))
        self.cache = ObjectCache()
        self.cache.listeners.append(self.index.note)

    def names(self, key: Key) -> list[str]:
        return [found["metadata"]["name"] for found in self.index.get(key, ())]


def test_list_and_events_fill_the_index_and_enqueue_the_owner() -> None:
    world = World(POD)
    world.cache.replace([body("a", 1), body("b", 2, "other")], "2")
    world.cache.put(body("c", 3))
    assert (world.names(DEMO), world.names(OTHER)) == (["a", "c"], ["b"])
    assert world.enqueued == {DEMO, OTHER}
    world.enqueued.clear()
    world.cache.remove(body("a", 4))
    assert world.names(DEMO) == ["c"]
    assert (world.enqueued, world.forgotten) == ({DEMO}, ["a"])


def test_object_that_was_deleted_between_two_lists_is_removed() -> None:
    world = World(POD)
    world.cache.replace([body("a", 1)], "1")
    world.cache.replace([], "2")
    assert len(world.index) == 0
    assert world.forgotten == ["a"]


def test_label_that_changes_moves_the_object_and_enqueues_both() -> None:
    world = World(POD)
    world.cache.put(body("a", 1))
    world.enqueued.clear()
    world.cache.put(body("a", 2, "other"))
    assert (world.names(DEMO), world.names(OTHER)) == ([], ["a"])
    assert world.enqueued == {DEMO, OTHER}
    assert world.forgotten == []


@pytest.mark.parametrize(("kind", "enqueued"), [(SERVICE, {DEMO, OTHER}), (POD, {OTHER})])
def test_child_enqueues_the_object_of_its_name_too(kind: Kind, enqueued: set[Key]) -> None:
    world = World(kind)
    world.cache.put(body("demo", 1, "other"))
    assert world.enqueued == enqueued


def test_successor_of_a_name_replaces_the_object() -> None:
    world = World(SERVICE)
    world.cache.put(body("demo", 1, uid="first"))
    world.cache.put(body("demo", 2, uid="second"))
    assert [found["metadata"]["uid"] for found in world.index[DEMO]] == ["second"]
    assert world.forgotten == ["first"]
