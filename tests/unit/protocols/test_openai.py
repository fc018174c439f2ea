"""OpenAI's API: what its requests ask for, and what it answers."""

import json
from typing import Any

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols import errors
from dragoman_protocols.calls import Peek, Translate
from dragoman_protocols.chat import Chat, End, Sampling
from dragoman_protocols.errors import (
    CallerError,
    EmptyTextError,
    InvalidFieldError,
    ModelNotFoundError,
    RequestError,
)
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.openai.api import API, READING
from dragoman_protocols.routes import recognise
from dragoman_protocols.served import Need, model_not_found
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult

SERVED = (Languages(source="en", targets=("de", "pt-BR")), Languages(source="zh-Hant", targets=("pt-BR",)))
SITE = Site(offer_of([SERVED]), ("demo", "other"), Limits(1024, 1_000_000))
HELLO: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
INTO_GERMAN = {"translation_options": {"target_lang": "German"}}


def request_of(**fields: Any) -> Request:
    return Request("POST", "/v1/chat/completions", b"", [], json.dumps(HELLO | fields).encode())


def translate_of(**fields: Any) -> Translate:
    call = READING.read(request_of(**INTO_GERMAN, **fields), SITE)
    assert isinstance(call, Translate)
    return call


def chat_of(**fields: Any) -> Chat:
    call = READING.read(request_of(**fields), SITE)
    assert isinstance(call, Chat)
    return call


def test_translation_options_make_the_last_message_a_text() -> None:
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "not this"},
        {"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]},
    ]
    options = {
        "source_lang": "Traditional Chinese",
        "target_lang": "pt-BR",
        "terms": [{"source": "s", "target": "t"}],
        "tm_list": [{"source": "u", "target": "v"}],
        "domains": "about ships",
    }
    request = request_of(messages=messages, translation_options=options, temperature=1.5)
    call: Any = READING.read(request, SITE)
    assert call.requests == (
        TranslationRequest(
            ("a b",),
            "pt-BR",
            "zh-Hant",
            terms=(Term("s", "t"),),
            instructions=("about ships", "Keep to this earlier translation: 'u' became 'v'."),
        ),
    )
    assert READING.peek(request, SITE.offer) == Peek((Need("zh-Hant", ("pt-BR",), ("a b",)),), 3, "demo")
    assert translate_of().requests == (TranslationRequest(("Hello",), "de", None),)


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("de", "de"),
        ("zh-hant", "zh-hant"),
        ("Nepali", "ne"),
        ("brazilian portuguese", "pt-BR"),
        ("iw", "he"),
        ("Lao", "lo"),
        ("Serbo-Croatian", "sr-Latn"),
    ],
)
def test_languages_are_tags_or_english_names(name: str, tag: str) -> None:
    options = {"translation_options": {"target_lang": "de", "source_lang": name}}
    assert READING.peek(request_of(**options), SITE.offer).needs[0].source == tag


@pytest.mark.parametrize("field", ["source_lang", "target_lang"])
@pytest.mark.parametrize(
    "name", ["no such language", "pt_BR", " de", "", "German " * 20, "\0", "German\0", "ger\0man"]
)
def test_what_is_no_language_is_refused_by_pod_and_router(field: str, name: str) -> None:
    request = request_of(translation_options={"target_lang": "de"} | {field: name})
    with pytest.raises(CallerError):
        READING.read(request, SITE)
    with pytest.raises(CallerError):
        READING.peek(request, SITE.offer)


def test_a_translation_is_answered_as_a_completion() -> None:
    result = TranslationResult("Hallo", "en", prompt_tokens=9, output_tokens=2)
    answer = json.loads(translate_of().render([[result]]).body)
    assert (answer["object"], answer["model"]) == ("chat.completion", "demo")
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "Hallo"
    assert choice["finish_reason"] == "stop"
    assert answer["usage"] == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def chunks(raw: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in raw.decode().split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_streamed_translation_ends_with_its_usage_on_request() -> None:
    events = translate_of(stream=True, stream_options={"include_usage": True}).events
    assert events is not None
    result = TranslationResult("Hallo.", "en", prompt_tokens=9, output_tokens=2)
    raw = events.delta(Delta(0, "Hallo")) + events.delta(Delta(0, ".", result)) + events.end()
    first, second, last, usage, done = chunks(raw)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "Hallo"}
    assert second["choices"][0]["delta"] == {"content": "."}
    assert last["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 11)
    assert first["usage"] is None
    assert done == "[DONE]"
    assert len({chunk["id"] for chunk in (first, second, last, usage)}) == 1


def test_a_stream_that_fails_ends_with_the_error() -> None:
    error, done = chunks(chat_of(stream=True).writer.failed(errors.DeadlineExceededError("x")))
    assert (error["error"]["type"], done) == ("timeout_error", "[DONE]")


def test_without_options_it_is_a_chat() -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Hello"},
    ]
    chat = chat_of(
        messages=messages,
        **{"temperature": 0, "max_tokens": 7, "stop": "END", "seed": 3, "presence_penalty": 1},
        **{"user": "me", "logit_bias": {}},
    )
    assert chat.turns == (("system", "Be brief."), ("assistant", "Hi"), ("user", "Hello"))
    assert chat.sampling == Sampling(0, None, 7, ("END",), 3, presence_penalty=1)
    assert chat.characters == 16
    assert not chat.stream
    assert chat_of(stream=True).stream
    assert chat_of(max_tokens=3, max_completion_tokens=4).sampling.max_tokens == 4
    answer = json.loads(chat.writer.whole("Ho", End("length", 5, 7)).body)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] == 12


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": None}, "model must be a string"),
        ({"messages": []}, "messages must not be empty"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content must be a string or a list"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].",
        ),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            "messages[0].role must be one of system, developer, user, assistant",
        ),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the last one must have the role user"),
        ({"n": 2}, "n: only 1 is supported"),
        ({"temperature": 2.1}, "temperature must be at most 2"),
        ({"logprobs": True}, "logprobs are not supported"),
        ({"tools": [{"type": "function"}]}, "tools are not supported"),
        ({"response_format": {"type": "json_object"}}, "response_format.type: only text is supported"),
        ({"stop": [""]}, "stop: at most 16 strings, none of them empty"),
        ({"stop": ["a"] * 17}, "stop: at most 16 strings"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"seed": 2**63}, "seed"),
        ({"translation_options": {}}, "translation_options.target_lang is required"),
        ({"translation_options": {"target_lang": "de", "tone": "x"}}, "'tone' is no field"),
        (
            {"translation_options": {"target_lang": "de", "terms": [{"source": " ", "target": "x"}]}},
            "translation_options.terms[0]: source and target must not be blank",
        ),
        ({"messages": [{"role": "system", "content": "x"}], **INTO_GERMAN}, "none has the role user"),
    ],
)
def test_what_would_change_the_answer_and_is_not_supported_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        READING.read(request_of(**fields), SITE)
    assert message in str(refused.value)


def test_a_blank_message_is_refused() -> None:
    with pytest.raises(EmptyTextError):
        chat_of(messages=[{"role": "user", "content": " "}])


def test_a_router_reads_content_that_this_version_does_not_know() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "ab"}]
    messages = [{"role": "tool", "content": None}, {"role": "user", "content": parts}]
    assert READING.peek(request_of(messages=messages), SITE.offer) == Peek((), 2, "demo")


def test_a_router_requires_a_model() -> None:
    with pytest.raises(InvalidFieldError, match="model must be a string"):
        READING.peek(request_of(model=None), SITE.offer)


def respond(path: str, site: Site = SITE) -> Answer:
    request = Request("GET", path, b"", [])
    endpoint = recognise(request)
    assert endpoint.respond is not None
    return endpoint.respond(request, site)


def test_models_are_listed() -> None:
    listed = json.loads(respond("/v1/models").body)
    assert (listed["object"], [each["id"] for each in listed["data"]]) == ("list", ["demo", "other"])
    one = json.loads(respond("/v1/models/demo").body)
    assert one == listed["data"][0]
    with_slash = Site(SITE.offer, ("org/model",), SITE.limits)
    assert json.loads(respond("/v1/models/org/model", with_slash).body)["id"] == "org/model"
    with pytest.raises(ModelNotFoundError):
        respond("/v1/models/{name}")


def test_a_model_that_is_not_served_is_refused_with_those_that_are() -> None:
    with pytest.raises(ModelNotFoundError) as refused:
        READING.read(request_of(model="gpt-5"), SITE)
    answer = API.error(refused.value, request_of())
    assert answer.status == 404
    assert json.loads(answer.body)["error"] == {
        "message": "no model 'gpt-5' here; there are 'demo', 'other'",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    assert str(model_not_found("x", ("demo",))) == "no model 'x' here; there is 'demo'"
    assert str(model_not_found("x", ())) == "no model 'x' here"
    assert len(str(model_not_found("x" * 1000, ["y" * 9] * 100))) < 400


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{}]}, "tools"),
        ({"temperature": 3}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user"}, {"role": "user", "content": "x"}]}, "messages[0].content"),
        ({"model": "none"}, "model"),
        ({"translation_options": {"target_lang": "xx"}}, "translation_options.target_lang"),
        (
            {"translation_options": {"target_lang": "de", "source_lang": "xx"}},
            "translation_options.source_lang",
        ),
        ({"translation_options": {"target_lang": "de", "x": 1}}, "x"),
    ],
)
def test_an_error_names_its_parameter(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(CallerError) as refused:
        READING.read(request_of(**fields), SITE)
    assert json.loads(API.error(refused.value, request_of()).body)["error"]["param"] == param


def test_an_assistant_s_message_may_have_no_content() -> None:
    turns = [{"role": "assistant", "content": None}, {"role": "assistant"}, {"role": "user", "content": "x"}]
    found = READING.read(request_of(messages=turns), SITE)
    assert isinstance(found, Chat)
    assert found.turns == (("assistant", ""), ("assistant", ""), ("user", "x"))


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (CallerError("x"), 400, "invalid_request_error", "bad_request"),
        (errors.TextTooLongError("x"), 400, "invalid_request_error", "context_length_exceeded"),
        (errors.BodyTooLargeError("x"), 413, "invalid_request_error", "body_too_large"),
        (errors.UnknownPathError("x"), 404, "invalid_request_error", "not_found"),
        (errors.UnknownDeploymentError("x"), 404, "invalid_request_error", "model_not_found"),
        (errors.KeyRefusedError("x"), 401, "invalid_request_error", "key_refused"),
        (errors.QuotaError("x"), 429, "insufficient_quota", "insufficient_quota"),
        (errors.RateLimitedError("x", 5), 429, "rate_limit_error", "rate_limited"),
        (errors.DrainingError("x", 5), 503, "service_unavailable_error", "draining"),
        (errors.OverloadedError("x", 5), 503, "service_unavailable_error", "overloaded"),
        (errors.QueueFullError("x", 5), 503, "service_unavailable_error", "overloaded"),
        (errors.DeadlineExceededError("x"), 504, "timeout_error", "timeout"),
        (errors.UpstreamError("x"), 502, "server_error", "upstream_failed"),
        (errors.GenerationError("x"), 500, "server_error", "generation_failed"),
    ],
)
def test_errors_have_openais_shape(error: RequestError, status: int, kind: str, code: str) -> None:
    answer = API.error(error, request_of())
    message = json.loads(answer.body)["error"]
    assert sorted(message) == ["code", "message", "param", "type"]
    assert (answer.status, message["type"], message["code"]) == (status, kind, code)
    retry = "5" if isinstance(error, errors.CapacityError) else None
    assert dict(answer.headers).get("Retry-After") == retry
