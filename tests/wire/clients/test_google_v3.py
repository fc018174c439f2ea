"""google-cloud-translate as it is on PyPI: `translate_v3` over REST, without credentials and with another endpoint."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from google.api_core.exceptions import BadRequest, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud.translate_v3 import TranslationServiceClient
from google.cloud.translate_v3.services.translation_service.transports.rest import (
    TranslationServiceRestTransport,
)

PARENT = "projects/any/locations/global"


@pytest.fixture
def client_of() -> Iterator[Callable[[Any], Any]]:
    """Makes clients whose connections end with the test."""
    made: list[Any] = []

    def make(pod: Any) -> Any:
        host = pod.url.removeprefix("http://")
        transport = TranslationServiceRestTransport(
            host=host, url_scheme="http", credentials=AnonymousCredentials()
        )
        made.append(TranslationServiceClient(transport=transport))
        return made[-1]

    yield make
    for client in made:
        client.transport.close()


def test_texts(demo_pod: Any, client_of: Any) -> None:
    for parent in (PARENT, "projects/any"):
        answer = client_of(demo_pod).translate_text(
            parent=parent, contents=["The cat sleeps."], target_language_code="de", source_language_code="en"
        )
        assert [each.translated_text for each in answer.translations] == ["Die Katze schläft."]


def test_the_language_is_detected_and_the_model_repeated(scripted_pod: Any, client_of: Any) -> None:
    answer = client_of(scripted_pod).translate_text(
        parent=PARENT,
        contents=["Das Wetter ist heute schön.", " "],
        target_language_code="zh-CN",
        mime_type="text/plain",
        model=f"{PARENT}/models/general/nmt",
    )
    first, second = answer.translations
    assert (first.translated_text, first.detected_language_code) == (".nöhcs etueh tsi retteW saD", "de")
    assert first.model == f"{PARENT}/models/general/nmt"
    assert second.translated_text == " "


def test_html_is_the_default(scripted_pod: Any, client_of: Any) -> None:
    (found,) = (
        client_of(scripted_pod)
        .translate_text(
            parent=PARENT, contents=["<b>a & b</b>"], target_language_code="de", source_language_code="en"
        )
        .translations
    )
    assert found.translated_text == "<b>b &amp; a</b>"


def test_a_glossary(scripted_pod: Any, client_of: Any) -> None:
    client = client_of(scripted_pod)
    entries = {"source_lang": "en", "target_lang": "de", "entries": "cat\tKater", "entries_format": "tsv"}
    created = httpx.post(f"{scripted_pod.url}/v3/glossaries", json={"name": "g", "dictionaries": [entries]})
    name = f"{PARENT}/glossaries/{created.json()['glossary_id']}"
    requested = {
        "parent": PARENT,
        "contents": ["cat"],
        "target_language_code": "de",
        "source_language_code": "en",
    }
    answer = client.translate_text({**requested, "glossary_config": {"glossary": name}})
    (found,) = answer.glossary_translations
    assert found.glossary_config.glossary == name
    assert found.translated_text == answer.translations[0].translated_text
    missing = f"{PARENT}/glossaries/00000000-0000-4000-8000-000000000000"
    with pytest.raises((BadRequest, NotFound), match="lossary"):
        client.translate_text({**requested, "glossary_config": {"glossary": missing}})


def test_detection_and_languages(demo_pod: Any, client_of: Any) -> None:
    client = client_of(demo_pod)
    (found,) = client.detect_language(parent=PARENT, content="Das Wetter ist heute schön.").languages
    assert found.language_code == "de"
    assert found.confidence > 0.9
    listed = client.get_supported_languages(parent=PARENT, display_language_code="en").languages
    (german,) = [each for each in listed if each.language_code == "de"]
    assert (german.display_name, german.support_source, german.support_target) == ("German", True, True)


def test_errors_are_google_s(scripted_pod: Any, client_of: Any) -> None:
    client = client_of(scripted_pod)
    with pytest.raises(BadRequest, match="names no language"):
        client.translate_text(parent=PARENT, contents=["a"], target_language_code="xx-no-language")
    with pytest.raises(NotFound, match="not served here"):
        client.get_glossary(name=f"{PARENT}/glossaries/any")
