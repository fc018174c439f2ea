import itertools
from collections.abc import Iterator

import httpx
import pytest

from dragoman import translator
from dragoman.translator import RefusedError, Translator, UnreachableError, Wanted

WANTED = Wanted("en", "de")
BUSY = httpx.Response(
    503, headers={"Retry-After": "2"}, json={"error": {"code": "overloaded", "message": "busy"}}
)
DONE = httpx.Response(200, json={"translation": ["Hallo"]})


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Sleeps take no time, but move the clock; what they were is in the list."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("dragoman.translator.asyncio.sleep", sleep)
    monkeypatch.setattr("dragoman.translator.time.monotonic", lambda: 100.0 + sum(slept))
    return slept


async def ask(answers: Iterator[httpx.Response | Exception], patience_s: float = 60) -> list[str]:
    def handle(_: httpx.Request) -> httpx.Response:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    async with httpx.AsyncClient(transport=httpx.MockTransport(handle), base_url="http://pod/") as http:
        return await Translator(http, patience_s).texts(["Hello"], WANTED)


async def test_overload_passes_and_its_retry_after_is_heeded(clock: list[float]) -> None:
    assert await ask(iter([BUSY, DONE])) == ["Hallo"]
    assert clock == [2.0]


async def test_a_connection_that_breaks_is_tried_again(clock: list[float]) -> None:
    assert await ask(iter([httpx.ReadError("reset"), DONE])) == ["Hallo"]
    assert clock == [translator.FIRST_DELAY_S]


async def test_patience_ends(clock: list[float]) -> None:
    with pytest.raises(UnreachableError, match=r"has not translated for .* s: 503: busy"):
        await ask(itertools.repeat(BUSY), patience_s=30)
    assert sum(clock) <= 30


async def test_an_address_where_nothing_is_ends_it_at_once(clock: list[float]) -> None:
    with pytest.raises(UnreachableError, match="http://pod/ cannot be reached"):
        await ask(itertools.repeat(httpx.ConnectError("refused")))
    assert clock == []


@pytest.mark.parametrize(
    "error", [httpx.UnsupportedProtocol("no scheme"), httpx.LocalProtocolError("header")]
)
async def test_a_request_that_cannot_be_sent_is_not_tried_again(error: Exception, clock: list[float]) -> None:
    with pytest.raises(UnreachableError, match=f"http://pod/ cannot be reached: {error}"):
        await ask(iter([error]))
    assert clock == []


@pytest.mark.parametrize("code", ["quota_exceeded"])
async def test_a_quota_does_not_pass(code: str, clock: list[float]) -> None:
    refusal = httpx.Response(429, json={"error": {"code": code, "message": "used up"}})
    with pytest.raises(RefusedError, match="429: used up"):
        await ask(iter([refusal]))
    assert clock == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"translation": []}', b'{"translation": "Hallo"}'])
async def test_an_address_of_something_else_is_named(body: bytes) -> None:
    with pytest.raises(RefusedError, match="http://pod/ did not answer as Dragoman does") as caught:
        await ask(iter([httpx.Response(200, content=body)]))
    assert not caught.value.is_of_the_text


async def test_a_response_that_takes_too_long_is_a_timeout() -> None:
    with pytest.raises(RefusedError) as caught:
        await ask(iter([httpx.ReadTimeout("")]))
    assert caught.value.is_of_the_text


async def test_a_document_that_was_not_translated_says_why() -> None:
    answers = iter(
        [
            {"id": "ID", "state": "queued"},
            {"id": "ID", "state": "translating"},
            {"id": "ID", "state": "failed", "error": {"code": "broken_file", "message": "no such language"}},
        ]
    )
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(answers)))
    async with httpx.AsyncClient(transport=transport, base_url="http://pod/") as http:
        with pytest.raises(RefusedError, match="no such language"):
            await Translator(http, 60).document("a.docx", b"", WANTED)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}"])
@pytest.mark.parametrize("before", [[], [b'{"id": "ID", "state": "queued"}']])
async def test_an_address_that_takes_no_documents_is_named(before: list[bytes], body: bytes) -> None:
    answers = iter([*before, body])
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=next(answers)))
    async with httpx.AsyncClient(transport=transport, base_url="http://pod/") as http:
        with pytest.raises(RefusedError, match="http://pod/ did not answer as Dragoman does"):
            await Translator(http, 60).document("a.docx", b"", WANTED)


async def test_a_result_whose_delivery_breaks_is_fetched_again() -> None:
    requests: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(f"{request.method} {request.url.path}")
        if request.url.path != "/documents/ID/result":
            return httpx.Response(202, json={"id": "ID", "state": "done", "findings": {}})
        if len(requests) < 3:
            raise httpx.RemoteProtocolError("peer closed connection")
        return httpx.Response(200, content=b"result")

    async with httpx.AsyncClient(transport=httpx.MockTransport(handle), base_url="http://pod/") as http:
        translated = await Translator(http, 60).document("a.docx", b"", WANTED)
    assert translated.content == b"result"
    assert requests == ["POST /documents", "GET /documents/ID/result", "GET /documents/ID/result"]
