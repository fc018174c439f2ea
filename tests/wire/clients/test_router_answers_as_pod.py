"""A router refuses what its pod refuses, in the same words: odd requests of every API, sent to both."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tests.wire.clients.conftest import routed

LANGUAGES = (
    {"source": "en", "targets": ["de", "fr", "zh-Hans", "pt-BR"]},
    {"source": "de", "targets": ["en"]},
    {"source": "zh-Hant", "targets": ["en"]},
    {"source": "iw", "targets": ["en"]},
)
NEITHER, TEXT = "ja", "Good morning"
CODES = {
    "source": [None, "auto", "", "EN", "en_US", "en-GB", NEITHER, "fr", "zh", "he", "xx", "qaa", "x" * 40, 5],
    "target": [None, "auto", "", "DE", "en", "en-US", NEITHER, "zh", "zh-TW", "xx", "*", "x" * 40, 5],
}
PAIRS = [
    *((source, "de") for source in CODES["source"]),
    *((source, target) for source in ("en", "auto") for target in CODES["target"]),
    *(("de", "fr"), ("de", "de"), ("zh-Hant", "zh-Hans"), ("he", "en"), ("iw", "en"), ("xx", "qq")),
]
MULTIPLE = [["de", "en"], ["de", "fr"], ["de", NEITHER], [NEITHER, "xx"], ["en", "en-US"], ["de", "de"]]
TEXTS: list[Any] = ["", " ", [], [""], ["a", " "], 5, None, [5], ["a"] * 2000, {"a": 1}]
BODIES = [b"", b"{", b"[]", b"{}", b"null", b"\xff", b'{"q": 5}', b'[{"Text": 5}]', b"5"]

Sent = tuple[str, str, Any]


def given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def native(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    return "POST", "/translate", given(text=text, source_lang=source, target_lang=target, **options)


def libretranslate(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    return "POST", "/translate", given(q=text, source=source, target=target, **options)


def deepl(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    fields = given(text=listed(text), source_lang=source, target_lang=target, **options)
    return "POST", "/v2/translate", fields


def deeplx(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    return "POST", "/deeplx", given(text=text, source_lang=source, target_lang=target, **options)


def immersive(source: Any, target: Any, text: Any = TEXT) -> Sent:
    return "POST", "/imme", given(text_list=listed(text), source_lang=source, target_lang=target)


def google(source: Any, target: Any, text: Any = TEXT) -> Sent:
    return "POST", "/language/translate/v2", given(q=text, source=source, target=target)


def crowdin(source: Any, target: Any, text: Any = TEXT) -> Sent:
    query = urlencode(given(source=source, target=target))
    return "POST", f"/crowdin/translate?{query}", {"strings": listed(text)}


def openai(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    options = {
        "model": "scripted",
        "messages": [{"role": "user", "content": text}],
        "translation_options": given(source_lang=source, target_lang=target),
        **options,
    }
    return "POST", "/v1/chat/completions", options


def azure(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    query = {"api-version": "3.0", **given(**{"from": source, "to": target}), **options}
    return "POST", f"/translate?{urlencode(query, doseq=True)}", [{"Text": each} for each in listed(text)]


def newer_azure(source: Any, target: Any, text: Any = TEXT, **options: Any) -> Sent:
    targets = [given(language=each, **options) for each in listed(target)]
    inputs = [given(text=each, language=source, targets=targets) for each in listed(text)]
    return "POST", "/translate?api-version=2026-06-06", {"inputs": inputs}


OPTIONS: dict[Any, list[dict[str, Any]]] = {
    native: [{"formality": "loud"}, {"formality": "more"}, {"glossary_id": "x"}, {"stream": 1}, {"x": 1}],
    libretranslate: [{"format": "rtf"}, {"alternatives": 10}, {"alternatives": "x"}],
    deepl: [{"formality": "loud"}, {"tag_handling": "x"}, {"style_id": "x"}, {"glossary_id": "x"}],
    deeplx: [{"tag_handling": "x"}],
    immersive: [],
    google: [],
    crowdin: [],
    openai: [{"stream": 1}, {"model": "other"}, {"model": None}, {"tools": [{}]}, {"messages": []}, {"n": 2}],
    azure: [{"textType": "x"}, {"profanityAction": "Marked"}, {"toScript": "Latn"}, {"fromScript": "Latn"}],
    newer_azure: [{"tone": "x"}, {"script": "Latn"}, {"profanityAction": "Marked"}, {"gender": "male"}],
}
FILES = {
    "/v2/document": ("source_lang", "target_lang"),
    "/translate_file": ("source", "target"),
    "/documents": ("source_lang", "target_lang"),
}
DETECTIONS = ("/detect", "/detect?api-version=3.0", "/language/translate/v2/detect")
OTHERS = (
    *("/languages", "/languages?api-version=3.0&scope=x", "/languages?api-version=1", "/v1/models"),
    *("/v1/models/scripted", "/v1/models/x", "/v2/languages?type=x", "/v2/languages?type=target"),
    *("/v2/glossary-language-pairs", "/language/translate/v2/languages?target=xx", "/nothing", "/v2/nothing"),
    *("/v2/document/x", "/documents/x", "/download_file/x", "/v2/glossaries/x", "/v3/glossaries/x"),
)


def of_api(make: Any) -> Iterator[Sent]:
    for source, target in PAIRS:
        yield make(source, target)
    for text in TEXTS:
        yield make("en", "de", text)
        yield make("en", NEITHER, text)
    for options in OPTIONS[make]:
        for target in ("de", NEITHER, "xx"):
            yield make("en", target, **options)
    if make in (azure, newer_azure):
        for targets in MULTIPLE:
            for source in (None, "en", "de"):
                yield make(source, targets, [TEXT, "", "Guten Morgen"])


def of_paths() -> Iterator[Sent]:
    for path in (*DETECTIONS, *dict.fromkeys(make("en", "de")[1] for make in OPTIONS)):
        for body in BODIES:
            yield "POST", path, body
        yield "PATCH", path, b""
        yield "GET", path, b""
    for path in OTHERS:
        yield "GET", path, b""
        yield "POST", path, b""


def of_files() -> Iterator[Sent]:
    for path, names in FILES.items():
        for pair in PAIRS:
            fields = {name: str(code) for name, code in zip(names, pair, strict=True) if code is not None}
            yield "FILE", path, (fields, "a.txt")
        for name in ("a.xyz", "", "a.docx"):
            yield "FILE", path, (dict(zip(names, ("en", "de"), strict=True)), name)


VARIABLE = re.compile(
    r'"(id|document_id|document_key|created|expires_at|state|progress|seconds_remaining)":("[^"]*"|[\d.]+)'
    r"|127\.0\.0\.1:\d+|[0-9a-f]{8}-[0-9a-f-]{27}"
)


def answer(client: httpx.Client, sent: Sent) -> tuple[int, str | None, str]:
    method, path, body = sent
    if method == "FILE":
        fields, name = body
        content = b"Guten Morgen, wie geht es Ihnen heute?"
        got = client.post(path, data=fields, files={"file": (name, content)})
    elif isinstance(body, bytes):
        kind = {"content-type": "application/json"} if body else {}
        got = client.request(method, path, content=body, headers=kind)
    else:
        got = client.request(method, path, content=json.dumps(body))
    return got.status_code, got.headers.get("content-type"), VARIABLE.sub("…", got.text)


@pytest.fixture(scope="module")
def both(pod_process: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Clients of a pod, and of a router before it."""
    directory: Path = tmp_path_factory.mktemp("both")
    pod = pod_process(
        directory,
        *("--model", "org/model", "--served-name", "scripted", "--engine", "scripted"),
        *("--languages", json.dumps(LANGUAGES)),
    )
    try:
        pod.wait_for("/readyz")
        with routed(pod, directory, "scripted", *LANGUAGES) as router:
            yield pod.client, router.client
    finally:
        pod.close()


@pytest.mark.parametrize(
    "requests",
    [pytest.param([*of_api(make)], id=make.__name__) for make in OPTIONS]
    + [pytest.param([*of_paths()], id="paths"), pytest.param([*of_files()], id="files")],
)
def test_a_router_answers_as_its_pod(both: tuple[httpx.Client, httpx.Client], requests: list[Sent]) -> None:
    pod, router = both
    for sent in requests:
        found = answer(pod, sent)
        assert answer(router, sent) == found, sent
        assert found[0] < 500, sent


def test_a_model_has_the_name_that_its_router_gives_it(own_scripted_pod: Any, tmp_path: Path) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": TEXT}]}
    with routed(own_scripted_pod, tmp_path, "of-the-router") as router:
        (model,) = router.client.get("/v1/models").json()["data"]
        assert model["id"] == "of-the-router"
        answered = router.client.post("/v1/chat/completions", json=body | {"model": model["id"]})
        assert (answered.status_code, answered.json()["model"]) == (200, "of-the-router")
        assert router.client.post("/v1/chat/completions", json=body).status_code == 404
