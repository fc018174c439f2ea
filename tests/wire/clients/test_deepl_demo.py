"""DeepL's own Python client, and requests as Weblate sends them, against vLLM with the demo model."""

from collections.abc import Iterator
from typing import Any

import deepl
import httpx
import pytest

ENGLISH, GERMAN = (
    "My parents missed this train last week.",
    "Meine Eltern haben letzte Woche diesen Zug verpasst.",
)


@pytest.fixture
def client(demo_pod: Any) -> Iterator[deepl.DeepLClient]:
    client = deepl.DeepLClient("any-key", server_url=demo_pod.url)
    yield client
    client.close()


def translated(client: deepl.DeepLClient, text: str, source: str, target: str, **wishes: Any) -> str:
    result = client.translate_text(text, source_lang=source, target_lang=target, **wishes)
    assert isinstance(result, deepl.TextResult)
    assert result.billed_characters == len(text)
    return str(result.text)


def test_texts_are_translated(client: deepl.DeepLClient) -> None:
    assert translated(client, ENGLISH, "EN", "DE") == GERMAN
    assert translated(client, "Können Sie bitte die Türen schließen?", "DE", "EN-GB") == (
        "Can you close the doors, please?"
    )
    assert translated(client, "Où est la piscine ?", "FR", "EN-US") == "Where is the swimming pool?"


def test_sources_are_detected_one_by_one(client: deepl.DeepLClient) -> None:
    results = client.translate_text(
        ["Willkommen! Es gibt Milch im Haus.", "Où est la piscine ?"], target_lang="EN-US"
    )
    assert isinstance(results, list)
    assert [(result.detected_source_lang, result.text) for result in results] == [
        ("DE", "Welcome! There is milk in the house."),
        ("FR", "Where is the swimming pool?"),
    ]


def test_html_keeps_its_tags(client: deepl.DeepLClient) -> None:
    page = f'<ul>\n <li class="a">{ENGLISH}</li>\n <li translate="no">{ENGLISH}</li>\n</ul>'
    assert translated(client, page, "EN", "DE", tag_handling="html") == (
        f'<ul>\n <li class="a">{GERMAN}</li>\n <li translate="no">{ENGLISH}</li>\n</ul>'
    )


def test_xml_keeps_what_is_to_be_ignored(client: deepl.DeepLClient) -> None:
    document = f"<doc><p>{ENGLISH}</p><keep>{ENGLISH}</keep></doc>"
    assert translated(client, document, "EN", "DE", tag_handling="xml", ignore_tags="keep") == (
        f"<doc><p>{GERMAN}</p><keep>{ENGLISH}</keep></doc>"
    )


def test_a_glossary_without_a_term_of_the_text_changes_nothing(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary("Art", "EN", "DE", {"artist": "Maler"})
    assert translated(client, ENGLISH, "EN", "DE", glossary=glossary) == GERMAN
    result = client.translate_text_with_glossary(ENGLISH, glossary)
    assert isinstance(result, deepl.TextResult)
    assert result.text == GERMAN
    client.delete_glossary(glossary)


def test_what_the_model_can_is_what_is_listed(client: deepl.DeepLClient) -> None:
    assert {language.code for language in client.get_source_languages()} == {"DE", "EN", "FR"}
    assert {language.code for language in client.get_target_languages()} == {
        *("DE", "EN-GB", "EN-US", "FR", "NE")
    }
    pairs = {(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()}
    assert pairs == {("en", "de"), ("en", "fr"), ("en", "ne"), ("fr", "en"), ("de", "en")}


def test_weblate_gets_its_placeholders_back(demo_pod: Any) -> None:
    """As its DeepL service asks: XML, a placeholder as an empty element, which is ignored."""
    answer = httpx.post(
        f"{demo_pod.url}/v2/translate",
        headers={"Authorization": "DeepL-Auth-Key any-key"},
        json={
            "text": ['My aunt can show this map to <x id="0"></x>.'],
            "source_lang": "EN",
            "target_lang": "DE",
            "tag_handling": "xml",
            "ignore_tags": ["x"],
            "context": "",
        },
        timeout=60,
    )
    assert answer.status_code == 200
    [translation] = answer.json()["translations"]
    assert translation["text"].count('<x id="0"></x>') == 1
    assert translation["detected_source_language"] == "EN"
