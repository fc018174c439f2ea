"""Events: one object per message, which counts up."""

from datetime import UTC, datetime
from typing import Any, cast

from tests.support.fake_cluster import FakeCluster

from dragoman_kube.client import KubeClient
from dragoman_kube.events import EventRecorder, EventWriter

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7"},
}


async def written(
    cluster: FakeCluster, writer: EventWriter, *recorded: tuple[str, str], about: Any = POD
) -> list[int]:
    recorder = EventRecorder(writer, "kubelet", host="node")
    for reason, message in recorded:
        recorder.record(about, reason, message, field_path="spec.containers{engine}", now=NOW)
        await writer.write(writer._queue.get_nowait())
    return [event["count"] for event in cluster.objects.values()]


def writer_of(cluster: FakeCluster) -> EventWriter:
    return EventWriter(cast(KubeClient, cluster))


async def test_the_event() -> None:
    cluster = FakeCluster()
    await written(cluster, writer_of(cluster), ("Started", "x" * 2000))
    (event,) = cluster.objects.values()
    assert event["metadata"]["name"].startswith("a.")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "n",
        "name": "a",
        "uid": "u",
        "resourceVersion": "7",
        "fieldPath": "spec.containers{engine}",
    }
    assert len(event["message"]) == 1024
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert (event["source"], event["reportingInstance"]) == ({"component": "kubelet", "host": "node"}, "node")


async def test_the_same_message_counts_up() -> None:
    cluster = FakeCluster()
    same, other = ("Started", "engine"), ("Started", "sidecar")
    assert await written(cluster, writer_of(cluster), same, same, other, same) == [3, 1]
    assert cluster.calls == ["create Event", "merge Event", "create Event", "merge Event"]


async def test_another_process_goes_on_counting_at_two() -> None:
    cluster = FakeCluster()
    await written(cluster, writer_of(cluster), ("Started", "engine"))
    assert await written(cluster, writer_of(cluster), ("Started", "engine")) == [2]


async def test_an_event_that_has_expired_is_created_again() -> None:
    cluster = FakeCluster()
    writer = writer_of(cluster)
    await written(cluster, writer, ("Started", "engine"), ("Started", "engine"))
    cluster.objects.clear()
    assert await written(cluster, writer, ("Started", "engine"), ("Started", "engine")) == [2]


async def test_an_event_about_a_cluster_scoped_object_goes_to_the_default_namespace() -> None:
    cluster = FakeCluster()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "uid": "u"}}
    await written(cluster, writer_of(cluster), ("Ready", "yes"), about=node)
    (event,) = cluster.objects.values()
    assert (event["metadata"]["namespace"], event["involvedObject"]["namespace"]) == ("default", "")
