"""Every kind of bad input: its status, its words, and a pod that lives on."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman_contract.models import PROMPT_FAMILIES

GOOD = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory, pod_process: Any) -> Iterator[Any]:
    served = pod_process(
        tmp_path_factory.mktemp("pod"),
        *("--model", "org/model", "--engine", "scripted", "--max-model-len", "512"),
        *("--languages", '[{"source":"en","targets":["de","fr"]}]'),
    )
    try:
        served.wait_for("/readyz")
        yield served
    finally:
        served.close()


@pytest.fixture(autouse=True)
def _lives_on(pod: Any) -> Iterator[None]:
    yield
    answer = pod.translate("still here")
    assert (answer.status_code, answer.json()) == (200, {"translation": "ereh llits"})
    pod.wait_for_metric("dragoman_requests_in_flight", 0)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert list(document) == ["error"]
    assert sorted(document["error"]) == ["code", "message"]
    return answer.status_code, document["error"]["code"], document["error"]["message"]


def post(pod: Any, **fields: Any) -> tuple[int, str, str]:
    return refusal(pod.client.post("/translate", json=GOOD | fields))


def test_an_unknown_pair(pod: Any) -> None:
    status, code, message = post(pod, target_lang="ne")
    assert (status, code) == (422, "unsupported_pair")
    assert message == "en to ne is not served here; targets are de, fr"


@pytest.mark.parametrize(
    ("fields", "refused", "message"),
    [
        ({"target_lang": "klingonish"}, (422, "unknown_language"), ""),
        ({"text": ""}, (400, "empty_text"), ""),
        ({"text": "   \n"}, (400, "empty_text"), ""),
        ({"text": []}, (400, "empty_text"), ""),
        ({"text": ["a", ""]}, (400, "empty_text"), ""),
        ({"text": 7}, (422, "invalid_field"), "text must be a string"),
        ({"text": ["a", 7]}, (422, "invalid_field"), "text[1] must be a string"),
        ({"source_lang": 7}, (422, "invalid_field"), "source_lang must be a string"),
        ({"text": "x" * 10_000_000}, (413, "body_too_large"), "1048576 bytes"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_fields_that_are_refused(
    pod: Any, fields: dict[str, Any], refused: tuple[int, str], message: str
) -> None:
    *found, reason = post(pod, **fields)
    assert tuple(found) == refused
    assert message in reason


def test_a_text_over_the_model_s_length(pod: Any) -> None:
    status, code, message = post(pod, text="long " * 1000, split="none")
    assert (status, code) == (413, "text_too_long")
    assert "1268 tokens" in message
    assert "512" in message


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"text=Hello", b'{"text": "a",}', json.dumps(GOOD).encode().replace(b"Hello", b"H\xe9llo")],
)
def test_bodies_that_are_not_json_in_utf8(pod: Any, body: bytes) -> None:
    assert refusal(pod.client.post("/translate", content=body))[:2] == (400, "malformed_request")


def test_a_body_of_10_mb_in_chunks_without_a_length(pod: Any) -> None:
    answer = pod.client.post("/translate", content=(b"x" * 100_000 for _ in range(100)))
    assert refusal(answer)[:2] == (413, "body_too_large")


def test_a_large_body_is_not_held_in_memory(pod: Any) -> None:
    def resident_bytes() -> int:
        status = Path(f"/proc/{pod.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    before = resident_bytes()
    answer = pod.client.post("/translate", content=(b"x" * 1_000_000 for _ in range(50)))
    assert answer.status_code == 413
    assert resident_bytes() - before < 20_000_000


def test_a_body_that_breaks_off(pod: Any) -> None:
    with socket.create_connection(("127.0.0.1", pod.port)) as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    pod.wait_for_metric("dragoman_requests_in_flight", 0)


def test_no_http_at_all(pod: Any) -> None:
    with socket.create_connection(("127.0.0.1", pod.port)) as connection:
        connection.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/translate", 405, "method_not_allowed"), ("POST", "/nowhere", 404, "not_found")],
)
def test_other_routes(pod: Any, method: str, path: str, status: int, code: str) -> None:
    assert refusal(pod.client.request(method, path))[:2] == (status, code)


def test_refusals_are_counted_by_code(pod: Any) -> None:
    post(pod, text="")
    lines = pod.client.get("/metrics").text.splitlines()
    assert any('outcome="empty_text",source="' in line for line in lines)


def test_the_openapi_document_describes_the_request(pod: Any) -> None:
    document = pod.client.get("/openapi.json").json()
    schema = document["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    required = {option.get("title"): option.get("required") for option in schema["anyOf"]}
    assert required["TranslateRequest"] == ["text", "target_lang"]


@pytest.mark.parametrize("family", [name for name in PROMPT_FAMILIES if name != "custom"])
def test_every_family_serves(start_scripted: Any, family: str) -> None:
    pod = start_scripted("--prompt-family", family)
    pod.wait_for("/readyz")
    assert pod.translate("Hi").json() == {"translation": "iH"}
