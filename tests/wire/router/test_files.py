"""Files through routers: at any of them, a document is found in the one pod that has it."""

import asyncio
import io
import itertools
import signal
from pathlib import Path
from typing import Any

import aiohttp
import deepl
import deepl.http_client
import httpx
import pytest

from dragoman_contract.routing import replica_tag, tag_of
from dragoman_protocols.documents import NOT_FOUND
from dragoman_router.routing.deployments import Replica

FORM = {"source": "en", "target": "de"}


def replica(pod: Any, **fields: Any) -> Replica:
    return Replica(name=f"pod-{pod.port}", host="127.0.0.1", port=pod.port, uid=f"uid-{pod.port}", **fields)


def tag(pod: Any) -> str:
    return replica(pod).tag


class World:
    """Two routers over two pods with the scripted engine, which answers with the reverse of a text."""

    def __init__(self, routers: list[Any], pods: list[Any]) -> None:
        self.routers, self.pods = routers, pods
        self.report()

    def report(self, *leaving: Any, without: Any = None) -> None:
        """What both routers know of the pods."""
        replicas = [replica(pod, terminating=pod in leaving) for pod in self.pods if pod is not without]
        for router in self.routers:
            router.serve("a", *replicas)

    def client(self, at: int) -> deepl.DeepLClient:
        return deepl.DeepLClient("any-key", server_url=self.routers[at].url)

    async def upload(self, pod: Any) -> deepl.DocumentHandle:
        """A document that this pod has."""
        client = self.client(0)
        for _ in range(50):
            handle = await asyncio.to_thread(
                client.translate_document_upload,
                "Hello",
                source_lang="EN",
                target_lang="DE",
                filename="a.txt",
            )
            if tag_of(handle.document_id) == tag(pod):
                client.close()
                return handle
        raise AssertionError("no document came to this pod")

    async def fetch(self, at: int, handle: deepl.DocumentHandle) -> bytes:
        """By way of one of the routers."""
        client = self.client(at)
        try:
            assert (await asyncio.to_thread(client.translate_document_get_status, handle)).done
            answer = await asyncio.to_thread(client.translate_document_download, handle)
            assert answer is not None
            return b"".join(answer.iter_content())
        finally:
            client.close()


@pytest.fixture
async def world(start_router: Any, start_scripted: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    pods = [start_scripted() for _ in range(2)]
    for pod in pods:
        await asyncio.to_thread(pod.wait_for, "/readyz", deadline_s=120)
    return World([await start_router(max_queue_s=5) for _ in range(2)], pods)


@pytest.mark.timeout(240)
async def test_documents_and_files_by_way_of_either_router(world: World, tmp_path: Path) -> None:
    for pod, (one, other) in itertools.product(world.pods, ((0, 1), (1, 0))):
        handle = await world.upload(pod)
        assert await world.fetch(one, handle) == b"olleH"
        assert await world.fetch(other, handle) == b"olleH"
    handle = await world.upload(world.pods[0])
    async with httpx.AsyncClient(timeout=30) as http:
        address = f"{world.routers[1].url}/v2/document/{handle.document_id}/cancel"
        cancelled = await http.post(address, data={"document_key": handle.document_key})
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "error")
    client = world.client(1)
    translated = io.BytesIO()
    status = await asyncio.to_thread(
        client.translate_document, b"One\n\nTwo three\n", translated, filename="a.txt", target_lang="DE"
    )
    client.close()
    assert (status.done, translated.getvalue()) == (True, b"enO\n\neerht owT\n")

    seen: set[str] = set()
    async with httpx.AsyncClient(timeout=30) as http:
        # Idle pods are chosen at random.
        for number in range(64):
            router, other = world.routers[:: 1 if number % 2 else -1]
            answer = await http.post(
                f"{router.url}/translate_file", data=FORM, files={"file": ("a b.txt", b"abc\n")}
            )
            url = answer.json()["translatedFileUrl"]
            assert url.startswith(f"{router.url}/download_file/")
            for address in (url, url.replace(router.url, other.url)):
                fetched = await http.get(address)
                assert (fetched.status_code, fetched.content) == (200, b"cba\n")
                assert fetched.headers["content-disposition"] == "attachment; filename=a_b_de.txt"
            seen.add(tag_of(url.rpartition("/")[2]))
            if number and len(seen) == len(world.pods):
                break
    assert seen == {tag(pod) for pod in world.pods}


@pytest.mark.timeout(240)
async def test_a_terminating_pod_waits_until_its_documents_are_fetched(world: World) -> None:
    leaver, stayer = world.pods
    handle = await world.upload(leaver)
    world.report(leaver)
    leaver.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(leaver.wait_for, "/readyz", 503)
    later = await world.upload(stayer)
    with pytest.raises(AssertionError, match="no document came"):
        await world.upload(leaver)
    assert leaver.process.poll() is None
    assert await world.fetch(1, handle) == b"olleH"
    assert await world.fetch(1, later) == b"olleH"
    assert await asyncio.to_thread(leaver.process.wait, 30) == 0


@pytest.mark.timeout(240)
async def test_a_pod_that_died_has_its_documents_no_more(world: World) -> None:
    dead = world.pods[0]
    handle = await world.upload(dead)
    dead.process.kill()
    dead.process.wait()
    with pytest.raises(
        deepl.DeepLException, match="the replica that has the document does not answer"
    ) as lost:
        await world.fetch(1, handle)
    assert lost.value.http_status_code == 502
    world.report(without=dead)
    with pytest.raises(deepl.DeepLException, match="Document not found") as gone:
        await world.fetch(1, handle)
    assert gone.value.http_status_code == 404


def form(*, api_key: str | None = None, **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field("file", b"\x00\xff" * 5000, filename="a.bin", content_type="application/octet-stream")
    for name, value in fields.items():
        made.add_field(name, value)
    if api_key is not None:
        made.add_field("api_key", api_key)
    return made


async def test_each_replica_gets_its_own_tag_and_the_same_bytes(router: Any, start_upstream: Any) -> None:
    one, two = await start_upstream("one"), await start_upstream("two")
    router.serve("a", one.replica(), two.replica())

    async def draining(exchange: Any) -> None:
        await exchange.answer(
            {"error": {"code": "draining", "message": "…"}}, 503, "x-dragoman-refused: draining\r\n"
        )

    one.script = draining
    for _ in range(20):
        message = {"X-Dragoman-Replica": "forged", "X-Forwarded-Proto": "https"}
        async with router.http.post(
            f"{router.url}/v2/document", data=form(target_lang="DE"), headers=message
        ) as got:
            assert await got.json() == {"by": "two"}
        if one.translations:
            break
    first, second = one.translations[-1], two.translations[-1]
    assert first.headers["x-dragoman-replica"] == replica_tag("one", "")
    assert second.headers["x-dragoman-replica"] == replica_tag("two", "")
    assert (first.body, first.target) == (second.body, "/v2/document")
    assert b"\x00\xff" * 5000 in second.body
    assert (second.headers["x-forwarded-proto"], second.headers["x-dragoman-router"]) == ("https", "router-1")


async def test_a_file_goes_where_its_pair_is_served(router: Any, start_upstream: Any) -> None:
    for name, pairs in (("a", {"en": ("de",)}), ("b", {"fr": ("de",)})):
        router.serve(name, (await start_upstream(name)).replica(), pairs=pairs)
    for source, name in (("en", "a"), ("fr", "b")):
        async with router.http.post(
            f"{router.url}/translate_file", data=form(source=source, target="de")
        ) as got:
            assert await got.json() == {"by": name}
            assert got.headers["X-Dragoman-Route"].startswith("pair")
    text = aiohttp.FormData({"source": "auto", "target": "de"})
    text.add_field("file", "Où est la piscine ? Le musée fermera demain.".encode(), filename="a.txt")
    async with router.http.post(f"{router.url}/translate_file", data=text) as got:
        assert await got.json() == {"by": "b"}


@pytest.mark.parametrize(
    ("path", "fields", "status", "key"),
    [
        ("/translate_file", {"source": "en", "target": "xx"}, 400, "error"),
        ("/translate_file", {"source": "en"}, 400, "error"),
        ("/v2/document", {"target_lang": "FR"}, 400, "message"),
        ("/v2/document", {}, 400, "message"),
    ],
)
async def test_what_cannot_be_led_anywhere_is_refused_in_the_dialects_words(
    router: Any, path: str, fields: Any, status: int, key: str
) -> None:
    router.serve("a")
    async with router.http.post(router.url + path, data=form(**fields)) as got:
        assert (got.status, key in await got.json()) == (status, True)
    got_status, body, _ = await router.post(path, {"target": "de"})
    assert (got_status, key in body) == (400, True)


async def test_a_file_has_a_bound_of_its_own(start_router: Any, start_upstream: Any, until: Any) -> None:
    router = await start_router(max_file_bytes=1024 * 1024, max_body_bytes=2048)
    router.serve("a", (await start_upstream()).replica())
    async with router.http.post(f"{router.url}/v2/document", data=form(target_lang="DE")) as got:
        assert got.status == 200
    large = aiohttp.FormData({"target_lang": "DE"})
    large.add_field("file", b"x" * 1024 * 1024, filename="a.txt")
    async with router.http.post(f"{router.url}/v2/document", data=large) as got:
        assert (got.status, list(await got.json())) == (413, ["message"])
    await until(lambda: router.state.memory.used_bytes == 0)


async def test_keys_are_required_where_the_apis_require_them(
    start_router: Any, start_upstream: Any, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text("alice-key-1")
    router = await start_router(keys_dir=tmp_path)
    one = await start_upstream()
    router.serve("a", one.replica())
    name = f"{replica_tag('one', '')}{'0' * 20}"
    document = f"{router.url}/v2/document/{name}"
    download = f"{router.url}/download_file/{name[:8]}-{name[8:12]}-8000-8000-000000000000.a_de.txt"
    with_key = {"Authorization": "DeepL-Auth-Key alice-key-1"}
    async with router.http.post(f"{router.url}/translate_file", data=form(**FORM)) as got:
        assert got.status == 403
    async with router.http.post(
        f"{router.url}/translate_file", data=form(**FORM, api_key="alice-key-1")
    ) as got:
        assert got.status == 200
    async with router.http.get(download) as got:
        assert (got.status, await got.json()) == (200, {"by": "one"})
    async with router.http.post(document, data={"document_key": "k"}) as got:
        assert (got.status, list(await got.json())) == (403, ["message"])
    async with router.http.post(f"{document}/result", data={"document_key": "k"}, headers=with_key) as got:
        assert got.status == 200
    assert one.received[-1].body == b"document_key=k"
    assert "x-dragoman-router" not in one.received[-1].headers, "it would take a confirmed drain back"


async def test_a_document_of_no_replica_is_not_found(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    router.serve("b", (await start_upstream("two")).replica())
    known = f"{replica_tag('one', '')}{'0' * 20}"
    for path in (f"/v2/document/{'0' * 32}", "/v2/document/x", f"/d/default/b/v2/document/{known}/result"):
        status, body, _ = await router.post(path, {"document_key": "k"})
        assert (status, body) == (404, {"message": NOT_FOUND})
    status, body, _ = await router.get("/download_file/none")
    assert (status, list(body)) == (404, ["error"])
    status, body, headers = await router.post(f"/d/default/a/v2/document/{known}", {"document_key": "k"})
    assert (status, body, headers["X-Dragoman-Route"]) == (200, {"by": "one"}, "document")
    assert len(one.received) == 1


async def test_a_kept_connection_that_was_closed_costs_no_document(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    known = f"{replica_tag('one', '')}{'0' * 20}"

    async def then_reset(exchange: Any) -> None:
        await exchange.answer({"by": "one"})
        await exchange.writer.drain()
        exchange.writer.transport.abort()

    one.script = then_reset
    for _ in range(10):
        assert (await router.post(f"/v2/document/{known}", {"document_key": "k"}))[:2] == (200, {"by": "one"})
    assert router.state.fleet.backends["default/a"].in_flight == 0


async def test_a_large_result_is_streamed(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    go_on = asyncio.Event()

    async def half(exchange: Any) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n" + b"x" * 100_000)
        await go_on.wait()
        await exchange.write(b"y" * 100_000)

    one.script = half
    path = f"/v2/document/{replica_tag('one', '')}{'0' * 20}/result"
    async with router.http.post(router.url + path, data={"document_key": "k"}) as got:
        async with asyncio.timeout(5):
            assert await got.content.readexactly(100_000) == b"x" * 100_000
        go_on.set()
        assert await got.content.read() == b"y" * 100_000
