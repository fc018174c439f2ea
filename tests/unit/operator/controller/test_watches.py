"""Whose reconciliation a change enqueues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.deployments import KEY, make_body
from tests.support.operator_world import World, owned

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.kinds import POD, SERVICE, Kind
from dragoman_kube.objects import Key
from dragoman_operator.controller.watches import labelled
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

MakeWorld = Any
OTHER = Key(KEY.namespace, "other")


async def enqueued(world: World) -> set[Key]:
    """What the changes since the last call have enqueued."""
    await world.cluster.settle()
    found = set(world.enqueued)
    world.enqueued.clear()
    return found


def label(name: str) -> Any:
    """A change of the label that names the TranslationDeployment."""
    return lambda found: found["metadata"]["labels"].update({LABEL_DEPLOYMENT: name})


async def test_lists_events_and_deletions_enqueue_the_object(make_world: MakeWorld) -> None:
    world = make_world(make_body(), owned(POD, "listed", None))
    assert await enqueued(world) == {KEY}
    world.add_pod("added", None)
    assert await enqueued(world) == {KEY}
    world.cluster.remove(POD, Key(KEY.namespace, "added"))
    assert await enqueued(world) == {KEY}
    world.cluster.remove(TRANSLATION_DEPLOYMENT, KEY)
    assert await enqueued(world) == {KEY}


async def test_label_that_changes_enqueues_both(make_world: MakeWorld) -> None:
    world = make_world(make_body(), owned(POD, "a", None))
    await enqueued(world)
    world.cluster.edit(POD, Key(KEY.namespace, "a"), label("other"))
    assert await enqueued(world) == {KEY, OTHER}
    assert [key for key, _ in labelled(world.mirror, POD)] == [OTHER]


@pytest.mark.parametrize(("kind", "expected"), [(SERVICE, {KEY, OTHER}), (POD, {OTHER})])
async def test_child_enqueues_the_object_of_its_name_too(
    make_world: MakeWorld, kind: Kind, expected: set[Key]
) -> None:
    world = make_world()
    await enqueued(world)
    child = owned(kind, KEY.name, None)
    label("other")(child)
    world.cluster.put(child)
    assert await enqueued(world) == expected


async def test_object_that_loses_its_label_enqueues_its_object(make_world: MakeWorld) -> None:
    world = make_world(make_body(), owned(POD, "a", None))
    await enqueued(world)
    world.cluster.edit(POD, Key(KEY.namespace, "a"), lambda found: found["metadata"].pop("labels"))
    assert await enqueued(world) == {KEY}
    assert not world.mirror.list(POD)


async def test_own_write_enqueues_once(make_world: MakeWorld) -> None:
    """The event of the write, with the same version, changes nothing."""
    world = make_world(make_body())
    await world.reconciled()
    assert await enqueued(world) == {KEY}
    assert await enqueued(world) == set()
