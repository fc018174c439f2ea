"""A pod whose engine sleeps: ready all the time, woken by requests alone, and nothing is lost."""

import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ASLEEP, WAKES = "dragoman_engine_asleep", "dragoman_engine_wakes_total"


def test_a_sleeping_pod_is_ready_and_many_first_requests_wake_it_once(start_scripted: Any) -> None:
    pod = start_scripted("--sleep-after-s", "1", sleep_s=0.1, wake_s=0.5, first_token_s=0.01)
    pod.wait_for("/readyz")
    pod.wait_for_metric(ASLEEP, 1)
    for path in ("/readyz", "/livez", "/startupz", "/metrics", "/languages"):
        assert pod.client.get(path).status_code == 200
    assert (pod.metric(ASLEEP), pod.metric(WAKES)) == (1, 0)
    assert pod.metric("vllm:num_requests_running") == 0
    with ThreadPoolExecutor(40) as threads:
        answers = list(threads.map(pod.translate, (f"Hello {number}" for number in range(40))))
    assert [answer.json()["translation"] for answer in answers] == [
        f"Hello {number}"[::-1] for number in range(40)
    ]
    assert pod.metric(WAKES) == 1
    assert pod.metric("dragoman_engine_wake_seconds_sum") >= 0.49  # a sleep of 0.5 s may end some ms early
    pod.wait_for_metric(ASLEEP, 1)
    assert pod.translate("again").json()["translation"] == "niaga"
    assert pod.metric(WAKES) == 2


def test_a_client_that_disconnects_during_the_wake_frees_its_slot_and_breaks_no_other(
    start_scripted: Any,
) -> None:
    pod = start_scripted("--sleep-after-s", "0.3", wake_s=1.0)
    pod.wait_for("/readyz")
    pod.wait_for_metric(ASLEEP, 1)
    body = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
    with socket.create_connection(("127.0.0.1", pod.port)) as first, ThreadPoolExecutor(5) as threads:
        first.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        pod.wait_for_metric("dragoman_requests_in_flight", 1)
        others = [threads.submit(pod.translate, f"other {number}") for number in range(5)]
        pod.wait_for_metric("dragoman_requests_in_flight", 6)
        first.close()
        pod.wait_for_metric("dragoman_requests_in_flight", 5)
        assert pod.metric(ASLEEP) == 1
        assert [other.result().status_code for other in others] == [200] * 5
    assert pod.metric(WAKES) == 1


def test_an_invalid_request_wakes_nothing(start_scripted: Any) -> None:
    pod = start_scripted("--sleep-after-s", "0.3")
    pod.wait_for("/readyz")
    pod.wait_for_metric(ASLEEP, 1)
    assert pod.translate("Hello", target="no language").status_code == 422
    assert (pod.metric(ASLEEP), pod.metric(WAKES)) == (1, 0)


def test_sigterm_ends_a_sleeping_pod(start_scripted: Any) -> None:
    pod = start_scripted("--sleep-after-s", "0.3")
    pod.wait_for("/readyz")
    pod.wait_for_metric(ASLEEP, 1)
    assert pod.end() == 0


def test_a_leaving_pod_wakes_for_a_late_request(start_scripted: Any) -> None:
    pod = start_scripted("--sleep-after-s", "0.3", "--lame-duck-s", "30")
    pod.wait_for("/readyz")
    pod.wait_for_metric(ASLEEP, 1)
    pod.process.send_signal(signal.SIGTERM)
    pod.wait_for("/readyz", status=503)
    assert pod.translate("late").json()["translation"] == "etal"
    assert pod.end() == 0


def test_a_wake_longer_than_the_stall_timeout_and_a_failed_one_end_the_pod_with_the_reason(
    start_scripted: Any,
) -> None:
    failing = start_scripted("--sleep-after-s", "0.3", fail_wake="out of memory")
    stuck = start_scripted("--sleep-after-s", "0.3", "--stall-timeout-s", "0.5", wake_s=60)
    for pod, reason in (
        (failing, "could not be woken (GenerationError: out of memory)"),
        (stuck, "could not be woken within 0.5 s"),
    ):
        pod.wait_for("/readyz")
        pod.wait_for_metric(ASLEEP, 1)
        assert pod.translate().status_code == 503
        for path in ("/livez", "/readyz"):
            assert pod.client.get(path).status_code == 503
        assert pod.end() == 1
        assert reason in pod.last_words.read_text()
        assert reason in pod.log.read_text()
