"""Requests of translators' tools, as their sources make them; `docs/how-to/tools.md` names the versions."""

import json
from typing import Any

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
WEBLATE = {"Referer": "https://example.com/", "Accept": "application/json; charset=utf-8"}
WEBLATE_DEEPL = WEBLATE | {"Authorization": "DeepL-Auth-Key any"}


def weblate_deepl(pod: Any, **fields: Any) -> list[str]:
    """What the machinery "DeepL" receives for texts; others of its options are in `fields`."""
    sent = {
        "source_lang": "EN",
        "target_lang": "DE",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    answer = pod.client.post("/v2/translate", json=sent | fields, headers=WEBLATE_DEEPL)
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["translations"]]


def test_weblate_with_its_libretranslate_machinery(scripted_pod: Any) -> None:
    listed = scripted_pod.client.get("/languages", headers=WEBLATE).json()
    assert {"en", "de", "nb", "pt-BR", "zh-Hans"} <= {each["code"] for each in listed}
    texts = ["Hello, [X7X]!", "abc", "a < b & c"]
    sent = {"api_key": "", "q": texts, "source": "en", "target": "de"}
    found = scripted_pod.client.post("/translate", json=sent, headers=WEBLATE).json()["translatedText"]
    assert found[1:] == ["cba", "c & b < a"]
    assert len(found) == 3


def test_weblate_with_its_deepl_machinery(scripted_pod: Any) -> None:
    listed = [
        {each["language"] for each in scripted_pod.client.get("/v2/languages", params={"type": kind}).json()}
        for kind in ("source", "target")
    ]
    # Weblate's names for English, Chinese, Brazilian and Norwegian.
    assert {"EN", "ZH", "PT", "NB"} <= listed[0]
    assert {"ZH", "ZH-HANT", "PT-BR", "PT-PT", "NB"} <= listed[1]
    protected = weblate_deepl(scripted_pod, text=['abc <x id="7"></x> &amp; def'])
    assert protected == ['fed <x id="7"></x> &amp; cba']
    options = {"formality": "more", "context": "A page.", "model_type": "prefer_quality_optimized"}
    assert weblate_deepl(scripted_pod, text=["abc", "def"], **options) == ["cba", "fed"]
    # Its test of the settings writes the languages in small letters.
    assert weblate_deepl(scripted_pod, text=["test"], source_lang="en", target_lang="de") == ["tset"]


def test_weblate_s_glossaries(scripted_pod: Any) -> None:
    client = scripted_pod.client
    pairs = client.get("/v2/glossary-language-pairs", headers=WEBLATE_DEEPL).json()["supported_languages"]
    assert {"source_lang": "en", "target_lang": "de"} in pairs
    sent = {"name": "weblate:1:EN:DE:abc", "source_lang": "EN", "target_lang": "DE"}
    entries = {"entries": "cat\tKatze\n", "entries_format": "tsv"}
    made = client.post("/v2/glossaries", json=sent | entries, headers=WEBLATE_DEEPL)
    assert made.status_code == 201
    listed = client.get("/v2/glossaries", headers=WEBLATE_DEEPL).json()["glossaries"]
    named = {each["name"]: each["glossary_id"] for each in listed}[sent["name"]]
    assert weblate_deepl(scripted_pod, text=["abc"], glossary_id=named) == ["cba"]
    address = f"/v2/glossaries/{named}"
    assert client.delete(address, headers=WEBLATE_DEEPL).status_code == 204
    assert client.delete(address, headers=WEBLATE_DEEPL).status_code == 404


def test_omegat_with_its_plugin_for_libretranslate(scripted_pod: Any) -> None:
    sent = "q=%C3%A9t%C3%A9+%3Ct0%2F%3E&source=en&target=fr"
    # A key can only be a part of the address.
    answer = scripted_pod.client.post("/translate?api_key=any", content=sent, headers=FORM)
    # OmegaT takes an answer for Latin-1 whose type names no charset.
    assert json.loads(answer.content.decode("latin-1")) == {"translatedText": ">/0t< été"}


def test_trados_with_microsoft_translator_and_a_private_endpoint(scripted_pod: Any) -> None:
    headers = {"Ocp-Apim-Subscription-Key": "any"}
    address = "/translate?api-version=3.0&"
    probe = scripted_pod.client.post(f"{address}to=de", json=[{"Text": "test"}], headers=headers)
    assert probe.status_code == 200
    (found,) = scripted_pod.client.post(
        f"{address}from=en-US&to=de-DE", json=[{"Text": "abc"}], headers=headers
    ).json()
    assert found["translations"][0]["text"] == "cba"


def test_crowdin(scripted_pod: Any) -> None:
    answer = scripted_pod.client.post(
        "/crowdin/translate?source=en&target=uk&project_id=727186&jwtToken=e30.e30.c2ln",
        json={"strings": ["Save", {"id": 1, "text": "abc"}, 'abc <span translate="no">{0}</span>']},
        headers={"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"},
    )
    first, second, third = answer.json()["data"]["translations"]
    assert (first, second) == ("evaS", "cba")
    assert '<span translate="no">{0}</span>' in third
    refused = scripted_pod.client.post("/crowdin/translate?source=en&target=qqq", json={"strings": ["a"]})
    assert refused.status_code == 400
    assert "qqq" in refused.json()["error"]["message"]
