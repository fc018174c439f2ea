"""What DeepL's requests mean, from their bytes to the core's values."""

import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.calls import Peek, Translate
from dragoman_protocols.deepl import glossaries, translate
from dragoman_protocols.deepl.fields import Fields, bounded_fields, fields_of
from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Formality, Format, Split, TranslationRequest, TranslationResult

SMALLEST: dict[str, Any] = {"text": ["Hello"], "target_lang": "DE"}
FORM = "application/x-www-form-urlencoded"
SITE = Site(offer_of([()]), ("m",), Limits(3, 1_000_000))


def make_request(body: bytes, content_type: str = "application/json", query: str = "") -> Request:
    headers = [(b"content-type", content_type.encode("latin-1", "replace"))]
    return Request("POST", "/v2/translate", query.encode(), headers, body)


def call(**fields: Any) -> Translate:
    return translate.READING.read(make_request(json.dumps({**SMALLEST, **fields}).encode()), SITE)


def request_of(**fields: Any) -> TranslationRequest:
    (request,) = call(**fields).requests
    return request


def test_the_smallest_request_leaves_all_to_the_deployment() -> None:
    found = call()
    assert found.requests == (TranslationRequest(("Hello",), "de", ignore_unsupported=True),)
    request = make_request(json.dumps(SMALLEST).encode())
    assert translate.READING.peek(request, SITE.offer) == Peek(
        (Need(None, ("de",), ("Hello",), keeps=True),), 5
    )


def test_each_field_reaches_the_core() -> None:
    assert request_of(
        text=["Hello", "there"],
        source_lang="EN",
        target_lang="PT-BR",
        context="A greeting.",
        split_sentences="nonewlines",
        preserve_formatting=True,
        formality="less",
        tag_handling="xml",
        ignore_tags=["x", "y,z"],
        splitting_tags="p, li",
        non_splitting_tags=["i"],
        custom_instructions=["Be brief.", " "],
    ) == TranslationRequest(
        texts=("Hello", "there"),
        target_lang="pt-BR",
        source_lang="en",
        format=Format.XML,
        split=Split.NO_LINES,
        formality=Formality.LESS,
        context="A greeting.",
        instructions=("Be brief.",),
        ignore_tags=frozenset("xyz"),
        splitting_tags=frozenset({"p", "li"}),
        non_splitting_tags=frozenset("i"),
    )


@pytest.mark.parametrize(
    ("sent", "split"), [("0", Split.NONE), (0, Split.NONE), ("1", None), (1, None), (None, None)]
)
def test_sentences_are_split_as_requested(sent: object, split: Split | None) -> None:
    assert request_of(split_sentences=sent).split is split


@pytest.mark.parametrize(
    ("sent", "is_on"), [(True, True), ("1", True), (1, True), ("false", False), (None, False)]
)
def test_yes_and_no_come_in_many_forms(sent: object, is_on: bool) -> None:
    fields = fields_of(make_request(json.dumps({"preserve_formatting": sent}).encode()))
    assert bool(fields.flag("preserve_formatting")) is is_on


def test_a_form_says_the_same_as_json() -> None:
    form = [
        ("auth_key", "secret"),
        ("text", "one & two"),
        ("text", ""),
        ("text", "drei+ü"),
        ("target_lang", "EN-GB"),
        ("source_lang", ""),
        ("preserve_formatting", "1"),
        ("split_sentences", "0"),
        ("ignore_tags", "x,y"),
        ("glossary_ids", ""),
    ]
    request = make_request(urlencode(form).encode(), f"{FORM}; charset=utf-8")
    found = translate.READING.read(request, SITE)
    assert translate.READING.peek(request, SITE.offer).needs == (
        Need(None, ("en-GB",), ("one & two", "", "drei+ü"), keeps=True),
    )
    assert found.requests == (
        TranslationRequest(
            ("one & two", "drei+ü"),
            "en-GB",
            split=Split.NONE,
            ignore_tags=frozenset("xy"),
            ignore_unsupported=True,
        ),
    )


def test_a_form_may_be_sent_without_escapes() -> None:
    found = translate.READING.read(make_request("text=Füße&target_lang=DE".encode(), FORM), SITE)
    assert found.requests[0].texts == ("Füße",)


def test_without_a_body_the_query_counts_and_beside_one_it_does_not() -> None:
    found = translate.READING.read(make_request(b"", query="text=Hello&target_lang=DE"), SITE)
    assert found.requests[0].texts == ("Hello",)
    beside = translate.READING.read(make_request(json.dumps(SMALLEST).encode(), query="target_lang=FR"), SITE)
    assert beside.requests[0].target_lang == "de"


def test_a_long_query_is_refused_where_it_is_not_for_a_translation() -> None:
    request = make_request(b"", query=f"type={'x' * 8192}")
    assert fields_of(request).text("type")
    with pytest.raises(CallerError, match="the query has more than 8192 bytes"):
        bounded_fields(request)


def test_blank_texts_are_none_of_the_cores_business() -> None:
    found = call(text=["", " \n"])
    assert (found.requests, found.characters) == ((), 2)
    answer = json.loads(found.render([]).body)
    assert [each["text"] for each in answer["translations"]] == ["", " \n"]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({}, {}),
        ({"model_type": "prefer_quality_optimized"}, {"model_type_used": "quality_optimized"}),
        ({"model_type": "latency_optimized"}, {"model_type_used": "latency_optimized"}),
        ({"tag_handling": "html"}, {"tag_handling_version": "v2"}),
        ({"tag_handling": "html", "tag_handling_version": "v1"}, {"tag_handling_version": "v1"}),
        ({"tag_handling_version": "v1"}, {}),
    ],
)
def test_the_answer_has_the_language_the_length_and_what_was_requested(
    fields: dict[str, Any], labels: dict[str, str]
) -> None:
    rendered = call(text=["Hallo 🪨", " ", "Hello"], target_lang="FR", **fields).render(
        [[TranslationResult("Bonjour", "de"), TranslationResult("Salut", "en-US", confidence=0.9)]]
    )
    assert json.loads(rendered.body)["translations"] == [
        {"detected_source_language": "DE", "text": "Bonjour", "billed_characters": 7, **labels},
        {"detected_source_language": "UND", "text": " ", "billed_characters": 1, **labels},
        {"detected_source_language": "EN", "text": "Salut", "billed_characters": 5, **labels},
    ]


@pytest.mark.parametrize(
    ("fields", "ignored"),
    [
        ({"context": "A greeting."}, True),
        ({"formality": "prefer_more"}, True),
        ({"formality": "more"}, False),
        ({"custom_instructions": ["Be brief."]}, False),
        ({"glossary_id": "x", "source_lang": "EN"}, False),
    ],
)
def test_hints_are_ignored_where_unsupported_and_explicit_options_are_not(
    fields: dict[str, Any], ignored: bool
) -> None:
    assert request_of(**fields).ignore_unsupported is ignored


@pytest.mark.parametrize("target", ["EN-US", "ZH", "TR"])
def test_a_tone_that_a_language_does_not_have(target: str) -> None:
    for tone in ("more", "less"):
        with pytest.raises(InvalidFieldError, match="doesn't support formality"):
            request_of(target_lang=target, formality=tone)
    for hint in ("prefer_more", "prefer_less", "default", None):
        assert request_of(target_lang=target, formality=hint).formality is Formality.DEFAULT


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": None}, "Parameter 'text' not specified."),
        ({"text": []}, "Parameter 'text' not specified."),
        ({"text": "Hello"}, "Value for 'text' not supported."),
        ({"text": [1]}, "Value for 'text' not supported."),
        ({"text": ["x"] * 4}, "Too many texts in this request: 4; at most 3 are accepted."),
        ({"target_lang": None}, "Parameter 'target_lang' not specified."),
        ({"target_lang": ["DE"]}, "Value for 'target_lang' not supported."),
        ({"source_lang": "auto"}, "Value for 'source_lang' not supported."),
        ({"preserve_formatting": 2}, "Value for 'preserve_formatting' not supported."),
        ({"preserve_formatting": []}, "Value for 'preserve_formatting' not supported."),
        ({"outline_detection": "maybe"}, "Value for 'outline_detection' not supported."),
        ({"show_billed_characters": "x"}, "Value for 'show_billed_characters' not supported."),
        ({"split_sentences": True}, "Value for 'split_sentences' not supported."),
        ({"ignore_tags": {"x": 1}}, "Value for 'ignore_tags' not supported."),
        ({"context": ["x"]}, "Value for 'context' not supported."),
        ({"translation_memory_id": "x"}, "Value for 'translation_memory_id' not supported."),
        ({"glossary_id": "x"}, "Use of a glossary requires the source_lang parameter to be specified"),
        ({"glossary_ids": list("abcdef")}, "glossary_ids: at most 5 glossaries"),
        (
            {"glossary_id": "x", "glossary_ids": ["y"]},
            "glossary_id and glossary_ids cannot be used together",
        ),
    ],
)
def test_invalid_values_get_deepls_messages(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        call(**wrong)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, ()),
        ({"glossary_id": "a"}, ("a",)),
        ({"glossary_id": "", "glossary_ids": ["a", "b,c"]}, ("a", "b", "c")),
        ({"glossary_ids": " a , b ,"}, ("a", "b")),
    ],
)
def test_glossaries_keep_their_order(fields: dict[str, Any], named: tuple[str, ...]) -> None:
    found = call(source_lang="EN", **fields)
    assert found.glossary_ids == named


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("application/json", b"{", "the body is not JSON"),
        ("text/plain", b"text=Hello", "the body is not JSON"),
        ("application/json", b"\xff", "the body is not JSON"),
        ("application/json", b'{"text": ' * 100_000, "the body is not JSON"),
        ("application/json", b'{"text": NaN}', "the body is not JSON"),
        (FORM, b"text=\xff", "the form is not UTF-8"),
        (FORM, b"text=%ff", "the form is not UTF-8"),
        (FORM, b"&".join([b"a=b"] * 4_097), "the form has more than 4096 fields"),
    ],
)
def test_a_body_that_is_not_what_it_says(content_type: str, body: bytes, message: str) -> None:
    with pytest.raises(MalformedRequestError, match=message):
        fields_of(make_request(body, content_type))


def test_json_has_to_be_an_object() -> None:
    with pytest.raises(InvalidFieldError, match="must be a JSON object"):
        fields_of(make_request(b"[1]"))


NAMES = [
    *("text", "target_lang", "source_lang", "context", "split_sentences", "preserve_formatting", "formality"),
    *("glossary_id", "glossary_ids", "tag_handling", "ignore_tags", "splitting_tags", "non_splitting_tags"),
    *("outline_detection", "model_type", "custom_instructions", "show_billed_characters", "style_id"),
    *("name", "dictionaries", "entries", "entries_format", "type"),
]
CODES = st.sampled_from(["DE", "EN", "EN-US", "zh-hans", "xx", "x-y", "*"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | CODES
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner), max_leaves=10
)
LIKELY = st.fixed_dictionaries(
    {"text": st.lists(st.text(), min_size=1, max_size=4), "target_lang": CODES},
    optional=dict.fromkeys(NAMES[2:], VALUES),
)
READERS = [
    lambda fields: translate.call(fields, translate.find(fields, SITE.offer), SITE),
    glossaries.read_monolingual,
    glossaries.read_multilingual,
    glossaries.read_change,
    glossaries.read_pair,
]


@given(st.dictionaries(st.sampled_from(NAMES), VALUES) | LIKELY, st.sampled_from(READERS))
def test_any_json_is_read_or_refused_as_the_callers_error(document: dict[str, Any], read: Any) -> None:
    with suppress(CallerError):
        read(Fields(document))


@given(
    st.binary()
    | st.lists(st.tuples(st.sampled_from(NAMES), st.text())).map(lambda form: urlencode(form).encode()),
    st.sampled_from([FORM, "application/json", "", "text/plain; charset=utf-16"]),
    st.text(st.characters(max_codepoint=126)),
    st.sampled_from(READERS),
)
def test_any_body_is_read_or_refused_as_the_callers_error(
    body: bytes, content_type: str, query: str, read: Any
) -> None:
    with suppress(CallerError):
        read(fields_of(make_request(body, content_type, query)))
