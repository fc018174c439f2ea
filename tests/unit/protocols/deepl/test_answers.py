"""Answers and errors in DeepL's shape."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman_protocols import errors
from dragoman_protocols.deepl import errors as deepl_errors
from dragoman_protocols.deepl import glossaries
from dragoman_protocols.deepl.api import UNLIMITED
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import Offer
from dragoman_protocols.routes import recognise
from dragoman_protocols.site import Limits, Site, Usage

CAT = Dictionary("en", "de", (Entry("cat", "Katze"),))
DOG = Dictionary("en", "fr", (Entry("dog", "chien"),))
NOTHING_USED = Usage(0)


def make_glossary(*dictionaries: Dictionary) -> StoredGlossary:
    return StoredGlossary("id", "Animals", datetime(2026, 11, 1, tzinfo=UTC), dictionaries)


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
        (errors.UnknownPathError("why"), 404, {"message": "why"}),
        (errors.BodyTooLargeError("why"), 413, {"message": "why"}),
        (errors.TextTooLongError("why"), 413, {"message": "why"}),
        (deepl_errors.UriTooLongError("why"), 414, {"message": "why"}),
        (deepl_errors.MediaTypeError("why"), 415, {"message": "why"}),
        (errors.CapacityError("why", 7), 429, {"message": "Too many requests", "detail": "why"}),
        (
            errors.UnknownLanguageError("why", "xx", "source"),
            400,
            {"message": "Value for 'source_lang' not supported.", "detail": "why"},
        ),
        (
            errors.UnsupportedPairError("why", "de"),
            400,
            {"message": "Value for 'target_lang' not supported.", "detail": "why"},
        ),
        (errors.UnsupportedFileError("why"), 400, {"message": "Invalid file data.", "detail": "why"}),
        (errors.BrokenFileError("why"), 400, {"message": "Invalid file data.", "detail": "why"}),
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
    refused = deepl_errors.API.error(error, Request("POST", "/v2/translate", b"", []))
    assert (refused.status, json.loads(refused.body)) == (status, body)
    assert ("Retry-After" in dict(refused.headers)) is isinstance(error, errors.CapacityError)


def test_a_glossary_of_one_pair_is_described_for_both_versions() -> None:
    glossary = make_glossary(CAT)
    pair = {"source_lang": "en", "target_lang": "de", "entry_count": 1}
    frame = {"glossary_id": "id", "name": "Animals", "creation_time": "2026-11-01T00:00:00.000000Z"}
    assert glossaries.monolingual_json(glossary.outline) == {**frame, **pair, "ready": True}
    assert glossaries.multilingual_json(glossary.outline) == {**frame, "dictionaries": [pair]}
    assert glossaries.entries_json(CAT)["dictionaries"] == [
        {"source_lang": "en", "target_lang": "de", "entries": "cat\tKatze", "entries_format": "tsv"}
    ]


def respond(path: str, query: bytes = b"", usage: Usage = NOTHING_USED) -> Any:
    offer = Offer(("en", "de"), {"en": ("de", "zh-Hans"), "de": ("en",)})
    request = Request("GET", path, query, [])
    endpoint = recognise(request)
    assert endpoint.respond is not None
    site = Site(offer, ("m",), Limits(None, 1000), usage=usage)
    return json.loads(endpoint.respond(request, site).body)


def test_languages_usage_and_pairs_are_listed() -> None:
    assert respond("/v2/languages") == [
        {"language": "DE", "name": "German"},
        {"language": "EN", "name": "English"},
    ]
    targets = respond("/v2/languages", b"type=target")
    assert [each["language"] for each in targets] == ["DE", "EN-GB", "EN-US", "ZH", "ZH-HANS"]
    assert respond("/v2/usage", usage=Usage(6, 10)) == {"character_count": 6, "character_limit": 10}
    assert respond("/v2/usage") == {"character_count": 0, "character_limit": UNLIMITED}
    assert respond("/v2/glossary-language-pairs")["supported_languages"] == [
        {"source_lang": "de", "target_lang": "en"},
        {"source_lang": "en", "target_lang": "de"},
        {"source_lang": "en", "target_lang": "zh"},
    ]


@pytest.mark.parametrize("path", ["/v2/write/rephrase", "/v3/style_rulesx", "/v2/glossariesx"])
def test_other_paths_are_not_served(path: str) -> None:
    with pytest.raises(errors.UnknownPathError, match=f"GET {path} is not served here"):
        respond(path)


@pytest.mark.parametrize("dictionaries", [(), (CAT, DOG)])
def test_v2_knows_only_glossaries_of_one_pair(dictionaries: tuple[Dictionary, ...]) -> None:
    glossary = make_glossary(*dictionaries)
    assert glossaries.monolingual([glossary.outline, make_glossary(CAT).outline]) == [
        make_glossary(CAT).outline
    ]
    with pytest.raises(errors.UnknownGlossaryError, match="v3 has it"):
        glossaries.monolingual_json(glossary.outline)
