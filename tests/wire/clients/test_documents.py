"""Files at `/documents`, and deliveries that break, in every API that has files."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from dragoman import translate
from dragoman.exits import DONE

LIMIT_S = 20.0
LANGS = {"source_lang": "en", "target_lang": "de"}
LARGE = "The cat sleeps here now.\n" * 60_000
"""1.5 MB: more than socket buffers take."""

ALTERNATIVE = Path(__file__).parents[2] / "unit/service/files/packages/altchunk.docx"
"""All of its text is an HTML document within it."""


def upload(pod: Any, content: str | bytes = "Good day", name: str = "a.txt", **fields: Any) -> httpx.Response:
    form = LANGS | fields
    answer: httpx.Response = pod.client.post("/documents", data=form, files={"file": (name, content)})
    return answer


def ended(pod: Any, document: Any) -> Any:
    end_s = time.monotonic() + LIMIT_S
    while document["state"] in ("queued", "translating"):
        assert time.monotonic() < end_s, document
        document = pod.client.get(f"/documents/{document['id']}").json()
    return document


def test_a_file_is_translated_and_fetched_as_often_as_it_takes(scripted_pod: Any) -> None:
    answer = upload(scripted_pod, "Good day\n", "Brief für dich.txt")
    document = ended(scripted_pod, answer.json())
    assert answer.status_code == 202
    assert document == {
        "id": document["id"],
        "state": "done",
        "name": "Brief für dich.txt",
        "characters": 9,
        "progress": 1.0,
        **LANGS,
        "findings": {},
        "expires_at": document["expires_at"],
    }
    for _ in range(2):
        result = scripted_pod.client.get(f"/documents/{document['id']}/result")
        assert (result.status_code, result.text) == (200, "yad dooG\n")
        assert result.headers["content-type"] == "text/plain"
        assert result.headers["content-disposition"].startswith("attachment; filename=")
    deleted = scripted_pod.client.delete(f"/documents/{document['id']}")
    assert (deleted.status_code, deleted.json()["state"]) == (200, "cancelled")
    assert scripted_pod.client.get(f"/documents/{document['id']}/result").status_code == 409


@pytest.mark.parametrize(
    ("content", "name", "findings"),
    [
        ("12.5 + 3\n", "a.txt", {"nothing_to_translate": 1}),
        ("", "a.txt", {"nothing_to_translate": 1}),
        (ALTERNATIVE.read_bytes(), "a.docx", {"nothing_to_translate": 1, "parts_left": 1}),
    ],
)
def test_a_document_says_what_was_left(
    scripted_pod: Any, content: str | bytes, name: str, findings: dict[str, int]
) -> None:
    found = ended(scripted_pod, upload(scripted_pod, content, name).json())
    assert (found["state"], found["findings"]) == ("done", findings)


def test_tags_stay_as_they_were_given_and_the_source_is_detected(scripted_pod: Any) -> None:
    text = "The weather is nice today, and the cat sleeps."
    found = ended(scripted_pod, upload(scripted_pod, text, source_lang="auto", target_lang="zh-Hant").json())
    assert (found["source_lang"], found["target_lang"]) == ("en", "zh-Hant")


def test_a_glossary_applies(scripted_pod: Any) -> None:
    glossary = {"name": "Art", **LANGS, "entries": "artist\tMaler", "entries_format": "tsv"}
    made = scripted_pod.client.post("/v2/glossaries", json=glossary).json()["glossary_id"]
    for source in ("en", "auto"):
        uploaded = upload(scripted_pod, "The artist sings a song.", glossary_id=made, source_lang=source)
        # The scripted model ignores terms.
        assert ended(scripted_pod, uploaded.json())["findings"]["glossary"] == 1
    assert scripted_pod.client.delete(f"/v2/glossaries/{made}").status_code == 204


@pytest.mark.parametrize(
    ("name", "fields", "status", "code"),
    [
        ("a.docx", {}, 422, "broken_file"),
        ("a.xyz", {}, 422, "unsupported_file"),
        ("a.txt", {"target_lang": "???"}, 422, "unknown_language"),
        ("a.txt", {"formality": "loud"}, 422, "invalid_field"),
    ],
)
def test_what_cannot_be_translated_is_refused_at_once(
    scripted_pod: Any, name: str, fields: dict[str, str], status: int, code: str
) -> None:
    answer = upload(scripted_pod, name=name, **fields)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("path", ["/documents/x", f"/documents/{'0' * 32}", f"/documents/{'0' * 32}/result"])
def test_a_document_that_is_not_there_is_not_found(scripted_pod: Any, path: str) -> None:
    answer = scripted_pod.client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_document")


def test_a_document_reports_its_progress_and_is_cancelled(start_served: Any) -> None:
    pod = start_served("--max-num-seqs", "4", first_token_s=1)
    pod.wait_for("/readyz")
    text = "".join(f"Line {letter} is here.\n" for letter in "abcdefghijklmnopqrstuvwxyz")
    document = upload(pod, text).json()
    assert document["state"] == "translating"
    assert (
        pod.client.get(f"/documents/{document['id']}/result").json()["error"]["code"] == "document_not_done"
    )
    end_s = time.monotonic() + LIMIT_S
    while "seconds_remaining" not in document:
        assert time.monotonic() < end_s
        document = pod.client.get(f"/documents/{document['id']}").json()
    assert 0 < document["progress"] < 1
    cancelled = pod.client.delete(f"/documents/{document['id']}")
    assert cancelled.json()["state"] == "cancelled"
    # What was translated is charged for.
    assert -len(text) < int(cancelled.headers["x-dragoman-characters"]) < 0
    pod.wait_for_metric("dragoman_requests_in_flight", 0)


def test_a_failure_is_described(start_served: Any) -> None:
    pod = start_served(fail_every=1)
    pod.wait_for("/readyz")
    failed = ended(pod, upload(pod, "Hello").json())
    assert failed["state"] == "failed"
    assert failed["error"]["code"] == "generation_failed"


def native(pod: Any) -> tuple[str, str, bytes]:
    document = ended(pod, upload(pod, LARGE).json())
    return "GET", f"/documents/{document['id']}/result", b""


def deepl(pod: Any) -> tuple[str, str, bytes]:
    form = {"source_lang": "EN", "target_lang": "DE"}
    sent = pod.client.post("/v2/document", data=form, files={"file": ("a.txt", LARGE)}).json()
    path, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    end_s = time.monotonic() + LIMIT_S
    while pod.client.post(path, data=key).json()["status"] != "done":
        assert time.monotonic() < end_s
    return "POST", f"{path}/result", json.dumps(key).encode()


def libretranslate(pod: Any) -> tuple[str, str, bytes]:
    form = {"source": "en", "target": "de"}
    sent = pod.client.post("/translate_file", data=form, files={"file": ("a.txt", LARGE)}).json()
    return "GET", httpx.URL(sent["translatedFileUrl"]).path, b""


@pytest.mark.parametrize("uploaded", [native, deepl, libretranslate])
def test_a_result_whose_delivery_broke_is_fetched_again(
    scripted_pod: Any, uploaded: Callable[[Any], tuple[str, str, bytes]]
) -> None:
    method, path, body = uploaded(scripted_pod)
    with socket.create_connection(("127.0.0.1", scripted_pod.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    again = scripted_pod.client.request(method, path, content=body)
    assert (again.status_code, len(again.content)) == (200, len(LARGE)), again.text[:300]


def test_the_terms_of_a_glossary_are_expected(scripted_pod: Any) -> None:
    files = {"file": ("a.txt", "Good day"), "terms": ("t.json", '[{"source": "day", "target": "Tag"}]')}
    document = ended(scripted_pod, scripted_pod.client.post("/documents", data=LANGS, files=files).json())
    assert document["findings"] == {"glossary": 1}


def test_the_command_line_sends_the_script_and_a_glossary(scripted_pod: Any, tmp_path: Path) -> None:
    source, terms = tmp_path / "a.html", tmp_path / "terms.tsv"
    source.write_text("<p>Good day</p>")
    terms.write_text("night\tNacht\n")
    options = ["--to", "zh-Hant", "--glossary", str(terms), "--file", str(source)]
    assert translate.main(["--url", scripted_pod.url, *options]) == DONE
    assert (tmp_path / "a.zh-Hant.html").read_text() == "<p>yad dooG</p>"
