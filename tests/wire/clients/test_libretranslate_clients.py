"""LibreTranslate's clients from PyPI, unmodified, each method that they have for what is served."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslatepy import LibreTranslateAPI

ENGLISH, FRENCH = "Where is the swimming pool?", "Où est la piscine ?"
GERMAN, IN_ENGLISH = "Öffnet der Park um sechs Uhr?", "Does the park open at six o'clock?"


@contextmanager
def refused(status: int) -> Iterator[dict[str, Any]]:
    """The body of the error with which urllib has to end."""
    message: dict[str, Any] = {}
    with pytest.raises(HTTPError) as caught:
        yield message
    with caught.value as answer:
        assert answer.status == status
        message.update(json.load(answer))


@pytest.fixture
def busy(start_scripted: Callable[..., Any]) -> Iterator[Any]:
    """A pod that has taken on all that it may."""
    pod = start_scripted("--max-queued-sequences", "0", max_num_seqs=1, first_token_s=60)
    pod.wait_for("/readyz")
    body = b'{"text": "wait", "source_lang": "en", "target_lang": "de"}'
    with socket.create_connection(("127.0.0.1", pod.port)) as asking:
        asking.sendall(
            b"POST /translate HTTP/1.1\r\nHost: pod\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        pod.wait_for_metric("vllm:num_requests_running", 1)
        yield pod


class Libretranslatepy:
    """2.1.4: forms, and GET with a body."""

    client = LibreTranslateAPI


class Argostranslate:
    """1.11.0: forms, and POST for the languages. Installed without its dependencies, its API class works."""

    @property
    def client(self) -> Any:
        return pytest.importorskip("argostranslate.apis").LibreTranslateAPI


@pytest.fixture(params=[Libretranslatepy, Argostranslate])
def client(request: pytest.FixtureRequest) -> Any:
    """A class of clients that share an interface."""
    return request.param().client


@pytest.mark.parametrize("api_key", [None, "a key that is not required"])
def test_a_text_is_translated(demo_pod: Any, client: Any, api_key: str | None) -> None:
    assert client(demo_pod.url, api_key).translate(ENGLISH, "en", "fr") == FRENCH
    assert client(f"{demo_pod.url}/", api_key).translate(GERMAN, "auto", "en") == IN_ENGLISH


def test_a_language_is_detected(demo_pod: Any, client: Any) -> None:
    (found,) = client(demo_pod.url).detect(GERMAN)
    assert found["language"] == "de"
    assert 50 < found["confidence"] <= 100


@pytest.mark.parametrize("api_key", [None, "a key"])
def test_the_languages_are_listed(demo_pod: Any, client: Any, api_key: str | None) -> None:
    listed = {each["code"]: each for each in client(demo_pod.url, api_key).languages()}
    assert listed["en"] == {"code": "en", "name": "English", "targets": ["fr", "de", "ne"]}
    assert set(listed) == {"en", "fr", "de"}


def test_an_error_comes_with_its_status_and_its_reason(demo_pod: Any, client: Any) -> None:
    with refused(400) as message:
        client(demo_pod.url).translate(ENGLISH, "en", "es")
    assert message == {"error": "es is not supported"}
    with refused(400) as message:
        client(demo_pod.url).translate("", "en", "fr")
    assert message == {"error": "Invalid request: missing q parameter"}
    with refused(400) as message:
        client(demo_pod.url).detect("")
    assert message == {"error": "Invalid request: missing q parameter"}


def test_chinese_and_brazilian_by_their_old_names(scripted_pod: Any, client: Any) -> None:
    requested = client(scripted_pod.url)
    assert {requested.translate("abc", "en", code) for code in ("zh", "zt", "pb", "zh-Hant", "pt-BR")} == {
        "cba"
    }
    listed = {each["code"] for each in requested.languages()}
    assert {"zh-Hans", "zh-Hant", "pt-BR"} <= listed
    assert not {"zh", "zt", "pb"} & listed


def test_a_full_pod_responds_slow_down(busy: Any, client: Any) -> None:
    with refused(429) as message:
        client(busy.url).translate(ENGLISH, "en", "fr")
    assert message["error"].startswith("Slowdown: ")


def test_libretranslatepy_ends_a_request_at_its_timeout(start_served: Callable[..., Any]) -> None:
    slow = start_served(first_token_s=60)
    slow.wait_for("/readyz")
    with pytest.raises(TimeoutError):
        LibreTranslateAPI(slow.url).translate(ENGLISH, "en", "fr", timeout=1)
    slow.wait_for_metric("vllm:num_requests_running", 0)


def test_argostranslate_s_request_for_languages_as_it_sends_it(scripted_pod: Any) -> None:
    requested = Request(f"{scripted_pod.url}/languages", data=urlencode({"api_key": "a key"}).encode())
    assert requested.get_method() == "POST"
    with urlopen(requested) as answer:
        assert {"code", "name", "targets"} == set(json.load(answer)[0])


def deep(pod: Any, source: str = "en", target: str = "fr") -> LibreTranslator:
    return LibreTranslator(source=source, target=target, api_key="a key", custom_url=f"{pod.url}/")


def test_deep_translator_translates_a_text(demo_pod: Any) -> None:
    assert deep(demo_pod).translate(ENGLISH) == FRENCH
    assert deep(demo_pod, "German", "English").translate(GERMAN) == IN_ENGLISH
    assert deep(demo_pod, "auto", "English").translate(GERMAN) == IN_ENGLISH


def test_deep_translator_translates_texts_and_a_file(demo_pod: Any, tmp_path: Path) -> None:
    assert deep(demo_pod).translate_batch([ENGLISH, "The cat sleeps."]) == [FRENCH, "Le chat dort."]
    file = tmp_path / "text.txt"
    file.write_text(ENGLISH)
    assert deep(demo_pod).translate_file(str(file)) == FRENCH


def test_deep_translator_s_long_texts_fit_a_query(scripted_pod: Any) -> None:
    text = "ä & b = c + d % e\n" * 1000
    answer = deep(scripted_pod).translate(text)
    assert len(answer) == len(text)
    assert answer.count("ä") == 1000


def test_deep_translator_learns_of_errors(demo_pod: Any, busy: Any) -> None:
    with pytest.raises(ServerException, match="ERR_BAD_REQUEST"):
        deep(demo_pod, target="es").translate(ENGLISH)
    with pytest.raises(ServerException, match="ERR_TOO_MANY_REQUESTS"):
        deep(busy).translate(ENGLISH)
