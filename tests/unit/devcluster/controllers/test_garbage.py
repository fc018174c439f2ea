"""What has lost its owners."""

from __future__ import annotations

from dragoman_devcluster.controllers.garbage import Collect, Orphan, Release, plan_garbage


def make(uid, *owners, deleting=False, finalizers=(), blocks=True):
    references = [
        {"apiVersion": "v1", "kind": "Thing", "name": owner, "uid": owner, "blockOwnerDeletion": blocks}
        for owner in owners
    ]
    metadata = {"name": uid, "uid": uid, "ownerReferences": references, "finalizers": list(finalizers)}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


def steps(*manifests, **kwargs):
    return [(type(step), step.manifest["metadata"]["uid"]) for step in plan_garbage(manifests, **kwargs)]


def test_nothing_to_do_while_owners_live():
    assert steps(make("a"), make("b", "a"), make("c", "b")) == []


def test_object_without_any_owner_left_is_collected():
    assert steps(make("b", "a"), make("c", "b")) == [(Collect, "b")]


def test_one_living_owner_is_enough():
    assert steps(make("a"), make("c", "a", "gone")) == []


def test_object_that_is_being_deleted_is_left_alone():
    assert steps(make("b", "gone", deleting=True)) == []


def test_owners_of_unknown_kinds_are_not_missing():
    assert steps(make("b", "a"), unknown_kinds={("v1", "Thing")}) == []


def test_background_waits_for_the_owner_to_be_gone():
    """An owner held by a finalizer of its own keeps its children, as the operator's drain needs."""
    assert steps(make("a", deleting=True, finalizers=["example.org/drain"]), make("b", "a")) == []


def test_foreground_deletes_children_first():
    owner = make("a", deleting=True, finalizers=["foregroundDeletion"])
    child = make("b", "a")
    [collect] = plan_garbage([owner, child])
    assert isinstance(collect, Collect)
    assert collect.foreground
    assert steps(owner, make("b", "a", deleting=True)) == []
    assert steps(owner, make("b", "a", deleting=True, blocks=False)) == [(Release, "a")]
    assert steps(owner) == [(Release, "a")]


def test_orphans_lose_their_reference_before_the_owner_goes():
    owner = make("a", deleting=True, finalizers=["orphan"])
    assert steps(owner, make("b", "a")) == [(Orphan, "b")]
    assert steps(owner) == [(Release, "a")]
