"""The cache: what the indices hold, and what this process wrote since."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_kube.kinds import DEPLOYMENT, POD
from dragoman_kube.objects import Key
from dragoman_operator.controller.cache import LEARNED_S, Cache

KEY = Key("ns", "demo")


def body(version: int, uid: str = "uid", name: str = "demo") -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}}


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.deployments: dict[Key, list[dict[str, Any]]] = {}
        self.pods: dict[Key, list[dict[str, Any]]] = {}
        self.cache = Cache(lambda: self.now)
        self.cache.bind({"deployments": self.deployments, "pods": self.pods})

    def version(self) -> int | None:
        found = self.cache.get(DEPLOYMENT, KEY)
        return int(found["metadata"]["resourceVersion"]) if found else None


@pytest.fixture
def world() -> World:
    return World()


def test_own_write_is_used_until_it_is_indexed(world: World) -> None:
    world.deployments[KEY] = [body(5)]
    world.cache.learn(DEPLOYMENT, body(9))
    assert world.version() == 9
    world.deployments[KEY] = [body(7)]
    assert world.version() == 9, "an older event changes nothing"
    world.deployments[KEY] = [body(10)]
    assert world.version() == 10
    world.deployments[KEY] = [body(8)]
    assert world.version() == 8, "what was learned is not needed any more"


def test_own_write_expires(world: World) -> None:
    world.cache.learn(DEPLOYMENT, body(9))
    world.now += LEARNED_S
    assert world.version() is None


def test_deleted_object_is_not_revived(world: World) -> None:
    world.cache.learn(DEPLOYMENT, body(9))
    world.cache.forget(DEPLOYMENT, KEY, "uid")
    assert world.version() is None
    world.cache.learn(DEPLOYMENT, body(9))
    assert world.version() is None, "the response came after the event"
    world.cache.learn(DEPLOYMENT, body(11, "successor"))
    assert world.version() == 11
    world.cache.forget(DEPLOYMENT, KEY, "uid")
    assert world.version() == 11, "a late event of the predecessor"


def test_successor_counts_and_not_its_predecessor(world: World) -> None:
    world.deployments[KEY] = [body(12, "new"), body(7, "old")]
    assert world.version() == 12


def test_object_of_another_name_with_the_label_is_no_child(world: World) -> None:
    world.deployments[KEY] = [body(5, name="other")]
    assert world.version() is None


def test_ghosts_are_ignored(world: World) -> None:
    world.pods[KEY] = [body(5, "there", "a"), body(6, "gone", "b")]
    world.cache.ignore(body(6, "gone", "b"))
    assert [pod["metadata"]["uid"] for pod in world.cache.pods(KEY)] == ["there"]
    assert [found["metadata"]["uid"] for _, found in world.cache.entries(POD)] == ["there"]
    world.pods[KEY][1] = body(7, "gone", "b")
    assert len(world.cache.pods(KEY)) == 2, "it had lost its label, and has it again"
