"""An exception that the pod does not foresee: logged, counted, answered in the API's own error format."""

from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.files.parsing import FileParser
from dragoman_service.http import pipeline
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.tracing import tracing
from dragoman_service.settings import Settings

MESSAGE = "a defect; the pod's log has more"
NATIVE = {"error": {"code": "internal_error", "message": MESSAGE}}


class Pod:
    def __init__(self, settings: Settings) -> None:
        self.registry, self.lifecycle = CollectorRegistry(), Lifecycle()
        engine = ScriptedEngine(Script(), settings.name, self.registry)
        app = create_app(settings, engine, self.lifecycle, self.registry, tracing(None, settings.name)).app
        self.lifecycle.ready()
        self.client = TestClient(app, raise_server_exceptions=False)

    def value(self, name: str) -> float | None:
        return self.registry.get_sample_value(name, {"model_name": "org/model"})


@pytest.fixture
def pod(make_settings: Callable[..., Settings]) -> Pod:
    return Pod(make_settings())


def broken(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("a defect of a test")


async def broken_work(request: Any, lifecycle: Any, work: Any, time_left_s: Any) -> None:
    work.close()
    broken()


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/translate", {"text": "x", "source_lang": "en", "target_lang": "de"}, NATIVE),
        ("/v2/translate", {"text": ["x"], "target_lang": "DE"}, {"message": MESSAGE}),
        ("/translate", {"text": "x", "source_lang": "en", "target_lang": "de", "stream": True}, NATIVE),
    ],
)
def test_of_a_translation(
    pod: Pod,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    body: Any,
    error: Any,
) -> None:
    monkeypatch.setattr(pipeline, "while_connected", broken_work)
    answer = pod.client.post(path, json=body)
    assert answer.status_code == 500
    assert answer.json() == error
    assert pod.value("dragoman_defects_total") == 1
    assert (pod.lifecycle.in_flight, pod.value("dragoman_admitted_tokens")) == (0, 0)
    assert "ZeroDivisionError: a defect of a test" in caplog.text


def test_of_any_other_path(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_service.http.control.generate_latest", broken)
    answer = pod.client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, MESSAGE)
    assert pod.value("dragoman_defects_total") == 1


def test_of_a_document_in_the_background(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileParser, "rebuild", broken)
    form = {"source_lang": "en", "target_lang": "de"}
    with pod.client as client:
        sent = client.post("/documents", data=form, files={"file": ("a.txt", b"Hello")}).json()
        document = client.get(f"/documents/{sent['id']}").json()
    assert (document["state"], document["error"]) == ("failed", NATIVE["error"])
    assert pod.value("dragoman_defects_total") == 1
    labels = {"model_name": "org/model", "api": "native", "outcome": "internal_error"}
    languages = {"source": "en", "target": "de"}
    assert pod.registry.get_sample_value("dragoman_requests_total", labels | languages) == 1
