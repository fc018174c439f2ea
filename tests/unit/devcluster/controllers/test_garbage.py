"""What has lost its owners."""

from dragoman_devcluster.controllers.garbage import without_owner

THING = ("v1", "Thing")


def make(uid, *owners, deleting=False):
    references = [{"apiVersion": "v1", "kind": "Thing", "name": owner, "uid": owner} for owner in owners]
    metadata = {"name": uid, "uid": uid, "ownerReferences": references}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


def collected(*manifests, kinds=frozenset({THING})):
    return [manifest["metadata"]["uid"] for manifest in without_owner(manifests, kinds)]


def test_nothing_to_do_while_owners_live():
    assert collected(make("a"), make("b", "a"), make("c", "b")) == []


def test_object_without_any_owner_left_is_collected():
    assert collected(make("b", "a"), make("c", "b")) == ["b"]


def test_one_living_owner_is_enough():
    assert collected(make("a"), make("c", "a", "gone")) == []


def test_object_that_is_being_deleted_is_left_alone():
    assert collected(make("b", "gone", deleting=True)) == []


def test_owners_of_unknown_kinds_are_not_missing():
    assert collected(make("b", "a"), kinds=frozenset()) == []


def test_dependents_wait_for_the_owner_to_be_gone():
    """An owner held by a finalizer of its own keeps its children."""
    assert collected(make("a", deleting=True), make("b", "a")) == []
