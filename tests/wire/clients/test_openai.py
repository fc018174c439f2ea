"""openai as it is on PyPI, with another base URL."""

import time
from typing import Any

import openai
import pytest

CAT = "The cat sleeps."
REQUEST: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": CAT}]}
INTO_GERMAN = {"translation_options": {"source_lang": "English", "target_lang": "German"}}


def client_of(pod: Any, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{pod.url}/v1", api_key="any", **options)


def test_models(demo_pod: Any) -> None:
    client = client_of(demo_pod)
    assert [model.id for model in client.models.list()] == ["demo"]
    assert client.models.retrieve("demo").owned_by == "dragoman"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("gpt-5")
    assert refused.value.code == "model_not_found"


def test_a_translation(demo_pod: Any) -> None:
    done = client_of(demo_pod).chat.completions.create(**REQUEST, extra_body=INTO_GERMAN)
    assert done.choices[0].message.content == "Die Katze schläft."
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert done.usage.completion_tokens > 0
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def test_a_streamed_translation_of_two_sentences(demo_pod: Any) -> None:
    messages = [{"role": "user", "content": "The bus leaves at 10:45. The farmer likes fish."}]
    options = {"translation_options": {"source_lang": "auto", "target_lang": "fr"}}
    stream = client_of(demo_pod).chat.completions.create(
        model="demo",
        messages=messages,
        stream=True,
        stream_options={"include_usage": True},
        extra_body=options,
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Le bus part à 10 h 45. L'agriculteur aime le poisson."
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) >= 2
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


PROMPT = "Translate the following text from English into French.\nEnglish: The cat sleeps.\nFrench:"


def test_a_chat_goes_to_the_model_as_it_is(demo_pod: Any) -> None:
    client = client_of(demo_pod)
    messages: Any = [{"role": "user", "content": PROMPT}]
    done = client.chat.completions.create(model="demo", messages=messages, temperature=0, seed=1)
    assert (done.choices[0].message.content or "").strip() == "Le chat dort."
    assert done.choices[0].finish_reason == "stop"
    short = client.chat.completions.create(model="demo", messages=messages, max_tokens=2, temperature=0)
    assert short.choices[0].finish_reason == "length"
    assert short.usage is not None
    assert short.usage.completion_tokens == 2
    ended = client.chat.completions.create(model="demo", messages=messages, stop=["dort"], temperature=0)
    assert (ended.choices[0].message.content or "").strip() == "Le chat"


def test_a_streamed_chat_with_turns(demo_pod: Any) -> None:
    messages: Any = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Bonjour"},
        {"role": "user", "content": PROMPT},
    ]
    client = client_of(demo_pod)
    with client.chat.completions.stream(model="demo", messages=messages, temperature=0) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    # One delta is possible: vLLM joins the outputs of steps that the HTTP process has not read yet.
    assert "".join(deltas) == final.choices[0].message.content
    assert "".join(deltas).strip() == "Le chat dort."


async def test_the_asynchronous_client(demo_pod: Any) -> None:
    async with openai.AsyncOpenAI(base_url=f"{demo_pod.url}/v1", api_key="any") as client:
        done = await client.chat.completions.create(**REQUEST, extra_body=INTO_GERMAN)
    assert done.choices[0].message.content == "Die Katze schläft."


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"model": "gpt-5"}, openai.NotFoundError, "model_not_found"),
        ({"n": 2}, openai.BadRequestError, "invalid_field"),
        (
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            openai.BadRequestError,
            "invalid_field",
        ),
        (
            {"extra_body": {"translation_options": {"target_lang": "Japanese", "source_lang": "en"}}},
            openai.BadRequestError,
            "unsupported_pair",
        ),
        (
            {"messages": [{"role": "user", "content": "a " * 3000}]},
            openai.BadRequestError,
            "context_length_exceeded",
        ),
    ],
)
def test_refusals(demo_pod: Any, fields: dict[str, Any], error: Any, code: str) -> None:
    with pytest.raises(error) as refused:
        client_of(demo_pod).chat.completions.create(**REQUEST | fields)
    assert refused.value.code == code
    assert refused.value.type == "invalid_request_error"


def test_a_request_to_a_loading_pod_is_retried_after_retry_after(start_served: Any) -> None:
    began_s = time.monotonic()
    pod = start_served(load_s=2.0)
    pod.wait_for("/livez")
    done = client_of(pod).chat.completions.create(**REQUEST | {"model": "org/model"}, extra_body=INTO_GERMAN)
    assert done.choices[0].message.content == CAT[::-1]
    assert time.monotonic() - began_s >= 2


def test_a_failing_request_is_retried_twice(start_served: Any) -> None:
    pod = start_served(fail_every=1)
    pod.wait_for("/readyz")
    with pytest.raises(openai.InternalServerError) as refused:
        client_of(pod).chat.completions.create(**REQUEST | {"model": "org/model"}, extra_body=INTO_GERMAN)
    assert refused.value.code == "generation_failed"
    assert pod.metric("dragoman_requests_total") == 3


def test_an_error_within_a_stream(start_served: Any) -> None:
    pod = start_served("--request-timeout-s", "1", token_s=0.2)
    pod.wait_for("/readyz")
    long: Any = [{"role": "user", "content": "abcd" * 40}]
    stream = client_of(pod).chat.completions.create(model="org/model", messages=long, stream=True)
    with pytest.raises(openai.APIError, match="not finished within"):
        list(stream)


def test_a_client_that_leaves_a_stream_frees_its_place(start_served: Any) -> None:
    pod = start_served(token_s=0.2)
    pod.wait_for("/readyz")
    long: Any = [{"role": "user", "content": "abcd" * 400}]
    client = client_of(pod)
    stream = client.chat.completions.create(model="org/model", messages=long, stream=True)
    next(iter(stream))
    assert pod.metric("vllm:num_requests_running") == 1
    stream.close()
    pod.wait_for_metric("vllm:num_requests_running", 0)  # By itself it would take over a minute.
    pod.wait_for_metric("dragoman_requests_in_flight", 0)
