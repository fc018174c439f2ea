"""Long texts are prepared, and their translations checked, in a process of their own, which may die."""

import os
import signal
import threading
from typing import Any

import httpx
import pytest
from tests.support.servers import wait_until_gone

DEADLINE_S = 60
TEXT = "The pump of the northern plant was repaired on Monday. " * 400
REQUEST = {"text": TEXT, "source_lang": "en", "target_lang": "de"}


def stopped_while_in_use(pod: Any) -> int:
    """The process, stopped; a long request that its client has given up waits for it."""
    assert pod.translate(TEXT).status_code == 200
    process = pod.wait_for_long_texts()
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=1)
    return int(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_first_long_text_starts_a_process_of_lower_priority_that_ends_with_the_pod(
    start_scripted: Any, number: int
) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    assert pod.translate("Hello").json() == {"translation": "olleH"}
    assert pod.descendants() == []
    process = stopped_while_in_use(pod)
    niceness = os.getpriority(os.PRIO_PROCESS, pod.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, process) == min(19, niceness + 10)
    # Its client has left: nothing is in flight, and others are served.
    pod.wait_for_metric("dragoman_requests_in_flight", 0)
    assert pod.translate("Hello").json() == {"translation": "olleH"}
    os.kill(process, signal.SIGCONT)
    assert pod.translate(TEXT).status_code == 200
    assert pod.descendants() == [process]
    pod.end(number)
    wait_until_gone([process])


@pytest.mark.parametrize("api", ["/translate", "/v2/translate"])
def test_a_request_whose_process_dies_is_answered(start_scripted: Any, api: str) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    body = REQUEST if api == "/translate" else {"text": [TEXT], "target_lang": "DE", "source_lang": "EN"}
    expected = pod.client.post(api, json=body).json()
    process = stopped_while_in_use(pod)
    answers: list[httpx.Response] = []
    waiting = threading.Thread(
        target=lambda: answers.append(httpx.post(f"{pod.url}{api}", json=body, timeout=DEADLINE_S))
    )
    waiting.start()
    pod.wait_for_metric("dragoman_requests_in_flight", 1)
    os.kill(process, signal.SIGKILL)
    waiting.join(DEADLINE_S)
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, expected)]
    # A thread waits for its status, after the request was answered.
    pod.wait_for_log("process for long texts ended with status -9")
