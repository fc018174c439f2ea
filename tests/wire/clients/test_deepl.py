"""DeepL's own Python client, from PyPI, against a pod.

The scripted engine answers every segment with its reverse, so that the texts below tell what was sent to it.
"""

from collections.abc import Iterator
from typing import Any

import deepl
import pytest

from dragoman_protocols.deepl.api import UNLIMITED

KEY = "any-key"


@pytest.fixture
def client(scripted_pod: Any) -> Iterator[deepl.DeepLClient]:
    client = deepl.DeepLClient(KEY, server_url=scripted_pod.url)
    yield client
    client.close()


def test_one_text_is_translated(client: deepl.DeepLClient) -> None:
    result = client.translate_text("Hello there", source_lang="EN", target_lang="DE")
    assert isinstance(result, deepl.TextResult)
    assert (result.text, result.detected_source_lang) == ("ereht olleH", "EN")
    assert (result.billed_characters, result.model_type_used) == (11, None)


def test_several_texts_are_translated_in_their_order_and_blank_ones_come_back(
    client: deepl.DeepLClient,
) -> None:
    results = client.translate_text(["One", " ", "", "Two"], source_lang="en", target_lang="pt-br")
    assert isinstance(results, list)
    assert [result.text for result in results] == ["enO", " ", "", "owT"]
    assert [result.billed_characters for result in results] == [3, 1, 0, 3]


def test_the_source_language_is_detected(client: deepl.DeepLClient) -> None:
    results = client.translate_text(
        ["The weather is very nice today.", "Das Wetter ist heute sehr schön."], target_lang="FR"
    )
    assert isinstance(results, list)
    assert [result.detected_source_lang for result in results] == ["EN", "DE"]


@pytest.mark.parametrize("requested", list(deepl.ModelType))
def test_the_model_type_is_returned_if_requested(
    client: deepl.DeepLClient, requested: deepl.ModelType
) -> None:
    result = client.translate_text("Hello", source_lang="EN", target_lang="DE", model_type=requested)
    assert isinstance(result, deepl.TextResult)
    assert result.model_type_used == str(requested).removeprefix("prefer_")


def test_all_other_options_are_taken(client: deepl.DeepLClient) -> None:
    result = client.translate_text(
        "Hello",
        source_lang="EN",
        target_lang="DE",
        split_sentences=deepl.SplitSentences.OFF,
        preserve_formatting=True,
        formality=deepl.Formality.PREFER_LESS,
        outline_detection=False,
        tag_handling="xml",
        tag_handling_version="v2",
        splitting_tags=["p", "li"],
        non_splitting_tags="i,b",
        extra_body_parameters={"enable_beta_languages": True},
    )
    assert isinstance(result, deepl.TextResult)
    assert result.text == "olleH"


def test_prefer_more_formality_is_accepted_for_a_language_without_formality(
    client: deepl.DeepLClient,
) -> None:
    result = client.translate_text("Hallo", source_lang="DE", target_lang="EN-GB", formality="prefer_more")
    assert isinstance(result, deepl.TextResult)
    assert result.text == "ollaH"


def test_languages_are_listed(client: deepl.DeepLClient) -> None:
    sources = {language.code: language for language in client.get_source_languages()}
    targets = {language.code: language for language in client.get_target_languages()}
    assert {"EN", "DE", "PT", "ZH", "NB"} <= sources.keys()
    assert {"EN-GB", "EN-US", "PT-BR", "PT-PT", "ZH-HANS", "ZH-HANT", "NB"} <= targets.keys()
    assert not {"EN", "PT"} & targets.keys()
    assert (sources["DE"].name, sources["DE"].supports_formality) == ("German", None)
    assert targets["DE"].supports_formality is True
    assert targets["EN-US"].supports_formality is False


def test_usage_counts_characters(client: deepl.DeepLClient) -> None:
    before = client.get_usage()
    client.translate_text("12345", source_lang="EN", target_lang="DE")
    after = client.get_usage()
    assert after.character.count is not None
    assert before.character.count is not None
    assert after.character.count - before.character.count == 5
    assert after.character.limit == UNLIMITED
    assert not after.any_limit_reached


def test_an_unserved_language_is_refused_with_a_message(client: deepl.DeepLClient) -> None:
    for call in (
        lambda: client.rephrase_text("Hello", target_lang="EN-GB"),
        client.list_translation_memories,
    ):
        with pytest.raises(deepl.DeepLException, match=r"Not found, message: .* is not served here"):
            call()


def test_placeholders_move_with_their_sentence(start_served: Any) -> None:
    """As Weblate has them: empty elements of XML, which are ignored. The reverse of a marker is none, so that
    the second text is translated without them."""
    pod = start_served(
        answers={
            "My aunt can show this map to <x1/>.": "Meine Tante kann <x1/> diese Landkarte zeigen.",
        }
    )
    pod.wait_for("/readyz")
    client = deepl.DeepLClient(KEY, server_url=pod.url)
    results = client.translate_text(
        ['My aunt can show this map to <x id="0"></x>.', 'A <x id="0"></x> B <x id="1"></x>'],
        source_lang="EN",
        target_lang="DE",
        tag_handling="xml",
        ignore_tags=["x"],
    )
    client.close()
    assert isinstance(results, list)
    assert results[0].text == 'Meine Tante kann <x id="0"></x> diese Landkarte zeigen.'
    assert results[1].text == 'B <x id="0"></x> A <x id="1"></x>'
