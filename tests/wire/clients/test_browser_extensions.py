"""DeepLX's endpoint and Immersive Translate's custom service, called as extensions call them."""

import time
from typing import Any

import pytest

ORIGIN = {"Origin": "chrome-extension://extension"}
PAIR = {"source_lang": "EN", "target_lang": "DE"}
GERMAN = "Guten Tag, wie geht es Ihnen heute?"


def deeplx(pod: Any, path: str = "/deeplx", **fields: Any) -> Any:
    return pod.client.post(path, json={"text": "abc", **PAIR} | fields, headers=ORIGIN)


def immersive(pod: Any, *texts: str, source: str = "en", target: str = "zh-CN") -> Any:
    requested = {"source_lang": source, "target_lang": target, "text_list": texts}
    return pod.client.post("/imme", json=requested, headers=ORIGIN)


@pytest.mark.parametrize("path", ["/deeplx", "/deeplx/translate", "/deeplx?token=any"])
def test_deeplx(scripted_pod: Any, path: str) -> None:
    answer = deeplx(scripted_pod, path)
    assert answer.headers["access-control-allow-origin"] == "*"
    found = answer.json()
    assert abs(found.pop("id") / 1000 - time.time()) < 60
    assert found == {
        "code": 200,
        "data": "cba",
        "alternatives": [],
        "source_lang": "EN",
        "target_lang": "DE",
        "method": "Free",
    }


@pytest.mark.parametrize("source", ["", "auto", None])
def test_deeplx_detects(scripted_pod: Any, source: str | None) -> None:
    found = deeplx(scripted_pod, text=GERMAN, source_lang=source, target_lang="EN-US").json()
    assert (found["source_lang"], found["target_lang"]) == ("DE", "EN-US")


def test_deeplx_with_tags(scripted_pod: Any) -> None:
    found = deeplx(scripted_pod, text="<p>abc</p>", tag_handling="html", target_lang="ZH").json()
    assert found["data"] == "<p>cba</p>"


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"text": ""}, 404, "no text to translate"),
        ({"text": " \n"}, 404, "no text to translate"),
        ({"text": ["abc"]}, 400, "text must be a string"),
        ({"target_lang": "no language"}, 400, "no language tag"),
        ({"target_lang": "qqq"}, 400, "names no language"),
        ({"tag_handling": "json"}, 400, "tag_handling must be one of"),
    ],
)
def test_deeplx_refuses(scripted_pod: Any, fields: dict[str, Any], status: int, message: str) -> None:
    refused = deeplx(scripted_pod, **fields)
    assert refused.status_code == refused.json()["code"] == status
    assert message in refused.json()["message"]
    assert refused.headers["access-control-allow-origin"] == "*"


def test_immersive_translate(scripted_pod: Any) -> None:
    assert immersive(scripted_pod, "abc", " ", "def").json() == {
        "translations": [
            {"detected_source_lang": "en", "text": "cba"},
            {"detected_source_lang": "en", "text": " "},
            {"detected_source_lang": "en", "text": "fed"},
        ]
    }
    assert immersive(scripted_pod).json() == {"translations": []}


def test_immersive_translate_detects_and_has_codes_of_its_own(scripted_pod: Any) -> None:
    found = immersive(scripted_pod, GERMAN, "今天天气很好，我们去公园吧。", source="auto", target="no").json()
    assert [each["detected_source_lang"] for each in found["translations"]] == ["de", "zh-CN"]
    for code in ("zh-TW", "zh-CN", "jw", "no"):
        (one,) = immersive(scripted_pod, "abc", source=code, target="en").json()["translations"]
        assert one == {"detected_source_lang": code, "text": "cba"}


def test_immersive_translate_s_placeholders_are_kept(scripted_pod: Any) -> None:
    first, second = immersive(scripted_pod, "abc <b0></b0>", "{0} abc").json()["translations"]
    assert "<b0></b0>" in first["text"]
    assert "cba" in first["text"]
    assert "{0}" in second["text"]


def test_a_required_field_is_named(scripted_pod: Any) -> None:
    for path, field in (("/deeplx", "text"), ("/imme", "text_list")):
        refused = scripted_pod.client.post(path, json=PAIR)
        assert refused.json() == {"code": 400, "message": f"{field} is required"}


def test_immersive_translate_is_refused_in_the_same_format(scripted_pod: Any) -> None:
    for refused in (immersive(scripted_pod, "abc", target="qqq"), immersive(scripted_pod, *["a"] * 2000)):
        assert refused.status_code == refused.json()["code"] == 400
        assert refused.json()["message"]


@pytest.mark.parametrize("path", ["/deeplx", "/deeplx/translate", "/imme"])
def test_pages_of_any_origin_may_ask(scripted_pod: Any, path: str) -> None:
    requested = ORIGIN | {"Access-Control-Request-Method": "POST"}
    answer = scripted_pod.client.options(path, headers=requested)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert scripted_pod.client.get(path).status_code == 405
