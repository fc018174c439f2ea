"""Admission counts the generations that the engine starts, by every API and operation; one request's bound holds."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.core.admission import Admission
from dragoman_service.engine.protocol import Chunk, Decoding, Prompt
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http import app as application
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.settings import Settings

WORDS = ("ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
MANY = [f"{one} {other}" for one in WORDS for other in WORDS[:5]]


class CountingEngine(ScriptedEngine):
    """Counts generations; `again` are segments whose first answer is empty, so that they are generated twice."""

    def __init__(self, again: tuple[str, ...] = (), **script: Any) -> None:
        super().__init__(Script(**script), "m", CollectorRegistry())
        self.again = list(again)
        self.started = self.running = self.most = 0
        self.priorities: list[int] = []

    async def generate(
        self, prompt: Prompt, decoding: Decoding, request_id: str, **how: Any
    ) -> AsyncGenerator[Chunk]:
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.priorities.append(how.get("priority", 0))
        try:
            async for chunk in super().generate(prompt, decoding, request_id, **how):
                if prompt.segment in self.again and chunk.finish is not None:
                    self.again.remove(prompt.segment)
                    chunk = Chunk("", chunk.finish, chunk.prompt_tokens, chunk.output_tokens)
                yield chunk
        finally:
            self.running -= 1


@dataclass
class Pod:
    http: httpx.AsyncClient
    engine: CountingEngine
    places: list[Any] = field(default_factory=list)

    @property
    def admitted(self) -> int:
        return sum(place.generations for place in self.places)


@asynccontextmanager
async def pod(monkeypatch: pytest.MonkeyPatch, engine: CountingEngine, **settings: Any) -> AsyncIterator[Pod]:
    """The whole application, without a process of its own."""
    found = Pod(None, engine)  # type: ignore[arg-type]

    class Recording(Admission):
        def admit(self, cost: Any, time_left_s: float) -> Any:
            context = super().admit(cost, time_left_s)
            enter = context.__enter__

            class Kept:
                def __enter__(self) -> Any:
                    place = enter()
                    found.places.append(place)
                    return place

                def __exit__(self, *error: Any) -> Any:
                    return context.__exit__(*error)

            return Kept()

    monkeypatch.setattr(application, "Admission", Recording)
    lifecycle = Lifecycle()
    made = Settings(_cli_parse_args=False, **({"model": "m", "engine": "scripted"} | settings))
    app = application.create_app(made, engine, lifecycle, CollectorRegistry(), None).app
    await engine.load(lambda _: None)
    lifecycle.ready()
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://pod", timeout=60) as http:
        found.http = http
        yield found
    await engine.aclose()


def native(**fields: Any) -> dict[str, Any]:
    body = {"text": WORDS[0], "source_lang": "en", "target_lang": "de"} | fields
    return {"url": "/translate", "json": body}


def chat(**fields: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    return {"url": "/v1/chat/completions", "json": {"model": "m", "messages": messages} | fields}


def libretranslate(**fields: Any) -> dict[str, Any]:
    return {"url": "/translate", "json": {"q": WORDS[0], "source": "en", "target": "de"} | fields}


LINES = "\n".join(WORDS[:5]) + "\n"
FILE = {"file": ("a.txt", LINES.encode())}

OPERATIONS: dict[str, tuple[dict[str, Any], int]] = {
    "native text": (native(), 1),
    "native texts": (native(text=WORDS[:7]), 7),
    "native lines": (native(text=LINES), 5),
    "native alternatives": (native(alternatives=9), 10),
    "native texts with alternatives": (native(text=WORDS[:3], alternatives=2), 9),
    "native stream": (native(stream=True), 1),
    "libretranslate text": (libretranslate(), 1),
    "libretranslate texts": (libretranslate(q=WORDS[:4]), 4),
    "libretranslate alternatives": (libretranslate(alternatives=9), 10),
    "libretranslate file": (
        {"url": "/translate_file", "data": {"source": "en", "target": "de"}, "files": FILE},
        5,
    ),
    "deepl texts": (
        {"url": "/v2/translate", "json": {"text": WORDS[:3], "source_lang": "EN", "target_lang": "DE"}},
        3,
    ),
    "deepl document": (
        {"url": "/v2/document", "data": {"source_lang": "EN", "target_lang": "DE"}, "files": FILE},
        5,
    ),
    "google texts": (
        {"url": "/language/translate/v2", "json": {"q": WORDS[:3], "source": "en", "target": "de"}},
        3,
    ),
    "azure texts and targets": (
        {
            "url": "/translate?api-version=3.0&from=en&to=de&to=fr",
            "json": [{"Text": word} for word in WORDS[:3]],
        },
        6,
    ),
    "azure targets of each text": (
        {
            "url": "/translate?api-version=2026-06-06",
            "json": {
                "inputs": [
                    {"text": "ant", "language": "en", "targets": [{"language": "de"}]},
                    {"text": "bee", "language": "en", "targets": [{"language": "de"}, {"language": "fr"}]},
                ]
            },
        },
        3,
    ),
    "openai chat": (chat(), 1),
    "openai chat stream": (chat(stream=True), 1),
    "openai translation": (chat(translation_options={"source_lang": "en", "target_lang": "de"}), 1),
    "nothing to translate": (libretranslate(q=" "), 0),
}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_as_many_generations_are_admitted_as_are_started(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    request, generations = OPERATIONS[operation]
    async with pod(monkeypatch, CountingEngine()) as there:
        answer = await there.http.post(**request)
        assert answer.status_code == 200, answer.text
        assert (there.admitted, there.engine.started) == (generations, generations)


@pytest.mark.parametrize(
    "operation", ["native texts", "native alternatives", "deepl document", "google texts"]
)
async def test_a_retry_is_counted_too(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    request, generations = OPERATIONS[operation]
    async with pod(monkeypatch, CountingEngine(again=(WORDS[0],))) as there:
        assert (await there.http.post(**request)).status_code == 200
        assert (there.admitted, there.engine.started) == (generations + 1, generations + 1)


@pytest.mark.parametrize(
    "request_",
    [
        native(text=MANY, alternatives=3),
        libretranslate(q=MANY, alternatives=2),
        {
            "url": "/translate?api-version=3.0&from=en&to=de&to=fr&to=it&to=es",
            "json": [{"Text": text} for text in MANY],
        },
        {
            "url": "/v2/document",
            "data": {"source_lang": "EN", "target_lang": "DE"},
            "files": {"file": ("a.txt", "\n".join(MANY).encode())},
        },
    ],
    ids=["alternatives", "alternatives of libretranslate", "targets", "document"],
)
async def test_one_request_has_a_bound_in_the_engine(
    monkeypatch: pytest.MonkeyPatch, request_: dict[str, Any]
) -> None:
    # Twice `--max-num-seqs`, at most 128: docs/explanation/text.md.
    engine = CountingEngine(max_num_seqs=16, token_s=0.0005)
    async with pod(monkeypatch, engine, max_num_seqs=16) as there:
        answer = await there.http.post(**request_)
        assert answer.status_code == 200, answer.text
        assert 16 < engine.most <= 32


async def test_alternatives_take_places_as_requests_do(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CountingEngine(max_num_seqs=4, token_s=0.2)
    async with pod(monkeypatch, engine, max_queued_sequences=4) as there:
        first = asyncio.create_task(there.http.post(**native(alternatives=7)))
        async with asyncio.timeout(10):
            while engine.started < 8:  # noqa: ASYNC110 - what is waited for sets no event
                await asyncio.sleep(0)
        refused = await there.http.post(**native(text="bee"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
        assert (await first).status_code == 200
        assert (await there.http.post(**native(text="cow"))).status_code == 200


async def test_a_chat_waits_as_its_length_asks_for_where_short_ones_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = CountingEngine()
    async with pod(monkeypatch, engine, scheduling_policy="shortest") as there:
        for request in (native(text="ant " * 20), chat(), chat(max_tokens=1)):
            assert (await there.http.post(**request)).status_code == 200
        translation, any_length, short = engine.priorities
        assert any_length > translation + 1000
        assert 0 < short < any_length


@pytest.mark.parametrize(
    ("request_", "status", "expected"),
    [
        (OPERATIONS["native texts"][0], 422, {"error": {"code": "invalid_field"}}),
        (OPERATIONS["libretranslate texts"][0], 400, {"error": "Invalid request"}),
        (OPERATIONS["deepl texts"][0], 400, {"message": "Too many texts"}),
        (OPERATIONS["google texts"][0], 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT"}}),
        (OPERATIONS["azure texts and targets"][0], 400, {"error": {"code": 400072}}),
        (OPERATIONS["azure targets of each text"][0], 400, {"error": {"code": "400072"}}),
        (
            {"url": "/language/translate/v2/detect", "json": {"q": ["a", "b"]}},
            400,
            {"error": {"code": 400}},
        ),
        (
            {"url": "/detect?api-version=3.0", "json": [{"Text": "a"}, {"Text": "b"}]},
            400,
            {"error": {"code": 400072}},
        ),
    ],
)
async def test_one_bound_of_texts_holds_in_all_apis(
    monkeypatch: pytest.MonkeyPatch, request_: dict[str, Any], status: int, expected: dict[str, Any]
) -> None:
    async with pod(monkeypatch, CountingEngine(), max_texts=1) as there:
        answer = await there.http.post(**request_)
        assert answer.status_code == status, answer.text
        assert _holds(answer.json(), expected), json.dumps(answer.json())
        assert there.engine.started == 0


def _holds(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_holds(found[name], value) for name, value in expected.items())
    return found.startswith(expected) if isinstance(expected, str) else bool(found == expected)
