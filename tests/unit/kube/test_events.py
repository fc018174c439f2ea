"""Events: one object per message, which counts up."""

from datetime import UTC, datetime
from typing import Any

from dragoman_kube.errors import ConflictError, NotFoundError
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7"},
}


class Api:
    """Stores events by name."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self.requests.append("create")
        name = manifest["metadata"]["name"]
        if name in self.events:
            raise ConflictError("create", "exists")
        self.events[name] = dict(manifest)
        return manifest

    async def merge(self, kind: Kind, key: Key, fields: dict[str, Any]) -> dict[str, Any]:
        self.requests.append("merge")
        if key.name not in self.events:
            raise NotFoundError("merge", "gone")
        self.events[key.name] |= fields
        return self.events[key.name]


async def written(api: Api, writer: EventWriter, *recorded: tuple[str, str], about: Any = POD) -> list[int]:
    recorder = EventRecorder(writer, "kubelet", host="node")
    for reason, message in recorded:
        recorder.record(about, reason, message, field_path="spec.containers{engine}", now=NOW)
        await writer.write(writer._queue.get_nowait())
    return [event["count"] for event in api.events.values()]


def writer_of(api: Api) -> EventWriter:
    return EventWriter(api)  # type: ignore[arg-type]


async def test_the_event() -> None:
    api = Api()
    await written(api, writer_of(api), ("Started", "x" * 2000))
    (event,) = api.events.values()
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
    api = Api()
    same, other = ("Started", "engine"), ("Started", "sidecar")
    assert await written(api, writer_of(api), same, same, other, same) == [3, 1]
    assert api.requests == ["create", "merge", "create", "merge"]


async def test_another_process_goes_on_counting_at_two() -> None:
    api = Api()
    await written(api, writer_of(api), ("Started", "engine"))
    assert await written(api, writer_of(api), ("Started", "engine")) == [2]


async def test_an_event_that_has_expired_is_created_again() -> None:
    api = Api()
    writer = writer_of(api)
    await written(api, writer, ("Started", "engine"), ("Started", "engine"))
    api.events.clear()
    assert await written(api, writer, ("Started", "engine"), ("Started", "engine")) == [2]


async def test_an_event_about_a_cluster_scoped_object_goes_to_the_default_namespace() -> None:
    api = Api()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "uid": "u"}}
    await written(api, writer_of(api), ("Ready", "yes"), about=node)
    (event,) = api.events.values()
    assert (event["metadata"]["namespace"], event["involvedObject"]["namespace"]) == ("default", "")
