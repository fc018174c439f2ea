"""Answers and errors in DeepL's shape."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman_protocols import errors
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary
from dragoman_protocols.translation import TranslationRequest, TranslationResult
from dragoman_service.dialects.deepl import errors as deepl_errors
from dragoman_service.dialects.deepl import glossaries
from dragoman_service.dialects.deepl.asked import Asked
from dragoman_service.dialects.deepl.dialect import translations
from dragoman_service.dialects.deepl.usage import UNLIMITED, Usage

CAT = Dictionary("en", "de", (Entry("cat", "Katze"),))
DOG = Dictionary("en", "fr", (Entry("dog", "chien"),))


def make_glossary(*dictionaries: Dictionary) -> StoredGlossary:
    return StoredGlossary("id", "Animals", datetime(2026, 11, 1, tzinfo=UTC), dictionaries)


def test_translations_are_told_with_their_language_and_their_length() -> None:
    asked = Asked(("Hallo 🪨", " ", "Hello"), TranslationRequest(("Hallo 🪨", "Hello"), "fr"))
    results = [TranslationResult("Bonjour", "de"), TranslationResult("Salut", "en-US", confidence=0.9)]
    assert list(translations(asked, results)) == [
        {"detected_source_language": "DE", "text": "Bonjour", "billed_characters": 7},
        {"detected_source_language": "UND", "text": " ", "billed_characters": 1},
        {"detected_source_language": "EN", "text": "Salut", "billed_characters": 5},
    ]


def test_the_model_and_the_tags_are_told_where_they_were_asked_for() -> None:
    asked = Asked(("x",), TranslationRequest(("x",), "fr"), (), "latency_optimized", "v2")
    [told] = translations(asked, [TranslationResult("y", "de")])
    assert told["model_type_used"] == "latency_optimized"
    assert told["tag_handling_version"] == "v2"


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (errors.MalformedRequestError("why"), 400, {"message": "why"}),
        (errors.InvalidFieldError("why"), 400, {"message": "why"}),
        (
            errors.UnsupportedPairError("why"),
            400,
            {"message": "Value for 'target_lang' not supported.", "detail": "why"},
        ),
        (
            errors.InvalidGlossaryError("why"),
            400,
            {"message": "Invalid glossary entries provided", "detail": "why"},
        ),
        (errors.UnknownGlossaryError("why"), 404, {"message": "why"}),
        (errors.UnknownDictionaryError("why"), 404, {"message": "why"}),
        (deepl_errors.NotServedError("why"), 404, {"message": "why"}),
        (errors.BodyTooLargeError("why"), 413, {"message": "why"}),
        (errors.TextTooLongError("why"), 413, {"message": "why"}),
        (deepl_errors.UriTooLongError("why"), 414, {"message": "why"}),
        (deepl_errors.MediaTypeError("why"), 415, {"message": "why"}),
        (errors.CapacityError("why", 7), 429, {"message": "Too many requests", "detail": "why"}),
        (errors.QuotaError("why"), 456, {"message": "Quota Exceeded", "detail": "why"}),
        (errors.StoreFullError("why"), 456, {"message": "Quota Exceeded", "detail": "why"}),
        (errors.GenerationError("why"), 500, {"message": "why"}),
        (errors.GlossaryStoreError("why"), 500, {"message": "why"}),
        (errors.NotReadyError("why", 7), 503, {"message": "why"}),
        (errors.DrainingError("why"), 503, {"message": "why"}),
        (errors.EngineDeadError("why"), 503, {"message": "why"}),
        (errors.DeadlineExceededError("why"), 504, {"message": "why"}),
    ],
)
def test_errors_have_deepls_status_and_shape(
    error: errors.RequestError, status: int, body: dict[str, Any]
) -> None:
    refused = deepl_errors.refuse(error)
    assert (refused.status_code, json.loads(bytes(refused.body))) == (status, body)
    asked_back = isinstance(error, errors.CapacityError)
    assert ("retry-after" in refused.headers) is asked_back


def test_a_glossary_of_one_pair_is_described_for_both_versions() -> None:
    glossary = make_glossary(CAT)
    pair = {"source_lang": "en", "target_lang": "de", "entry_count": 1}
    frame = {"glossary_id": "id", "name": "Animals", "creation_time": "2026-11-01T00:00:00.000000Z"}
    assert glossaries.monolingual_json(glossary.outline) == {**frame, **pair, "ready": True}
    assert glossaries.multilingual_json(glossary.outline) == {**frame, "dictionaries": [pair]}
    assert glossaries.entries_json(CAT)["dictionaries"] == [
        {"source_lang": "en", "target_lang": "de", "entries": "cat\tKatze", "entries_format": "tsv"}
    ]


@pytest.mark.parametrize("dictionaries", [(), (CAT, DOG)])
def test_v2_knows_only_glossaries_of_one_pair(dictionaries: tuple[Dictionary, ...]) -> None:
    glossary = make_glossary(*dictionaries)
    assert glossaries.monolingual([glossary.outline, make_glossary(CAT).outline]) == [
        make_glossary(CAT).outline
    ]
    with pytest.raises(errors.UnknownGlossaryError, match="v3 has it"):
        glossaries.monolingual_json(glossary.outline)


def test_usage_is_bounded_by_its_limit() -> None:
    usage = Usage(10)
    with usage.reserve(10):
        usage.add(6)
    with usage.reserve(3):
        with usage.reserve(1):
            pass
        with pytest.raises(errors.QuotaError, match="9 of 10 characters are used, 2 more"), usage.reserve(2):
            pass
    with usage.reserve(4):
        pass
    assert usage.answer() == {"character_count": 6, "character_limit": 10}


def test_usage_without_a_limit_has_a_large_one() -> None:
    usage = Usage()
    with usage.reserve(UNLIMITED):
        pass
    assert usage.answer() == {"character_count": 0, "character_limit": UNLIMITED}
