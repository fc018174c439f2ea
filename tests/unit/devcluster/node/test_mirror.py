"""What is known of the API's objects, and when somebody looks at them."""

from __future__ import annotations

import asyncio

import pytest

from dragoman_devcluster.errors import ConflictError, GoneError, NotFoundError
from dragoman_devcluster.kube.client import error_from
from dragoman_devcluster.kube.mirror import Collection, Mirror
from dragoman_devcluster.kube.queue import Reconciler
from dragoman_devcluster.kube.resources import DEPLOYMENTS, NODES, PODS, Resource
from dragoman_devcluster.kube.status import differs


def make(name="a", version=1, uid=""):
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata}


@pytest.fixture
def collection():
    return Collection(PODS)


@pytest.fixture
def heard(collection):
    changes = []
    collection.listeners.append(lambda old, new: changes.append((old and version(old), new and version(new))))
    return changes


def version(manifest):
    return int(manifest["metadata"]["resourceVersion"])


def test_what_is_older_than_known_is_ignored(collection, heard):
    for known in (1, 3, 2, 3, 4):
        collection.remember(make(version=known))
    assert heard == [(None, 1), (1, 3), (3, 4)]


def test_numbers_are_compared_as_numbers(collection, heard):
    collection.remember(make(version=9))
    collection.remember(make(version=10))
    assert heard == [(None, 9), (9, 10)]


def test_what_is_gone_does_not_come_back(collection, heard):
    collection.remember(make(version=1))
    collection.forget(make(version=2))
    collection.remember(make(version=1))
    assert heard == [(None, 1), (1, None)]
    collection.remember(make(version=3, uid="another"))
    assert heard[-1] == (None, 3)


def test_the_end_of_a_predecessor_does_not_touch_its_namesake(collection):
    collection.remember(make(version=5, uid="new"))
    collection.forget(make(version=4, uid="old"))
    assert list(collection.items) == [("default", "a")]


def test_a_list_replaces_what_it_can_know_of(collection, heard):
    collection.remember(make("gone", 1))
    collection.remember(make("stays", 2))
    collection.remember(make("just created", 8))
    collection.replace([make("stays", 2), make("fresh", 6)], 7)
    assert set(collection.items) == {("default", name) for name in ("stays", "just created", "fresh")}
    assert heard[3:] == [(1, None), (None, 6)]
    assert collection.synced.is_set()


async def run_until(reconciler, done):
    task = asyncio.create_task(reconciler.run())
    async with asyncio.timeout(10):
        await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_key_is_looked_at_once_however_often_it_is_enqueued():
    seen, done = [], asyncio.Event()

    async def look(key):
        seen.append(key[1])
        if key[1] == "last":
            done.set()

    reconciler = Reconciler("test", look)
    for name in ("a", "a", "b"):
        reconciler.enqueue(("", name))
    reconciler.enqueue(("", "last"), 0.05)
    reconciler.enqueue(("", "a"), 30)
    await run_until(reconciler, done)
    assert seen == ["a", "b", "last"]


async def test_failures_are_tried_again_and_later_looks_are_kept():
    looks, done = [], asyncio.Event()

    async def look(key):
        looks.append(asyncio.get_running_loop().time())
        if len(looks) < 3:
            raise ConflictError(409, "Conflict", "somebody was faster")
        if len(looks) == 4:
            done.set()
        return 0.01

    reconciler = Reconciler("test", look)
    reconciler.enqueue(("", "a"))
    await run_until(reconciler, done)
    first, second, third, _ = looks
    assert second - first >= 0.09
    assert third - second >= 0.19


@pytest.mark.parametrize(("status", "kind"), [(404, NotFoundError), (409, ConflictError), (410, GoneError)])
def test_errors_by_status(status, kind):
    error = error_from(status, b'{"reason": "Why", "message": "because"}')
    assert type(error) is kind
    assert str(error) == f"{status} Why: because"


def test_an_answer_that_is_no_status():
    assert error_from(502, b"<html>bad gateway").message == "<html>bad gateway"
    assert error_from(500, b"[]").status == 500


def test_paths():
    assert PODS.path("default", "a", "binding") == "/api/v1/namespaces/default/pods/a/binding"
    assert DEPLOYMENTS.path() == "/apis/apps/v1/deployments"
    assert NODES.path("", "local", "status") == "/api/v1/nodes/local/status"


def test_a_status_is_written_only_if_it_says_something_new():
    manifest = {"status": {"replicas": 2, "conditions": [{"type": "A", "status": "True"}]}}
    assert not differs(manifest, {"replicas": 2, "readyReplicas": 0, "message": ""})
    assert not differs(manifest, {"conditions": [{"type": "A", "status": "True", "message": ""}]})
    assert differs(manifest, {"replicas": 0})
    assert differs({}, {"replicas": 1})


class ApiWithout:
    """An API that no longer has a kind, and has nothing of any other."""

    def __init__(self, gone):
        self.gone = gone

    async def list(self, resource):
        if resource == self.gone:
            raise NotFoundError(404, "NotFound", f"there are no {resource.plural}")
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    async def watch(self, resource, since):
        await asyncio.Event().wait()
        yield {}


async def test_a_kind_that_was_removed_holds_nobody_up():
    gone = Resource("example.org/v1", "widgets", "Widget")
    mirror = Mirror(ApiWithout(gone))
    mirror.follow(PODS)
    mirror.follow(gone)
    async with asyncio.timeout(30):
        await mirror.synced()
    assert mirror.list(gone) == []
    await mirror.aclose()


async def test_a_kind_is_mirrored_until_its_last_follower_leaves():
    class Client:
        async def list(self, _resource):
            return {"metadata": {"resourceVersion": "1"}, "items": [make()]}

        async def watch(self, _resource, _version):
            await asyncio.Event().wait()
            yield {}

    def collector(_old, _new):
        """One of two that follow."""

    mirror = Mirror(Client())
    mirror.follow(PODS)
    mirror.follow(PODS, collector)
    async with asyncio.timeout(10):
        await mirror.synced()
    mirror.unfollow(PODS, collector)
    assert len(mirror.list(PODS)) == 1
    mirror.follow(PODS, collector)
    mirror.follow(NODES, collector)
    mirror.unfollow(NODES, collector)
    assert mirror.followed == [PODS]
    await mirror.aclose()
