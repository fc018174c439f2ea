"""Documents that are translated after their upload was answered, and the stages before their translation."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dragoman_contract.routing import REFUSED_HEADER
from dragoman_service.core import admission
from dragoman_service.core.admission import Reason, Refusal
from dragoman_service.core.costs import Cost, cost_of
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.files import parsing
from dragoman_service.files.parsing import FileParser
from dragoman_service.http.app import create_app
from dragoman_service.http.files import FileWork
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.pipeline import MAX_FILES
from dragoman_service.settings import Settings

LIMIT_S = 10.0
UPLOADS = {
    "/documents": {"source_lang": "en", "target_lang": "de"},
    "/v2/document": {"source_lang": "EN", "target_lang": "DE"},
    "/translate_file": {"source": "en", "target": "de"},
}
LARGE = b"The cat sleeps.\n" * 10_000


class Pod:
    def __init__(self, settings: Settings) -> None:
        self.lifecycle, self.registry = Lifecycle(), CollectorRegistry()
        self.engine = ScriptedEngine(Script(), "m", CollectorRegistry())
        app: Any = create_app(settings, self.engine, self.lifecycle, self.registry, None).app
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://pod")

    async def ready(self) -> None:
        await self.engine.load(lambda _: None)
        self.lifecycle.ready()

    async def upload(self, path: str = "/documents", content: bytes = b"Hello") -> httpx.Response:
        return await self.http.post(path, data=UPLOADS[path], files={"file": ("a.txt", content)})

    def outcomes(self) -> dict[str, float]:
        return {
            sample.labels["outcome"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == "dragoman_requests_total"
        }


@pytest.fixture
async def pod(make_settings: Callable[..., Settings]) -> AsyncIterator[Pod]:
    pod = Pod(make_settings())
    async with asyncio.timeout(2 * LIMIT_S), pod.http:
        yield pod
    await pod.engine.aclose()


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Processes for files that never end; set once one runs."""
    running = asyncio.Event()

    async def never(_: bytes) -> bytes:
        running.set()
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(parsing, "_run", never)
    return running


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files that are parsed."""
    names: list[str] = []
    parse = FileParser.parse

    async def recorded(self: FileParser, name: str, content: bytes, target_lang: str) -> Any:
        names.append(name)
        return await parse(self, name, content, target_lang)

    monkeypatch.setattr(FileParser, "parse", recorded)
    return names


@pytest.mark.parametrize("path", UPLOADS)
async def test_a_pod_that_is_not_ready_refuses_a_file_before_it_is_parsed(
    pod: Pod, parsed: list[str], path: str
) -> None:
    refused = await pod.upload(path)
    assert (refused.status_code, refused.headers[REFUSED_HEADER], parsed) == (503, "not_ready", [])
    assert pod.outcomes() == {"not_ready": 1}


@pytest.mark.parametrize("path", UPLOADS)
async def test_a_full_pod_refuses_a_file_before_it_is_parsed(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, parsed: list[str], path: str
) -> None:
    monkeypatch.setattr(admission, "refusal_for", lambda *_: Refusal(Reason.SEQUENCES, 1))
    await pod.ready()
    refused = await pod.upload(path)
    assert (refused.headers.get(REFUSED_HEADER), parsed) == ("overloaded", []), refused.text


async def test_other_requests_are_answered_while_a_large_file_is_parsed(
    pod: Pod, blocked: asyncio.Event
) -> None:
    await pod.ready()
    uploads = [asyncio.create_task(pod.upload(content=LARGE)) for _ in range(MAX_FILES)]
    await blocked.wait()
    assert (await pod.http.get("/health")).status_code == 200
    text = {"text": "Good day. " * 1000, "source_lang": "en", "target_lang": "de"}
    assert (await pod.http.post("/translate", json=text)).status_code == 200
    answers = [await each for each in uploads]
    assert [each.status_code for each in answers] == [202] * MAX_FILES, answers[-1].text
    documents = [each.json() for each in answers]
    assert {each["state"] for each in documents} == {"queued"}
    assert {each["characters"] for each in documents} == {None}
    refused = await pod.upload()
    assert (refused.status_code, refused.headers[REFUSED_HEADER]) == (503, "overloaded"), (
        "as many files as may be"
    )
    for each in documents:
        cancelled = await pod.http.delete(f"/documents/{each['id']}")
        assert cancelled.json()["state"] == "cancelled", cancelled.text
    while pod.lifecycle.in_flight:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await asyncio.sleep(0)  # Their slots are released after their ends.
    again = await pod.upload()
    assert again.status_code == 202, again.text
    assert pod.outcomes()["disconnected"] == MAX_FILES
    assert pod.lifecycle.in_flight == 0


async def test_the_end_of_the_drain_refuses_an_upload_that_is_parsed_and_fails_one_that_was_answered(
    pod: Pod, blocked: asyncio.Event
) -> None:
    await pod.ready()
    answered = (await pod.upload(content=LARGE)).json()
    waiting = asyncio.create_task(pod.upload(content=LARGE))
    blocked.clear()
    await blocked.wait()
    pod.lifecycle.drain()
    pod.lifecycle.give_up()
    refused = await waiting
    assert (refused.status_code, refused.headers[REFUSED_HEADER]) == (503, "draining")
    document = (await pod.http.get(f"/documents/{answered['id']}")).json()
    assert (document["state"], document["error"]["code"]) == ("failed", "draining")


async def test_an_upload_that_is_not_admitted_when_the_drain_ends_is_refused(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def cost(_: FileWork) -> Cost:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(LIMIT_S)
        return cost_of(())

    monkeypatch.setattr(FileWork, "cost", property(cost))
    await pod.ready()
    try:
        answer = asyncio.create_task(pod.upload(content=LARGE[:10_000]))
        await begun.wait()
        pod.lifecycle.drain()
        pod.lifecycle.give_up()
        refused = await answer
    finally:
        go_on.set()
    assert (refused.status_code, refused.headers[REFUSED_HEADER]) == (503, "draining")
    assert pod.lifecycle.in_flight == 0


@pytest.mark.parametrize("path", UPLOADS)
async def test_a_file_is_charged_once(pod: Pod, path: str) -> None:
    await pod.ready()
    assert (await pod.upload(path)).headers["X-Dragoman-Characters"] == "5"
