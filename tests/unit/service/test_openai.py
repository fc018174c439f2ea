import json
from typing import Any

import pytest
from starlette.requests import Request

from dragoman_protocols import errors
from dragoman_protocols.errors import CallerError, InvalidFieldError, RequestError, UnknownLanguageError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult
from dragoman_service.dialects.openai.answers import ModelNotFoundError
from dragoman_service.dialects.openai.chat import Chat, sampling
from dragoman_service.dialects.openai.dialect import OpenAI, tag_of
from dragoman_service.dialects.openai.shapes import ChatRequest
from dragoman_service.engine.protocol import Decoding
from dragoman_service.http.work import Call

OPENAI = OpenAI("demo")
HELLO: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
INTO_GERMAN = {"translation_options": {"target_lang": "German"}}


def read(**fields: Any) -> Any:
    request = Request({"type": "http", "headers": []})
    return OPENAI.read(request, json.dumps(HELLO | fields).encode())


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
    call = read(messages=messages, translation_options=options, temperature=1.5)
    assert isinstance(call, Call)
    assert call.requests == (
        TranslationRequest(
            ("a b",),
            "pt-BR",
            "zh-Hant",
            terms=(Term("s", "t"),),
            instructions=("about ships", "Keep to this earlier translation: 'u' became 'v'."),
        ),
    )
    assert read(**INTO_GERMAN).requests == (TranslationRequest(("Hello",), "de", None),)


def test_a_translation_is_answered_as_a_completion() -> None:
    result = TranslationResult("Hallo", "en", prompt_tokens=9, output_tokens=2)
    answer = json.loads(read(**INTO_GERMAN).render([[result]]).body)
    assert (answer["object"], answer["model"]) == ("chat.completion", "demo")
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "Hallo"
    assert choice["finish_reason"] == "stop"
    assert answer["usage"] == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def chunks(raw: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in raw.decode().split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_streamed_translation_ends_with_its_usage_where_that_is_wanted() -> None:
    call = read(**INTO_GERMAN, stream=True, stream_options={"include_usage": True})
    result = TranslationResult("Hallo.", "en", prompt_tokens=9, output_tokens=2)
    raw = call.events.delta(Delta(0, "Hallo")) + call.events.delta(Delta(0, ".", result)) + call.events.end()
    first, second, last, usage, done = chunks(raw)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "Hallo"}
    assert second["choices"][0]["delta"] == {"content": "."}
    assert last["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 11)
    assert first["usage"] is None
    assert done == "[DONE]"
    assert len({chunk["id"] for chunk in (first, second, last, usage)}) == 1


def test_without_options_it_is_a_chat_with_the_callers_sampling() -> None:
    usual = Decoding(temperature=0.7, top_p=0.6, top_k=20, stop=("</s>",), max_prompt_tokens=5)
    chat = read(temperature=0, max_tokens=7, stop="END", seed=3, presence_penalty=1, user="me", logit_bias={})
    assert isinstance(chat, Chat)
    assert sampling(chat.asked, usual, 100) == Decoding(
        temperature=0,
        top_p=0.6,
        top_k=20,
        stop=("</s>", "END"),
        max_tokens=7,
        seed=3,
        presence_penalty=1,
        stop_on_repetition=False,
    )
    assert sampling(read().asked, usual, 100).max_tokens == 100
    assert sampling(read(max_tokens=3, max_completion_tokens=4).asked, usual, 100).max_tokens == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"n": 2},
        {"temperature": 2.1},
        {"logprobs": True},
        {"tools": [{"type": "function"}]},
        {"response_format": {"type": "json_object"}},
        {"stop": [""]},
        {"stop": ["a"] * 17},
        {"max_tokens": 0},
        {"seed": 2**63},
        {"translation_options": {}},
        {"translation_options": {"target_lang": "de", "tone": "x"}},
        {"messages": [{"role": "system", "content": "x"}], **INTO_GERMAN},
    ],
)
def test_what_would_change_the_answer_and_cannot_be_had_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidFieldError):
        read(**fields)


def test_only_the_served_model_is_there() -> None:
    with pytest.raises(ModelNotFoundError) as refused:
        read(model="gpt-5")
    answer = OPENAI.refuse(refused.value)
    assert answer.status_code == 404
    assert json.loads(bytes(answer.body))["error"] == {
        "message": "no model 'gpt-5' here; there is 'demo'",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CallerError("x"), 400, "bad_request"),
        (errors.TextTooLongError("x"), 400, "context_length_exceeded"),
        (errors.BodyTooLargeError("x"), 413, "body_too_large"),
        (errors.DrainingError("x", retry_after_s=5), 503, "draining"),
        (errors.DeadlineExceededError("x"), 504, "timeout"),
        (errors.GenerationError("x"), 500, "generation_failed"),
    ],
)
def test_errors_have_openais_shape(error: RequestError, status: int, code: str) -> None:
    answer = OPENAI.refuse(error)
    assert answer.status_code == status
    said = json.loads(bytes(answer.body))["error"]
    assert sorted(said) == ["code", "message", "param", "type"]
    assert said["code"] == code
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)


def test_languages_go_by_tag_or_english_name() -> None:
    assert [tag_of(name) for name in ("de", "zh-Hant", "Nepali", "brazilian portuguese")] == [
        "de",
        "zh-Hant",
        "ne",
        "pt-BR",
    ]
    with pytest.raises(UnknownLanguageError):
        tag_of("no such language")


@pytest.mark.parametrize("name", ["\0", "\0" * 13, "German\0", "ger\0man", "abc\0\0\0\0\0", "\ud800"])
def test_names_that_langcodes_reads_beyond_its_data_for_are_refused(name: str) -> None:
    with pytest.raises(UnknownLanguageError):
        tag_of(name)


def test_the_last_turn_of_a_chat_must_be_the_users() -> None:
    class Core:
        class family:
            framing = "chat"

    core: Any = Core()
    asked = {"model": "demo", "messages": [{"role": "assistant", "content": "x"}]}
    chat = Chat(ChatRequest.model_validate(asked), read().completion)
    with pytest.raises(InvalidFieldError):
        chat.check(core)
    blank = {"model": "demo", "messages": [{"role": "user", "content": " "}]}
    with pytest.raises(errors.EmptyTextError):
        Chat(ChatRequest.model_validate(blank), read().completion).check(core)
