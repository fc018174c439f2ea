import asyncio
import json
from collections.abc import Mapping

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.lines import MAX_BATCH_CHARACTERS, batches, one_line, split, translate_lines
from dragoman.translator import RefusedError, Translator, Wanted

WANTED = Wanted("en", "de")


@given(st.text(st.sampled_from("ab \n\r\u2028\x0b")))
def test_lines_and_their_ends_are_the_text(text: str) -> None:
    lines, ends = split(text)
    assert "".join(line + end for line, end in zip(lines, ends, strict=True)) == text
    assert not any("\n" in line or "\r" in line for line in lines)


def test_a_last_line_without_an_end_and_one_with() -> None:
    assert split("a\r\nb") == (["a", "b"], ["\r\n", ""])
    assert split("a\rb") == (["a", "b"], ["\r", ""])
    assert split("") == ([], [])
    assert split("a\nb\n") == (["a", "b"], ["\n", "\n"])


@pytest.mark.parametrize(
    ("line", "translation", "expected"),
    [("a", "x\ny", "x y"), ("a", "x  y", "x  y"), ("a\nb", "x\ny", "x\ny")],
)
def test_a_line_stays_one_line(line: str, translation: str, expected: str) -> None:
    assert one_line(line, translation) == expected


def test_batches_are_bounded_by_lines_and_by_characters() -> None:
    long = "x" * MAX_BATCH_CHARACTERS
    lines = [(0, "a"), (1, "b"), (2, "c"), (3, long), (5, long), (6, "d")]
    assert [[*batch] for batch in batches(lines, 2)] == [[0, 1], [2], [3], [5], [6]]


class Service:
    """Capitals; `bad` is too long; counts what is in flight."""

    def __init__(self, refuse: httpx.Response | None = None) -> None:
        self.in_flight = self.most = 0
        self.requests: list[list[str]] = []
        self._refuse = refuse

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["text"]
        self.requests.append(texts)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        if self._refuse is not None:
            return self._refuse
        if "bad" in texts:
            return httpx.Response(413, json={"error": {"code": "text_too_long", "message": "long"}})
        return httpx.Response(200, json={"translation": [text.upper() for text in texts]})


async def run(
    service: Service, lines: list[str], wanted: Wanted = WANTED, concurrency: int = 3
) -> tuple[dict[int, str], dict[int, RefusedError]]:
    done: dict[int, str] = {}

    async def keep(finished: Mapping[int, str]) -> None:
        assert not done.keys() & finished.keys()
        done.update(finished)

    async with httpx.AsyncClient(transport=httpx.MockTransport(service), base_url="http://pod/") as http:
        failed = await translate_lines(
            Translator(http, 1), wanted, enumerate(lines), keep, max_lines=4, concurrency=concurrency
        )
    return done, failed


async def test_each_line_is_translated_once_and_several_batches_at_a_time() -> None:
    service = Service()
    lines = [f"line {number}" for number in range(50)]
    done, failed = await run(service, lines)
    assert [done[number] for number in range(50)] == [line.upper() for line in lines]
    assert failed == {}
    assert service.most == 3
    assert sorted(text for texts in service.requests for text in texts) == sorted(lines)


async def test_a_line_that_fails_does_not_take_its_batch_along() -> None:
    done, failed = await run(Service(), ["a", "bad", "c", "d", "e"])
    assert done == {0: "A", 2: "C", 3: "D", 4: "E"}
    assert failed.keys() == {1}


async def test_what_every_line_would_be_refused_for_ends_it() -> None:
    service = Service(httpx.Response(403, json={"error": {"code": "key_refused", "message": "unknown key"}}))
    with pytest.raises(RefusedError, match="403: unknown key"):
        await run(service, ["a"] * 100, concurrency=1)
    assert len(service.requests) == 1


async def test_a_detected_language_that_is_not_served_is_of_its_line() -> None:
    refusal = httpx.Response(422, json={"error": {"code": "unsupported_pair", "message": "fi to de"}})
    _, failed = await run(Service(refusal), ["a"], Wanted(None, "de"))
    assert failed.keys() == {0}
    with pytest.raises(RefusedError):
        await run(Service(refusal), ["a"])
