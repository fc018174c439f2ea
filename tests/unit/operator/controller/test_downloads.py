"""The progress of downloads, read from pods."""

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.support.deployments import make_pod

from dragoman_kube.objects import Key
from dragoman_operator.controller.downloads import MAX_CHARS, Downloads, download_of, is_downloading
from dragoman_operator.observed.snapshot import Download

KEY = Key("default", "demo")


def downloading(pod: dict[str, Any], state: str = "running", address: str = "127.0.0.1") -> dict[str, Any]:
    pod["metadata"]["uid"] = "uid-a"
    pod["status"] |= {"podIP": address, "initContainerStatuses": [{"name": "fetch", "state": {state: {}}}]}
    return pod


@pytest.mark.parametrize("state", ["waiting", "terminated"])
def test_only_a_running_init_container_downloads(state: str) -> None:
    assert is_downloading(downloading(make_pod("a")))
    assert not is_downloading(downloading(make_pod("a"), state))
    assert not is_downloading(downloading(make_pod("a"), address=""))
    assert not is_downloading(make_pod("a"))


@pytest.mark.parametrize("page", [b"", b"[]", b"{}", b'{"reason": 3}', b"\xff"])
def test_an_answer_without_progress(page: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        download_of(page)


def test_an_answer_is_one_line_of_bounded_length() -> None:
    assert download_of(b'{"reason": "a\\nb", "progress": null}') == Download("ab")
    assert download_of(b'{"reason": "a", "progress": 0.5}') == Download("a", 0.5)
    for progress in (b"1" + b"0" * 400, b"NaN", b"-1", b'"half"'):
        assert download_of(b'{"reason": "a", "progress": %s}' % progress) == Download("a")
    assert len(download_of(b'{"reason": "%s"}' % (b"x" * 9999)).sentence) == MAX_CHARS


async def test_a_change_is_enqueued_once() -> None:
    state = {"reason": "downloading the model: 43% of 3.20 GB, 110 MB/s"}
    pods = [downloading(make_pod("a"))]
    enqueued: list[Key] = []

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(state, status=503)

    app = web.Application()
    app.router.add_get("/startupz", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as http:
        downloads = Downloads(
            http, lambda: [(KEY, pod) for pod in pods], enqueued.append, 2.0, server.port or 0
        )
        await downloads.read()
        await downloads.read()
        assert downloads.progress == {"uid-a": Download(state["reason"])}
        assert enqueued == [KEY]
        state["reason"] = "downloading the model: 50% of 3.20 GB, 110 MB/s"
        await downloads.read()
        assert enqueued == [KEY, KEY]
        pods.clear()
        await downloads.read()
        assert downloads.progress == {}


async def test_a_malformed_answer_is_ignored_and_the_other_pods_are_read() -> None:
    """JSON that is nested too deeply raises no ValueError."""
    pages = iter(["[" * 10_000, '{"reason": "downloading"}'])
    first, second = downloading(make_pod("a")), downloading(make_pod("b"))
    second["metadata"]["uid"] = "uid-b"

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=next(pages))

    app = web.Application()
    app.router.add_get("/startupz", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as http:
        downloads = Downloads(
            http, lambda: [(KEY, first), (KEY, second)], lambda _: None, 2.0, server.port or 0
        )
        await downloads.read()
        assert list(downloads.progress.values()) == [Download("downloading")]


async def test_a_pod_that_does_not_answer_is_ignored(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession() as http:
        downloads = Downloads(
            http, lambda: [(KEY, downloading(make_pod("a")))], lambda _: None, 2.0, unused_tcp_port
        )
        await downloads.read()
        assert downloads.progress == {}
