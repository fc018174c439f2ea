"""Texts without a named source language, in the form of each API."""

from typing import Any

import httpx
import pytest

SPANISH = "El gato duerme en el sofá porque está cansado."

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("/translate", {"json": {"text": SPANISH, "target_lang": "en"}}),
    "libretranslate": ("/translate", {"json": {"q": SPANISH, "source": "auto", "target": "en"}}),
    "deepl": ("/v2/translate", {"json": {"text": [SPANISH], "target_lang": "EN-US"}}),
    "google": ("/language/translate/v2", {"json": {"q": [SPANISH], "target": "en"}}),
    "azure": ("/translate?api-version=3.0&to=en", {"json": [{"Text": SPANISH}]}),
}


@pytest.fixture
def bilingual(start_served: Any) -> str:
    """A pod from English to French and back."""
    pairs = '[{"source": "en", "targets": ["fr"]}, {"source": "fr", "targets": ["en"]}]'
    served = start_served("--languages", pairs)
    served.wait_for("/readyz")
    return str(served.url)


def message_of(body: dict[str, Any]) -> str:
    """The message of an API's error."""
    error = body.get("error", body)
    return error if isinstance(error, str) else error["message"]


def test_a_language_that_is_not_served_is_an_error_of_each_api(bilingual: str) -> None:
    for api, (path, body) in REQUESTS.items():
        answer = httpx.post(bilingual + path, **body)
        assert answer.status_code == (422 if api == "native" else 400), api
        assert "the text is in Spanish (es)" in message_of(answer.json()), api
        assert "served are fr" in message_of(answer.json()), api


def test_a_text_in_the_target_language_comes_back_with_a_word(bilingual: str) -> None:
    text = "The cat sleeps on the sofa."
    answer = httpx.post(f"{bilingual}/translate", json={"text": text, "target_lang": "en"}).json()
    (details,) = answer["details"]
    assert answer["translation"] == text
    assert details["source_lang"] == "en"
    assert [each["code"] for each in details["warnings"]] == ["target_language"]


def test_a_guess_says_so(scripted_pod: Any) -> None:
    answer = httpx.post(f"{scripted_pod.url}/translate", json={"text": "Tak", "target_lang": "en"}).json()
    (details,) = answer["details"]
    assert details["confidence"] < 0.5
    assert "source_uncertain" in [each["code"] for each in details["warnings"]]
    assert answer["translation"] != "Tak"


def test_a_guess_is_refused_where_findings_are(scripted_pod: Any) -> None:
    body = {"text": "Tak", "target_lang": "en", "on_finding": "fail"}
    answer = httpx.post(f"{scripted_pod.url}/translate", json=body)
    assert answer.status_code == 422
    assert "name the source language" in message_of(answer.json())


def test_texts_of_libretranslate_have_one_language(scripted_pod: Any) -> None:
    body = {
        "q": ["Danke", "Datei nicht gefunden", "Guten Morgen allerseits"],
        "source": "auto",
        "target": "da",
    }
    answer = httpx.post(f"{scripted_pod.url}/translate", json=body).json()
    assert [each["language"] for each in answer["detectedLanguage"]] == ["de"] * 3
    assert answer["translatedText"][0] == "eknaD"


def test_a_word_beside_sentences_has_their_language(scripted_pod: Any) -> None:
    texts = ["Merci", "Le chat dort sur le canapé.", "Fichier introuvable"]
    answer = httpx.post(f"{scripted_pod.url}/v2/translate", json={"text": texts, "target_lang": "DA"}).json()
    assert [each["detected_source_language"] for each in answer["translations"]] == ["FR"] * 3
