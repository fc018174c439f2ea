"""An exception that the router does not foresee: logged, counted, answered in the API's own error format."""

import logging
from typing import Any

import pytest

TEXT = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


def defects(router: Any) -> float:
    return float(router.state.metrics.registry.get_sample_value("dragoman_router_internal_errors_total"))


def broken(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("a defect of a test")


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (
            "/translate",
            TEXT,
            {"error": {"code": "internal_error", "message": "a defect; the router's log has more"}},
        ),
        (
            "/v2/translate",
            {"text": ["x"], "target_lang": "DE"},
            {"message": "a defect; the router's log has more"},
        ),
    ],
)
async def test_before_the_answer(
    router: Any, start_upstream: Any, caplog: pytest.LogCaptureFixture, path: str, body: object, error: object
) -> None:
    router.serve("one", (await start_upstream()).replica())
    offer, router.state.fleet.catalogue.offer = router.state.fleet.catalogue.offer, broken
    status, answer, _ = await router.post(path, body)
    assert (status, answer) == (500, error)
    assert (defects(router), router.state.active, router.state.memory.used_bytes) == (1, 0, 0)
    (logged,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert "ZeroDivisionError: a defect of a test" in caplog.text
    assert logged.exc_info
    router.state.fleet.catalogue.offer = offer
    assert (await router.translate())[0] == 200


async def test_while_a_slot_is_held(
    router: Any, start_upstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await start_upstream()
    router.serve("one", one.replica())
    backend = router.state.fleet.backends["default/one"]
    monkeypatch.setattr("dragoman_router.http.proxy.refusal_of", broken)

    async def busy(exchange: Any) -> None:
        await exchange.answer({}, 503)

    one.script = busy
    assert (await router.translate())[0] == 500
    (endpoint,) = backend.endpoints.values()
    assert (backend.in_flight, endpoint.in_flight, router.state.active, defects(router)) == (0, 0, 0, 1)


async def test_in_the_middle_of_an_answer_the_connection_ends(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()

    async def begun(exchange: Any) -> None:
        await exchange.write(b"HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000)

    one.script = begun
    router.serve("one", one.replica())
    body = b'{"text": "x", "source_lang": "en", "target_lang": "de"}'
    original = router.state.proxy.answer

    async def answer(job: Any) -> Any:
        answered = await original(job)
        next_chunk = answered.reply.next_chunk
        chunks: list[bytes] = []

        class Reply:
            """The answer, whose second part is a defect."""

            def __getattr__(self, name: str) -> Any:
                return getattr(answered.reply, name)

            async def next_chunk(self) -> bytes:
                if chunks:
                    broken()
                chunks.append((await next_chunk())[:10])
                return chunks[0]

        answered_reply = Reply()
        return type(answered)(answered_reply, answered.backend, answered.endpoint, answered.connection)

    router.state.proxy.answer = answer
    got = await router.raw(
        b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    )
    assert b"500" not in got
    assert len(got) < 100_000
    backend = router.state.fleet.backends["default/one"]
    assert (backend.in_flight, router.state.active, defects(router)) == (0, 0, 1)
