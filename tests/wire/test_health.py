"""What probes say when a pod is not well, or is about to leave."""

import json
import signal
import socket
from typing import Any


def test_a_wedged_engine_is_not_alive_and_takes_no_more(start_scripted: Any) -> None:
    pod = start_scripted("--stall-timeout-s", "1", stall_after=3)
    pod.wait_for("/readyz")
    assert [pod.translate(text).status_code for text in "ab"] == [200, 200]
    assert pod.client.get("/livez").status_code == 200
    hurried = {"X-Request-Timeout": "0.4"}
    body = {"text": "Hello", "source_lang": "en", "target_lang": "de"}
    answers = [pod.client.post("/translate", json=body, headers=hurried) for _ in range(4)]
    assert {answer.json()["error"]["code"] for answer in answers} == {"timeout"}
    for path in ("/livez", "/readyz"):
        answer = pod.client.get(path)
        assert answer.status_code == 503
        assert "has done none of it" in answer.json()["reason"]
    assert pod.metric("dragoman_engine_stalled_seconds") > 1
    assert pod.end() == 0


def test_readiness_drops_on_overload_by_choice(start_scripted: Any) -> None:
    few = ("--max-num-seqs", "1", "--max-queued-sequences", "0")
    choosy = start_scripted(*few, "--unready-when-overloaded", "true", first_token_s=60)
    steady = start_scripted(*few, first_token_s=60)
    for pod, status in ((choosy, 503), (steady, 200)):
        pod.wait_for("/readyz")
        with in_background(pod):
            pod.wait_for_metric("dragoman_requests_in_flight", 1)
            assert pod.client.get("/readyz").status_code == status
        pod.wait_for_metric("dragoman_requests_in_flight", 0)
        assert pod.client.get("/readyz").status_code == 200


def test_a_lame_duck_is_unready_and_serves(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "30")
    pod.wait_for("/readyz")
    assert "connection" not in pod.translate().headers
    pod.process.send_signal(signal.SIGTERM)
    unready = pod.wait_for("/readyz", status=503)
    assert (unready["phase"], unready["reason"]) == ("leaving", "this replica is about to leave")
    served = pod.translate()
    assert (served.status_code, served.headers["connection"]) == (200, "close")
    assert pod.client.get("/livez").status_code == 200
    # A second signal cuts it short.
    assert pod.end(deadline_s=10) == 0


def test_a_lame_duck_leaves_when_its_time_is_up(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "0.5")
    pod.wait_for("/readyz")
    assert pod.end(deadline_s=10) == 0


def in_background(pod: Any) -> socket.socket:
    """A request that is sent without reading the response, until it is closed."""
    body = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
    connection = socket.create_connection(("127.0.0.1", pod.port))
    connection.sendall(
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    return connection
