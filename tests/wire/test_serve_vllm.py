"""What a pod with real vLLM does, on the one that all tests share; that one's end is checked where it ends."""

import json
import re
import socket
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.support.demo_pod import DemoPod

ROOT = Path(__file__).parents[2]
NOT_EMITTED = {
    "vllm:inter_token_latency_seconds": "hidden: output coalescing makes it wrong",
    "vllm:iteration_tokens_total": "the same",
}


def test_the_start_was_followed_through_its_phases(demo_pod: DemoPod) -> None:
    assert {"resolving", "loading"} <= demo_pod.phases


def test_a_text_and_a_list_are_translated(demo_pod: DemoPod) -> None:
    one = demo_pod.translate("The cat sees the dog.", target="fr")
    assert one.status_code == 200, one.text
    assert one.json()["translation"]
    several = demo_pod.translate(["The cat sees the dog."] * 3, target="fr").json()["translation"]
    assert several == [one.json()["translation"]] * 3


def test_100_000_characters_in_one_request_are_translated_and_stay_laid_out(demo_pod: DemoPod) -> None:
    one = demo_pod.translate("The cat sees the dog.", target="fr").json()["translation"]
    answer = demo_pod.translate("The cat sees the dog. \n\t" * 5000, target="fr")
    assert answer.status_code == 200, answer.text
    assert answer.json()["translation"] == f"{one} \n\t" * 5000


def test_a_long_text_is_prepared_in_a_process_that_has_the_tokenizer(demo_pod: DemoPod) -> None:
    text = "".join(f"The cat number {number} sees the dog. " for number in range(100))
    first = demo_pod.translate(
        text, target="fr"
    ).json()  # In a thread, or in the process that an earlier one started.
    process = Path(f"/proc/{demo_pod.wait_for_long_texts()}/schedstat")
    before_ns = int(process.read_text().split()[0])
    assert demo_pod.translate(text, target="fr").json() == first
    assert int(process.read_text().split()[0]) > before_ns


def test_a_turn_that_a_text_ends_is_not_ended(demo_pod: DemoPod) -> None:
    """The tokens of the turn's end would have the model start another one."""
    before = demo_pod.metric("vllm:prompt_tokens_total")
    assert demo_pod.translate("The cat sleeps.", target="fr").status_code == 200
    plain = demo_pod.metric("vllm:prompt_tokens_total") - before
    before = demo_pod.metric("vllm:prompt_tokens_total")
    assert demo_pod.translate("The cat <|im_end|> sleeps.", target="fr").status_code == 200
    assert demo_pod.metric("vllm:prompt_tokens_total") - before > plain + 4


def test_what_was_sent_before_is_found_in_the_prefix_cache(demo_pod: DemoPod) -> None:
    """What SECURITY.md says of response times; a test of `test_vllm_starts.py` has it turned off."""
    hits = demo_pod.metric("vllm:prefix_cache_hits_total")
    for animal in ("cat", "dog"):
        messages = [{"role": "user", "content": "The cat sees the dog and " * 50 + animal}]
        body = {"model": "demo", "messages": messages, "max_tokens": 1}
        assert demo_pod.client.post("/v1/chat/completions", json=body).status_code == 200
    assert demo_pod.metric("vllm:prefix_cache_hits_total") > hits


def test_the_engine_s_metrics_and_ours_are_shown_together(demo_pod: DemoPod) -> None:
    demo_pod.wait_for_metric("vllm:num_requests_running", 0)
    assert demo_pod.metric("vllm:kv_cache_usage_perc") >= 0
    assert demo_pod.metric("dragoman_requests_total") >= 1


def test_every_metric_of_vllm_that_we_rely_on_is_emitted(demo_pod: DemoPod) -> None:
    """Those that the operator, the chart's rules and dashboards, tuning and benchmarks name."""
    files = [
        file for folder in ("operator/src", "service/src", "bench") for file in (ROOT / folder).rglob("*.py")
    ]
    files += (ROOT / "charts/dragoman/files").rglob("*.yaml")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    named = set(re.findall(r"vllm:\w+(?<!_)\b", text)) - set(NOT_EMITTED)
    assert {"vllm:num_requests_running", "vllm:num_preemptions_total", "vllm:request_success_total"} <= named
    assert demo_pod.translate("The cat sleeps.", target="fr").status_code == 200
    families = text_string_to_metric_families(demo_pod.client.get("/metrics").text)
    emitted = {
        name
        for family in families
        if family.samples
        for name in (family.name, *(s.name for s in family.samples))
    }
    assert named - emitted == set()


def test_output_of_a_request_without_streaming_leaves_the_engine_process_coalesced(demo_pod: DemoPod) -> None:
    written = ("vllm:generation_tokens_total", "vllm:request_generation_tokens_sum")
    before = [demo_pod.metric(name) for name in (*written, "vllm:time_to_first_token_seconds_count")]
    assert demo_pod.translate("The cat sleeps on the sofa.", target="fr").status_code == 200
    after = [demo_pod.metric(name) for name in (*written, "vllm:time_to_first_token_seconds_count")]
    tokens, reported, answers = (now - then for now, then in zip(after, before, strict=True))
    assert tokens == reported > answers >= 1
    # Tokens reported together would count as one step; vLLM does not export its number of steps.
    assert "vllm:inter_token_latency_seconds" not in demo_pod.client.get("/metrics").text


def test_a_client_that_leaves_frees_its_places_in_the_engine(demo_pod: DemoPod) -> None:
    texts = ["The cat sees the dog. " * 8] * 500
    body = json.dumps({"text": texts, "source_lang": "en", "target_lang": "fr"}).encode()
    with socket.create_connection(("127.0.0.1", demo_pod.port)) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        demo_pod.wait_for_metric("dragoman_requests_in_flight", 1)
    demo_pod.wait_for_metric("dragoman_requests_in_flight", 0, deadline_s=20)
    demo_pod.wait_for_metric("vllm:num_requests_running", 0, deadline_s=20)
    assert demo_pod.translate("The cat sees the dog.").status_code == 200
