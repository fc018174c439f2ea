"""A service that answers in capitals."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.http_server import Handler, serving

Refusal = tuple[int, Any]


class Service(Handler):
    """Answers in capitals; refuses Klingon as an engine pod refuses a pair, and `too long` as one refuses a text."""

    def do_GET(self) -> None:
        """The Services of a cluster, as the API server lists them, or a document that is translated."""
        state = self.server
        if self.path == "/documents/ID":
            return self.respond(
                200,
                {
                    "id": "ID",
                    "state": "done",
                    "characters": 20,
                    "findings": {"from_memory": 2} | state.findings,
                },
            )
        if self.path == "/documents/ID/result":
            return self.respond(200, state.uploaded.upper())
        if state.refusal:
            return self.respond(*state.refusal)
        assert self.headers["authorization"] == "Bearer person"
        assert self.path.startswith("/api/v1/services?")
        router = {
            "metadata": {"name": "router", "namespace": "system"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80}]},
        }
        return self.respond(200, {"metadata": {"resourceVersion": "1"}, "items": [router]})

    def do_POST(self) -> None:
        if self.path.startswith("/api/"):
            assert self.headers["authorization"] == "Bearer person"
            assert self.path == "/api/v1/namespaces/system/services/router:http/proxy/translate"
        body = self.body()
        if self.path.startswith("/documents"):
            self._document(body)
            return
        received = json.loads(body)
        self.server.received.append((received, self.headers["x-api-key"]))
        if refusal := self.server.refusal:
            self.respond(*refusal)
        elif received["target_lang"] == "tlh":
            self.respond(422, {"error": {"code": "unsupported_pair", "message": "en to tlh is not served"}})
        elif "too long" in received["text"]:
            self.respond(413, {"error": {"code": "text_too_long", "message": "9 tokens"}})
        else:
            answer: dict[str, Any] = {"translation": [text.upper() for text in received["text"]]}
            if "kept" in received["text"]:
                warnings = [{"code": code, "detail": "", "segment": 0} for code in ("source_kept", "number")]
                answer["details"] = [
                    {"warnings": warnings if text == "kept" else []} for text in received["text"]
                ]
            self.respond(200, answer)

    def _document(self, body: bytes) -> None:
        assert self.path == "/documents"
        state = self.server
        state.uploads += 1
        if state.refusal:
            self.respond(*state.refusal)
            return
        state.form = body
        head, _, content = body.partition(b'name="file"; filename=')
        assert b"target_lang" in head
        state.uploaded = content.split(b"\r\n\r\n", 1)[1].partition(b"\r\n--")[0]
        self.respond(202, {"id": "ID", "state": "queued"})


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.translator.POLL_S", 0.01)


@pytest.fixture
def service() -> Iterator[Any]:
    with serving(Service, received=[], findings={}, refusal=None, uploads=0) as server:
        yield server


@pytest.fixture
def url(service: Any) -> str:
    return str(service.url)
