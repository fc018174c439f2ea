import asyncio
from pathlib import Path

import pytest

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.store import Key, Store

A = Key("configmaps", "default", "a")
B = Key("configmaps", "other", "b")


def obj(key: Key, **data: str) -> dict[str, object]:
    return {"metadata": {"name": key.name, "namespace": key.namespace}, "data": data}


def test_every_write_gets_a_higher_version(store: Store) -> None:
    first = store.put(A, obj(A))
    second = store.put(B, obj(B))
    gone = store.remove(A)
    assert gone is not None
    versions = [int(item["metadata"]["resourceVersion"]) for item in (first, second, gone)]
    assert versions == sorted(set(versions))
    assert store.version == versions[-1]


def test_objects_and_history_survive_a_restart(tmp_path: Path) -> None:
    before = Store(tmp_path)
    before.put(A, obj(A, x="1"))
    start = before.version
    before.put(A, obj(A, x="2"))
    before.put(B, obj(B))
    before.remove(B)
    before.close()
    after = Store(tmp_path)
    assert after.version == start + 3
    assert [item["data"] for item in after.listed("configmaps")] == [{"x": "2"}]
    assert [(event.type, event.key) for event in after.since("configmaps", start)] == [
        ("MODIFIED", A),
        ("ADDED", B),
        ("DELETED", B),
    ]
    assert after.since("configmaps", start)[0].previous == {
        **obj(A, x="1"),
        "metadata": {**obj(A)["metadata"], "resourceVersion": str(start)},  # type: ignore[dict-item]
    }
    after.close()


def test_history_is_bounded_and_older_versions_have_expired(tmp_path: Path) -> None:
    store = Store(tmp_path, history=10)
    for index in range(30):
        store.put(A, obj(A, x=str(index)))
    with pytest.raises(ApiError, match="too old resource version: 2"):
        store.since("configmaps", 2)
    assert len(store.since("configmaps", store.version - 5)) == 5
    store.close()
    again = Store(tmp_path, history=10)
    with pytest.raises(ApiError):
        again.since("configmaps", 2)
    again.close()


async def test_subscribers_receive_events_of_their_resource_only(store: Store) -> None:
    with store.subscribe("configmaps") as events:
        store.put(Key("secrets", "default", "s"), obj(A))
        store.put(A, obj(A))
        event = await asyncio.wait_for(events.get(), 1)
        assert (event.type, event.key) == ("ADDED", A)
        assert events.empty()
    store.put(A, obj(A, x="1"))
    assert events.empty()


def test_lists_are_ordered_and_narrowed_to_a_namespace(store: Store) -> None:
    store.put(B, obj(B))
    store.put(A, obj(A))
    assert [item["metadata"]["name"] for item in store.listed("configmaps")] == ["a", "b"]
    assert [item["metadata"]["name"] for item in store.listed("configmaps", "other")] == ["b"]
