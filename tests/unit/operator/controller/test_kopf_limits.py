"""What the operator relies on in kopf, and what it works around: kopf itself against an API server in memory.

A test that fails after an update of kopf names the part of the operator that depends on what changed.
"""

import asyncio
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import kopf
import pytest
from aiohttp import web
from kopf._cogs.aiokits.aiotoggles import ToggleSet
from tests.support.waiting import until

from dragoman_kube.kinds import CRD, EVENT, NAMESPACE, POD, Kind
from dragoman_operator.controller import handlers
from dragoman_operator.controller.watches import MIRRORED_KINDS
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

OBJECTS, PODS = TRANSLATION_DEPLOYMENT.plural, POD.plural
KINDS = {OBJECTS: TRANSLATION_DEPLOYMENT, PODS: POD}
SERVED = (*MIRRORED_KINDS, NAMESPACE, EVENT, CRD)
"""kopf discovers the kinds of namespaces, events and CRDs in any case."""
KOPFS_FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
OURS = "dragoman.io/never-set"


class Api:
    """As much of an API server as kopf needs."""

    def __init__(self) -> None:
        self.items: dict[str, list[dict[str, Any]]] = {kind.plural: [] for kind in SERVED}
        self.version = 10
        self.writes: list[str] = []
        self.lists: dict[str, int] = defaultdict(int)
        self.namespaces: list[str] = []
        self.failures: dict[str, list[int]] = defaultdict(list)
        """Statuses that the next lists of a kind get."""
        self.held: dict[str, asyncio.Event] = {}
        """Lists of these kinds wait for the event."""
        self.watches: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self.port = 0

    def add(self, plural: str, name: str, **metadata: Any) -> dict[str, Any]:
        self.version += 1
        found = {
            "apiVersion": KINDS[plural].api_version,
            "kind": KINDS[plural].name,
            "metadata": {
                "namespace": "ns",
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": str(self.version),
                **metadata,
            },
            "spec": {"replicas": 1},
        }
        self.items[plural].append(found)
        return found

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path}")
            return web.json_response({"metadata": {}})
        match request.path.strip("/").split("/"):
            case ["api"]:
                return web.json_response({"versions": ["v1"]})
            case ["apis"]:
                named = {kind.api_version for kind in SERVED if "/" in kind.api_version}
                return web.json_response({"groups": [_group(*name.split("/")) for name in sorted(named)]})
            case ["api" | "apis", *version] if "/".join(version) in {kind.api_version for kind in SERVED}:
                found = [kind for kind in SERVED if kind.api_version == "/".join(version)]
                return web.json_response({"resources": list(map(_resource, found))})
            case [*_, plural] if "watch" in request.query:
                return await self._watch(request, plural)
            case [*_, "namespaces", namespace, plural]:
                return await self._list(plural, namespace)
            case [*_, plural]:
                return await self._list(plural, "")
        raise web.HTTPNotFound

    async def _list(self, plural: str, namespace: str) -> web.Response:
        if plural in self.held:
            await self.held[plural].wait()
        if self.failures[plural]:
            return web.json_response({}, status=self.failures[plural].pop(0))
        self.lists[plural] += 1
        self.namespaces += [namespace] if namespace else []
        metadata = {"resourceVersion": str(self.version)}
        return web.json_response({"metadata": metadata, "items": self.items[plural]})

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        events = self.watches[plural] = asyncio.Queue()
        lines = web.StreamResponse()
        await lines.prepare(request)
        while True:
            await lines.write(json.dumps(await events.get()).encode() + b"\n")


def _group(name: str, version: str) -> dict[str, Any]:
    versions = {"version": version}
    return {"name": name, "versions": [versions], "preferredVersion": versions}


def _resource(kind: Kind) -> dict[str, Any]:
    return {
        "name": kind.plural,
        "kind": kind.name,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "verbs": ["list", "watch", "patch"],
    }


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    made = Api()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


class Seen:
    """Handlers as the operator has them, and what they saw."""

    def __init__(self, port: int) -> None:
        self.events: list[tuple[str | None, str]] = []
        self.indexed: list[str] = []
        self.indices: dict[str, Any] = {}
        self.registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(server=f"http://127.0.0.1:{port}")

        async def indexed(name: str, body: kopf.Body, **_: Any) -> dict[str, Any]:
            self.indexed.append(name)
            return {name: dict(body)}

        async def changed(type: str | None, name: str, **more: Any) -> None:
            self.indices = {plural: more[plural] for plural in KINDS}
            self.events.append((type, name))

        kopf.on.login(registry=self.registry)(login)
        for plural, kind in KINDS.items():
            group, _, version = kind.api_version.rpartition("/")
            kopf.index(group, version, plural, id=plural, registry=self.registry)(indexed)
            kopf.on.event(group, version, plural, registry=self.registry)(changed)


def settings() -> kopf.OperatorSettings:
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.persistence.finalizer = OURS
    chosen.networking.error_backoffs = itertools.repeat(0.01)
    return chosen


@asynccontextmanager
async def operator(
    registry: kopf.OperatorRegistry, chosen: kopf.OperatorSettings | None = None, **more: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """kopf in a thread and loop of its own, since it cancels the tasks of the loop that it runs in."""
    stop = threading.Event()

    async def cleanup(**_: Any) -> None:
        # Else kopf waits 5 s for its own task that waits for the flag.
        stop.set()

    async def run() -> None:
        try:
            await kopf.operator(
                registry=registry,
                settings=chosen or settings(),
                **({"clusterwide": True} | more),
                stop_flag=stop,
            )
        finally:
            stop.set()

    kopf.on.cleanup(registry=registry)(cleanup)
    running = asyncio.create_task(asyncio.to_thread(asyncio.run, run()))
    try:
        yield running
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await asyncio.wait([running])


async def test_index_and_event_handlers_write_nothing(api: Api) -> None:
    """on.create, on.update, daemons and timers would: annotations and finalizers."""
    found, seen = api.add(OBJECTS, "demo"), Seen(api.port)
    async with operator(seen.registry):
        await until(lambda: (None, "demo") in seen.events and OBJECTS in api.watches)
        found["spec"]["replicas"] = 2
        api.watches[OBJECTS].put_nowait({"type": "MODIFIED", "object": found})
        await until(lambda: ("MODIFIED", "demo") in seen.events)
        api.watches[OBJECTS].put_nowait({"type": "DELETED", "object": found})
        await until(lambda: ("DELETED", "demo") in seen.events)
    assert api.writes == []


@pytest.mark.parametrize("finalizer", [KOPFS_FINALIZER, OURS])
async def test_kopf_removes_its_finalizer_from_objects_of_other_operators(api: Api, finalizer: str) -> None:
    """It is the same in every operator that runs on kopf, so ours is named otherwise."""
    seen, chosen = Seen(api.port), settings()
    chosen.persistence.finalizer = finalizer
    api.add(PODS, "theirs", finalizers=[KOPFS_FINALIZER])
    async with operator(seen.registry, chosen):
        await until(lambda: (None, "theirs") in seen.events)
        if finalizer == KOPFS_FINALIZER:
            await until(lambda: api.writes)
    assert bool(api.writes) == (finalizer == KOPFS_FINALIZER)


@pytest.mark.parametrize("count", [20, 60])
async def test_index_wakes_the_tasks_of_all_objects_for_each_object_of_its_first_list(
    api: Api, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """So its first list costs time that grows with the square of the number of objects."""
    wakeups, is_on = [0], ToggleSet.is_on

    def counted(self: ToggleSet) -> bool:
        wakeups[0] += 1
        return is_on(self)

    monkeypatch.setattr(ToggleSet, "is_on", counted)
    seen = Seen(api.port)
    for number in range(count):
        api.add(OBJECTS, f"demo-{number}")
    async with operator(seen.registry):
        await until(lambda: len(seen.events) == count)
    assert wakeups[0] > count * count / 4


async def test_index_keeps_what_vanished_between_two_lists(api: Api) -> None:
    seen = Seen(api.port)
    api.add(PODS, "stays")
    api.add(PODS, "goes")
    async with operator(seen.registry):
        await until(lambda: len(seen.events) == 2 and PODS in api.watches)
        del api.items[PODS][1]
        expired = {"kind": "Status", "code": 410, "message": "too old"}
        api.watches[PODS].put_nowait({"type": "ERROR", "object": expired})
        await until(lambda: api.lists[PODS] == 2)
        await until(lambda: seen.events.count((None, "stays")) == 2)
        assert "goes" in seen.indices[PODS]


@pytest.mark.parametrize("status", [403, 429, 500])
async def test_endless_backoffs_survive_an_api_server_that_fails(api: Api, status: int) -> None:
    seen = Seen(api.port)
    api.add(OBJECTS, "demo")
    api.failures[OBJECTS] = [status] * 20
    async with operator(seen.registry) as running:
        await until(lambda: seen.events == [(None, "demo")])
        assert not running.done()


@pytest.mark.slow
async def test_error_in_a_watch_ends_kopf(api: Api) -> None:
    """Any but 410; the process then exits and is started again."""
    seen = Seen(api.port)
    async with operator(seen.registry) as running:
        await until(lambda: PODS in api.watches)
        api.watches[PODS].put_nowait({"type": "ERROR", "object": {"kind": "Status", "code": 500}})
        with pytest.raises(Exception, match="Error in the watch-stream"):
            await running


async def test_probe_endpoint_refuses_connections_during_startup(api: Api, unused_tcp_port: int) -> None:
    """A standby waits for the Lease in the startup hook, so it answers probes with a server of its own."""
    seen, started, go = Seen(api.port), threading.Event(), threading.Event()
    url = f"http://127.0.0.1:{unused_tcp_port}/healthz"

    async def startup(**_: Any) -> None:
        started.set()
        await asyncio.to_thread(go.wait)

    async def answers(http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(url) as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False

    kopf.on.startup(registry=seen.registry)(startup)
    async with operator(seen.registry, liveness_endpoint=url), aiohttp.ClientSession() as http:
        await until(started.is_set)
        assert not await answers(http)
        go.set()
        async with asyncio.timeout(30):
            while True:
                if await answers(http):
                    return
                await asyncio.sleep(0.01)


async def test_namespaces_are_read_after_the_startup(api: Api) -> None:
    """The startup hook leaves out those that may not be listed."""
    seen, namespaces = Seen(api.port), ["ns", "refused"]

    async def startup(**_: Any) -> None:
        namespaces.remove("refused")

    kopf.on.startup(registry=seen.registry)(startup)
    async with operator(seen.registry, clusterwide=False, namespaces=namespaces):
        await until(lambda: len(api.watches) == len(KINDS))
    assert set(api.namespaces) == {"ns"}


async def test_operators_own_handlers_report_each_change(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=f"http://127.0.0.1:{api.port}")

    async def nothing() -> None:
        return None

    monkeypatch.setattr(handlers, "login", login)
    changes: list[tuple[str | None, Any]] = []
    found = api.add(OBJECTS, "demo", managedFields=[{"manager": "kubectl"}])
    registry = handlers.registry(lambda change, body: changes.append((change, body)), nothing, nothing)
    async with operator(registry, handlers.settings()):
        await until(lambda: changes and OBJECTS in api.watches)
        assert PODS not in api.watches, "kopf watches nothing else"
        api.watches[OBJECTS].put_nowait({"type": "DELETED", "object": found})
        await until(lambda: len(changes) == 2)
    assert [change for change, _ in changes] == [None, "DELETED"]
    del found["metadata"]["managedFields"]
    assert changes[0][1] == changes[1][1] == found
    assert api.writes == []


def test_kopf_waits_as_long_as_the_server_says_and_no_longer() -> None:
    """By default it takes its own longer pauses."""
    assert handlers.settings().networking.enforce_retry_after
