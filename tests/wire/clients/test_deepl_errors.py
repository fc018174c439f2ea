"""What DeepL's own Python client makes of a pod that refuses, is late, or is not there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import deepl
import deepl.http_client
import httpx
import pytest

TALKING = {"source_lang": "EN", "target_lang": "DE"}

ClientOf = Callable[[str], deepl.DeepLClient]


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientOf]:
    """Makes clients that try three times, about a second apart, rather than six."""
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 2)
    clients: list[deepl.DeepLClient] = []

    def make(url: str) -> deepl.DeepLClient:
        clients.append(deepl.DeepLClient("any-key", server_url=url))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def wait_for_nothing(pod: Any) -> None:
    """Hold a pod's only place until the pod ends."""
    with suppress(httpx.TransportError):
        pod.translate("wait")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported"),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported"),
        ({"source_lang": "EN-US"}, "Value for 'source_lang' not supported"),
        ({"formality": "invalid"}, "Value for 'formality' not supported"),
        ({"target_lang": "EN-US", "formality": "more"}, "Target language 'en-US' doesn't support formality"),
        ({"split_sentences": "invalid"}, "Value for 'split_sentences' not supported"),
        ({"tag_handling": "markdown"}, "Value for 'tag_handling' not supported"),
        ({"model_type": "best"}, "Value for 'model_type' not supported"),
        ({"custom_instructions": ["x"] * 11}, "at most 10 instructions"),
        ({"custom_instructions": ["x" * 301]}, "at most 300 characters"),
        ({"extra_body_parameters": {"text": "one"}}, "Value for 'text' not supported"),
    ],
)
def test_wrong_values_are_bad_requests(
    scripted_pod: Any, client_of: ClientOf, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=f"Bad request, message: .*{message}") as refused:
        client_of(scripted_pod.url).translate_text("Hello", **{**TALKING, **options})
    assert refused.value.http_status_code == 400


def test_a_pair_that_is_not_served_is_refused_with_those_that_are(
    start_scripted: Any, client_of: ClientOf
) -> None:
    pod = start_scripted("--languages", '[{"source": "en", "targets": ["de"]}]')
    pod.wait_for("/readyz")
    client = client_of(pod.url)
    assert [language.code for language in client.get_source_languages()] == ["EN"]
    assert [language.code for language in client.get_target_languages()] == ["DE"]
    with pytest.raises(
        deepl.DeepLException,
        match=r"'target_lang' not supported.*en to fr .* targets are de",
    ):
        client.translate_text("Hello", source_lang="EN", target_lang="FR")


def test_a_request_that_is_too_large_is_not_tried_again(start_scripted: Any, client_of: ClientOf) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    with pytest.raises(deepl.DeepLException, match="413") as refused:
        client_of(pod.url).translate_text("x" * 128 * 1024, **TALKING)
    assert refused.value.http_status_code == 413
    assert pod.metric("dragoman_requests_total") == 1


def test_a_quota_that_is_used_up_is_not_tried_again(start_scripted: Any, client_of: ClientOf) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    client = client_of(pod.url)
    client.translate_text("123456", **TALKING)
    client.headers["X-Dragoman-Characters-Left"] = "4"
    with pytest.raises(deepl.QuotaExceededException, match="this key has 4 characters left") as refused:
        client.translate_text("12345", **TALKING)
    assert refused.value.http_status_code == 456
    assert pod.metric("dragoman_requests_total") == 2
    usage = client.get_usage().character
    assert (usage.count, usage.limit_reached) == (6, False)


def test_a_pod_that_loads_is_waited_for(start_served: Any, client_of: ClientOf) -> None:
    pod = start_served(load_s=1.5)
    pod.wait_for("/livez")
    result = client_of(pod.url).translate_text("Hello", **TALKING)
    assert isinstance(result, deepl.TextResult)
    assert result.text == "olleH"
    assert pod.metric("dragoman_requests_total") >= 2


def test_a_full_pod_responds_too_many_requests(
    start_scripted: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 1)
    pod = start_scripted("--max-queued-sequences", "0", max_num_seqs=1, first_token_s=60)
    pod.wait_for("/readyz")
    asking = threading.Thread(target=wait_for_nothing, args=(pod,), daemon=True)
    asking.start()
    pod.wait_for_metric("vllm:num_requests_running", 1)
    with pytest.raises(deepl.TooManyRequestsException) as refused:
        client_of(pod.url).translate_text("Hello", **TALKING)
    assert refused.value.http_status_code == 429
    assert pod.metric("dragoman_admission_refusals_total") == 2
    pod.process.kill()
    asking.join(10)


def test_an_engine_that_fails_is_tried_again(start_served: Any, client_of: ClientOf) -> None:
    pod = start_served(fail_every=2)
    pod.wait_for("/readyz")
    client = client_of(pod.url)
    for _ in range(2):
        result = client.translate_text("Hello", **TALKING)
        assert isinstance(result, deepl.TextResult)
        assert result.text == "olleH"


def test_a_pod_that_never_gets_ready_is_given_up(
    start_scripted: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 1)
    pod = start_scripted(load_s=60)
    pod.wait_for("/livez")
    with pytest.raises(deepl.DeepLException, match=r"Service unavailable, message: .*not ready") as refused:
        client_of(pod.url).translate_text("Hello", **TALKING)
    assert (refused.value.http_status_code, refused.value.should_retry) == (503, True)
    assert pod.metric("dragoman_requests_total") == 2


def test_a_closed_port_is_a_connection_error(
    start_scripted: Any, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 1)
    pod = start_scripted()
    pod.wait_for("/readyz")
    client = client_of(pod.url)
    client.get_usage()
    pod.end()
    with pytest.raises(deepl.ConnectionException, match="Connection failed"):
        client.translate_text("Hello", **TALKING)


def test_a_form_is_as_good_as_json(scripted_pod: Any) -> None:
    answer = httpx.post(
        f"{scripted_pod.url}/v2/translate",
        data={"auth_key": "any", "text": ["One", "Two"], "target_lang": "DE", "source_lang": "EN"},
    )
    assert answer.status_code == 200
    assert [each["text"] for each in answer.json()["translations"]] == ["enO", "owT"]
