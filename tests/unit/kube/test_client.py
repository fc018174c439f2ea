"""What the client sends for each verb, and which error each response becomes."""

import asyncio
import gc
import json
import socket
import ssl
import threading
import warnings
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import client

from dragoman_devcluster.api.tls import credentials
from dragoman_kube.client import KubeClient, connect
from dragoman_kube.errors import (
    ClusterError,
    ConflictError,
    GoneError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    WriteForbiddenError,
    error_of,
)
from dragoman_kube.kinds import DEPLOYMENT, NODE, POD, SCALED_OBJECT
from dragoman_kube.objects import Key

KEY = Key("n", "a")
PATH = "/api/v1/namespaces/n/pods/a"
MANIFEST = {"metadata": {"namespace": "n", "name": "a"}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedError),
        (403, RefusedError),
        (404, NotFoundError),
        (408, UnavailableError),
        (409, ConflictError),
        (410, GoneError),
        (422, RefusedError),
        (429, UnavailableError),
        (500, UnavailableError),
        (504, UnavailableError),
    ],
)
def test_errors_by_status(status: int, kind: type[ClusterError]) -> None:
    error = error_of("apply Pod n/a", status, b'{"reason": "Why", "message": "because"}')
    assert type(error) is kind
    assert (str(error), error.status, error.code) == (f"apply Pod n/a: because ({status})", status, "Why")


def test_a_response_that_is_no_status_object() -> None:
    assert error_of("x", 502, b"<html>bad gateway").reason == "<html>bad gateway (502)"
    assert error_of("x", 500, b"[]").status == 500
    assert len(error_of("x", 500, b"y" * 100_000).reason) < 1100


def test_paths() -> None:
    assert POD.path("default", "a", "binding") == "/api/v1/namespaces/default/pods/a/binding"
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert NODE.path("", "local", "status") == "/api/v1/nodes/local/status"


async def test_reads(api: Any, kube: KubeClient) -> None:
    api.responses = [(200, '{"kind": "Pod"}'), (404, "{}"), (403, '{"message": "no"}')]
    assert await kube.get(POD, KEY) == {"kind": "Pod"}
    assert await kube.get(POD, KEY) is None
    with pytest.raises(RefusedError, match=r"^read Pod n/a: no \(403\)$"):
        await kube.get(POD, KEY)
    assert [request[:2] for request in api.requests] == [("GET", PATH)] * 3


async def test_lists_select(api: Any, kube: KubeClient) -> None:
    api.responses = [(200, '{"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]}')]
    found = await kube.list(POD, labels="a=b,c", fields="type=Warning")
    assert found == ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}], "5")
    query = {"labelSelector": "a=b,c", "fieldSelector": "type=Warning", "limit": "500"}
    assert api.requests == [("GET", "/api/v1/pods", query, None)]


@pytest.mark.parametrize("body", ["{}", '{"metadata": {}, "items": []}', '{"metadata": 1, "items": []}'])
async def test_a_response_that_is_no_list(api: Any, kube: KubeClient, body: str) -> None:
    api.responses = [(200, body)]
    with pytest.raises(UnavailableError, match="not a list"):
        await kube.list(POD)


async def test_a_list_without_items(api: Any, kube: KubeClient) -> None:
    api.responses = [(200, '{"metadata": {"resourceVersion": "5"}, "items": null}')]
    assert (await kube.list(POD)).items == []


async def test_writes(api: Any, kube: KubeClient) -> None:
    api.responses = [(200, '{"kind": "Pod"}')] * 7
    await kube.create(POD, MANIFEST)
    await kube.replace(POD, MANIFEST)
    await kube.apply(POD, MANIFEST)
    await kube.apply(POD, MANIFEST, "status")
    await kube.merge(POD, KEY, {"x": 1}, "scale")
    await kube.delete(POD, KEY, "u")
    await kube.delete(POD, KEY, "u", grace_s=0)
    manager = {"fieldManager": "tests"}
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
    }
    assert api.requests == [
        ("POST", "/api/v1/namespaces/n/pods", manager, MANIFEST),
        ("PUT", PATH, manager, MANIFEST),
        ("PATCH", PATH, {**manager, "force": "true"}, MANIFEST),
        ("PATCH", f"{PATH}/status", {**manager, "force": "true"}, MANIFEST),
        ("PATCH", f"{PATH}/scale", manager, {"x": 1}),
        ("DELETE", PATH, {}, options),
        ("DELETE", PATH, {}, {**options, "gracePeriodSeconds": 0}),
    ]
    assert [headers["Content-Type"] for headers in api.headers[2:5]] == [
        "application/apply-patch+yaml",
        "application/apply-patch+yaml",
        "application/merge-patch+json",
    ]


async def test_an_object_that_the_server_names(api: Any, kube: KubeClient) -> None:
    api.responses = [(403, '{"message": "no"}')]
    with pytest.raises(RefusedError, match=r"^create Pod n/web-: no \(403\)$"):
        await kube.create(POD, {"metadata": {"namespace": "n", "generateName": "web-"}})


async def test_deleting_what_is_gone_is_no_error(api: Any, kube: KubeClient) -> None:
    api.responses = [(404, "{}")]
    assert await kube.delete(POD, KEY, "u") is None


async def test_a_conflict_names_what_was_attempted(api: Any, kube: KubeClient) -> None:
    api.responses = [(409, '{"message": "changed"}')]
    with pytest.raises(ConflictError, match=r"^apply status of Pod n/a: changed \(409\)$"):
        await kube.apply(POD, MANIFEST, "status")


async def test_which_kinds_are_served(api: Any, kube: KubeClient) -> None:
    resources = {"resources": [{"name": "scaledobjects"}]}
    api.responses = [(200, json.dumps(resources)), (200, '{"resources": []}'), (404, "{}")]
    assert [await kube.serves(SCALED_OBJECT) for _ in range(3)] == [True, False, False]
    assert api.requests[0][1] == "/apis/keda.sh/v1alpha1"


async def test_a_response_that_is_no_json(api: Any, kube: KubeClient) -> None:
    api.responses = [(200, "<html>"), (200, "[]")]
    for _ in range(2):
        with pytest.raises(UnavailableError, match="is this the API server"):
            await kube.get(POD, KEY)


async def test_a_silent_server_and_one_that_is_gone(api: Any, server: Any) -> None:
    api.silent.clear()
    async with connect(client.Configuration(host=server[1]), timeout_s=0.05) as kube:
        with pytest.raises(UnavailableError, match=r"^read Pod n/a: TimeoutError$"):
            await kube.get(POD, KEY)
    async with connect(client.Configuration(host="http://127.0.0.1:1")) as kube:
        with pytest.raises(UnavailableError, match=r"^read Pod n/a: "):
            await kube.get(POD, KEY)


def test_a_cancelled_watch_closes_its_socket_though_the_server_hangs(tmp_path: Path) -> None:
    """The server sends one event and then reads nothing, so it never answers TLS's closing message."""
    given = credentials(tmp_path, "127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(given.certificate_file, given.key_file)
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection = context.wrap_socket(listener.accept()[0], server_side=True)
        with connection:
            connection.recv(65_536)
            line = json.dumps({"type": "ADDED", "object": {}}).encode() + b"\n"
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            ended.wait(10)

    async def watch(port: int) -> None:
        configuration = client.Configuration(host=f"https://127.0.0.1:{port}")
        configuration.ssl_ca_cert = str(given.certificate_file)
        async with connect(configuration) as kube:
            received = asyncio.Event()

            async def follow() -> None:
                async for _ in kube.watch(POD, "n", "1"):
                    received.set()

            following = asyncio.create_task(follow())
            async with asyncio.timeout(10):
                await received.wait()
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                asyncio.run(watch(listener.getsockname()[1]))
                gc.collect()
        finally:
            ended.set()
            thread.join()
    assert [str(warning.message) for warning in caught] == []


async def test_a_fenced_client_writes_only_within_its_budget(api: Any, kube: KubeClient) -> None:
    budget_s = 0.0
    fenced = kube.fenced(lambda: budget_s)
    with pytest.raises(WriteForbiddenError, match=r"^create Pod n/a: "):
        await fenced.create(POD, MANIFEST)
    assert not api.requests
    api.responses = [(200, "{}")] * 2
    await fenced.get(POD, KEY)
    budget_s = 20.0
    await fenced.create(POD, MANIFEST)
    assert [method for method, *_ in api.requests] == ["GET", "POST"]
    budget_s = 0.05
    api.silent.clear()
    async with asyncio.timeout(10):
        with pytest.raises(UnavailableError, match="TimeoutError"):
            await fenced.create(POD, MANIFEST)


LIST = '{"metadata": {"resourceVersion": "5"}, "items": []}'


@pytest.mark.parametrize(
    ("verb", "answers"), [("list", [403]), ("watch", [(200, LIST), 403]), ("", [(200, LIST)])]
)
async def test_a_kind_is_readable_if_it_may_be_listed_and_watched(
    api: Any, kube: KubeClient, verb: str, answers: list[Any]
) -> None:
    """The watch is closed once the server has accepted it: nothing has to change for an answer."""
    api.responses = [each if isinstance(each, tuple) else (each, "{}") for each in answers]
    checking = kube.check_readable(POD, "n", labels="mine")
    if verb:
        with pytest.raises(RefusedError, match=f"{verb} pods in n"):
            await checking
        return
    async with asyncio.timeout(10):
        await checking
    assert api.watched_from == ["5"]
    assert api.requests[0][2] == {"labelSelector": "mine", "limit": "1"}


@pytest.mark.parametrize("refusals", [[(429, "0")], [(503, "0.01"), (429, "0.01"), (500, "0")]])
async def test_throttled_request_is_sent_again_after_its_time(
    api: Any, kube: KubeClient, refusals: list[tuple[int, str]]
) -> None:
    api.throttled = list(refusals)
    api.responses = [(200, json.dumps(MANIFEST))]
    assert await kube.apply(POD, MANIFEST) == MANIFEST
    assert len(api.requests) == 1
    api.throttled = list(refusals)
    assert (await kube.list(POD)).items == []
    api.throttled = list(refusals)
    api.send("ADDED", "a", 2)
    events = kube.watch(POD, "", "1")
    async with aclosing(events):
        assert (await anext(events))["type"] == "ADDED"


@pytest.mark.parametrize(("refusal", "kind"), [((429, "3600"), UnavailableError), ((403, "0"), RefusedError)])
async def test_request_fails_if_the_time_is_too_long_or_it_was_not_throttled(
    api: Any, kube: KubeClient, refusal: tuple[int, str], kind: type[ClusterError]
) -> None:
    api.throttled = [refusal]
    with pytest.raises(kind, match="too many requests"):
        await kube.get(POD, KEY)


async def test_throttled_write_is_not_repeated_without_the_lease(api: Any, kube: KubeClient) -> None:
    budgets = iter([10.0, 0.0])
    api.throttled = [(429, "0")]
    with pytest.raises(WriteForbiddenError):
        await kube.fenced(lambda: next(budgets)).apply(POD, MANIFEST)
    assert api.requests == []
