"""`/v3/languages`."""

import json
from typing import Any

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.deepl.languages import respond_languages, respond_resources
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.site import Limits, Site

SERVED = (
    Languages(source="en", targets=("de", "zh-Hans")),
    Languages(source="no", targets=("en",)),
    Languages(source="de", targets=("en",)),
)
SITE = Site(offer_of([SERVED]), ("m",), Limits(3, 1000))


def listed(query: str) -> dict[str, Any]:
    answer = json.loads(respond_languages(Request("GET", "/v3/languages", query.encode(), []), SITE).body)
    return {each.pop("lang"): each for each in answer}


def test_sources_and_targets_of_texts_with_their_features() -> None:
    found = listed("resource=translate_text")
    assert {lang: (each["usable_as_source"], each["usable_as_target"]) for lang, each in found.items()} == {
        "de": (True, True),
        "en": (True, False),
        "en-GB": (False, True),
        "en-US": (False, True),
        "nb": (True, False),
        "zh": (False, True),
        "zh-Hans": (False, True),
    }
    assert found["de"]["name"] == "German"
    both = {"glossary", "tag_handling"}
    assert set(found["de"]["features"]) == both | {"auto_detection", "formality", "style_rules"}
    assert set(found["en"]["features"]) == both | {"auto_detection"}
    assert set(found["en-GB"]["features"]) == both | {"style_rules"}
    assert all(each["status"] == "stable" for each in found.values())


def test_glossaries_have_no_variants_and_documents_no_tag_handling() -> None:
    assert set(listed("resource=glossary")) == {"de", "en", "nb", "zh"}
    assert set(listed("resource=style_rules")) == {"de", "en", "zh"}
    assert "tag_handling" not in listed("resource=translate_document")["de"]["features"]


def test_a_resource_that_is_not_served_has_no_languages() -> None:
    assert listed("resource=voice") == {}
    assert listed("resource=glossary&include=beta&include=external")


@pytest.mark.parametrize("query", ["", "resource=", "resource=x", "resource=voice&include=all"])
def test_other_queries_are_refused(query: str) -> None:
    with pytest.raises(InvalidFieldError, match=r"resource|include"):
        listed(query)


def test_resources_and_what_their_features_need() -> None:
    answer = json.loads(respond_resources(Request("GET", "/v3/languages/resources", b"", []), SITE).body)
    texts = next(each for each in answer if each["name"] == "translate_text")
    assert {"name": "formality", "needs_target_support": True} in texts["features"]
    assert {"name": "auto_detection", "needs_source_support": True} in texts["features"]
