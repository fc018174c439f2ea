"""A pod from its first moment to its last, with the scripted engine."""

import http.client
import json
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest


def in_thread(work: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def test_one_text_and_a_list(start_scripted: Any) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    assert pod.translate("Hello").json() == {"translation": "olleH"}
    assert pod.translate(["ab", "cd"]).json() == {"translation": ["ba", "dc"]}


def test_probes_answer_while_the_model_loads(start_scripted: Any) -> None:
    pod = start_scripted(load_s=1.5)
    state = pod.wait_for("/startupz", status=503)
    assert state["phase"] in ("starting", "loading")
    assert pod.client.get("/livez").status_code == 200
    assert pod.client.get("/readyz").status_code == 503
    refused = pod.translate()
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
    assert int(refused.headers["retry-after"]) >= 1
    ready = pod.wait_for("/startupz")
    assert (ready["phase"], ready["progress"]) == ("ready", 1.0)
    assert 1.5 <= ready["elapsed_s"] < 15


def test_sigterm_finishes_what_is_in_flight_and_refuses_what_routers_send(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "0", first_token_s=2)
    pod.wait_for("/readyz")
    thread, results = in_thread(lambda: httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=30))
    pod.wait_for_metric("dragoman_requests_in_flight", 1)
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "draining"
    assert pod.client.get("/livez").status_code == 200
    refused = pod.client.post("/translate", json=REQUEST, headers=by("r"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
    assert int(refused.headers["retry-after"]) >= 1
    assert (refused.headers["connection"], refused.headers["x-dragoman-refused"]) == ("close", "draining")
    assert pod.process.wait(20) == 0
    thread.join()
    assert results[0].json() == {"translation": "olleH"}


def test_a_direct_client_is_never_refused_during_the_drain(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "0", "--request-timeout-s", "60", first_token_s=1)
    pod.wait_for("/readyz")
    thread, results = in_thread(lambda: httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=60))
    pod.wait_for_metric("dragoman_requests_in_flight", 1)
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "draining"
    # A new connection, as from a proxy whose endpoints are out of date.
    late = httpx.post(f"{pod.url}/translate", json=REQUEST | {"text": "later"}, timeout=60)
    assert (late.status_code, late.headers["connection"]) == (200, "close")
    assert late.json() == {"translation": "retal"}
    thread.join()
    assert results[0].json() == {"translation": "olleH"}
    # Then it is refused at connect, or reset where the connection was made in the moment of the close.
    with suppress(httpx.TransportError):
        while True:
            assert httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=60).status_code == 200
    assert pod.process.wait(20) == 0


REQUEST = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


def test_a_drain_ends_at_its_time_limit(start_scripted: Any) -> None:
    pod = start_scripted(
        *("--drain-timeout-s", "0.5", "--lame-duck-s", "0", "--request-timeout-s", "60"), first_token_s=50
    )
    pod.wait_for("/readyz")
    thread, results = in_thread(lambda: httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=40))
    pod.wait_for_metric("dragoman_requests_in_flight", 1)
    began_s = time.monotonic()
    assert pod.end() == 0
    assert 0.5 <= time.monotonic() - began_s < 5
    thread.join()
    assert (results[0].status_code, results[0].json()["error"]["code"]) == (503, "draining")
    assert "x-dragoman-refused" not in results[0].headers


def test_a_second_sigterm_cuts_the_drain_short(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "0", "--request-timeout-s", "300", first_token_s=200)
    pod.wait_for("/readyz")
    thread, results = in_thread(lambda: httpx.post(f"{pod.url}/translate", json=REQUEST, timeout=100))
    pod.wait_for_metric("dragoman_requests_in_flight", 1)
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "draining"
    assert pod.end() == 0
    thread.join()
    assert (results[0].status_code, results[0].json()["error"]["code"]) == (503, "draining")


def test_an_idle_pod_leaves_at_once(start_scripted: Any) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    began_s = time.monotonic()
    assert pod.end() == 0
    assert time.monotonic() - began_s < 5


def by(router: str) -> dict[str, str]:
    return {"X-Dragoman-Router": router}


def test_a_pod_with_routers_serves_until_each_has_confirmed(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "60")
    pod.wait_for("/readyz")
    for router in "ab":
        assert pod.client.post("/translate", json=REQUEST, headers=by(router)).status_code == 200
    assert pod.client.post("/drained").status_code == 400
    assert pod.client.post("/drained", headers=by("a")).status_code == 204
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "leaving"
    # By the router: a client that comes by none is given time of its own.
    late = pod.client.post("/translate", json=REQUEST, headers=by("b"))
    assert late.json() == {"translation": "olleH"}
    assert pod.client.post("/drained", headers=by("b")).status_code == 204
    assert pod.process.wait(20) == 0


def test_a_router_is_waited_for_where_no_time_is_set(start_scripted: Any) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    assert pod.client.post("/translate", json=REQUEST, headers=by("a")).status_code == 200
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "leaving"
    assert pod.client.post("/drained", headers=by("a")).status_code == 204
    assert pod.process.wait(20) == 0


REFUSED_PATHS = {
    "/translate": REQUEST,
    "/v2/translate": {"text": ["Hello"], "target_lang": "DE"},
    "/language/translate/v2": {"q": "Hello", "target": "de"},
    "/v1/chat/completions": {"model": "org/model", "messages": [{"role": "user", "content": "Hello"}]},
    "/translate?api-version=3.0&to=de": [{"Text": "Hello"}],
}


def test_every_api_reports_that_generation_did_not_start(start_scripted: Any) -> None:
    pod = start_scripted(load_s=60)
    pod.wait_for("/livez")
    for path, body in REFUSED_PATHS.items():
        refused = pod.client.post(path, json=body, headers={"Authorization": "DeepL-Auth-Key x"})
        assert (path, refused.status_code) == (path, 503)
        assert refused.headers["x-dragoman-refused"] == "not_ready"


def test_sigterm_during_the_start(start_scripted: Any) -> None:
    pod = start_scripted(load_s=60)
    pod.wait_for("/livez")
    assert pod.end(deadline_s=10) == 0
    assert not pod.last_words.exists()


def test_a_client_that_leaves_frees_its_place(start_scripted: Any) -> None:
    pod = start_scripted(first_token_s=20)
    pod.wait_for("/readyz")
    body = b'{"text": ["a", "b"], "source_lang": "en", "target_lang": "de"}'
    with socket.create_connection(("127.0.0.1", pod.port)) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        pod.wait_for_metric("vllm:num_requests_running", 2)
    assert pod.wait_for_metric("vllm:num_requests_running", 0) < 1
    pod.wait_for_metric("dragoman_requests_in_flight", 0)
    assert 'outcome="disconnected"' in pod.client.get("/metrics").text


def test_a_request_that_takes_too_long(start_scripted: Any) -> None:
    pod = start_scripted("--request-timeout-s", "0.2", first_token_s=20)
    pod.wait_for("/readyz")
    answer = pod.translate()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    pod.wait_for_metric("vllm:num_requests_running", 0)


def test_a_failed_generation_is_the_pod_s_fault_and_passes(start_scripted: Any) -> None:
    pod = start_scripted(fail_every=2)
    pod.wait_for("/readyz")
    assert [pod.translate().status_code for _ in range(4)] == [200, 500, 200, 500]
    assert pod.client.get("/livez").status_code == 200


def test_a_dead_engine_turns_liveness_off(start_scripted: Any) -> None:
    pod = start_scripted(die_after=2)
    pod.wait_for("/readyz")
    assert pod.translate().status_code == 200
    dead = pod.translate()
    assert (dead.status_code, dead.json()["error"]["code"]) == (503, "engine_dead")
    assert pod.wait_for("/livez", status=503)["phase"] == "failed"
    assert pod.client.get("/readyz").status_code == 503
    assert pod.end() == 1
    assert pod.last_words.read_text() == "the engine died, as its script says\n"


def test_many_requests_at_once_all_end(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "4", token_s=0.001)
    pod.wait_for("/readyz")
    threads = [
        in_thread(lambda: httpx.post(pod.url + "/translate", json=REQUEST, timeout=30)) for _ in range(40)
    ]
    for thread, results in threads:
        thread.join(30)
        assert results[0].json() == {"translation": "olleH"}


@pytest.mark.parametrize(
    ("arguments", "script", "status", "message"),
    [
        ((), {"fail_load": "the weights are cracked"}, 1, "the weights are cracked"),
        (
            (),
            {"token_z": 1},
            2,
            "--engine-args: the engine has no argument 'token_z'; did you mean 'token_s'?",
        ),
        (("--portt", "1"), {}, 2, "no option --portt; did you mean --port?"),
        (("--prompt-family", "x"), {}, 2, "--prompt-family: no prompt family 'x'; there are"),
        (
            ("--prompt-family", "custom", "--prompt-template", "{txt}"),
            {},
            1,
            "the prompt template has {txt}; known are {text},",
        ),
    ],
)
def test_a_failed_start_leaves_one_sentence(
    start_scripted: Any, arguments: tuple[str, ...], script: dict[str, Any], status: int, message: str
) -> None:
    pod = start_scripted(*arguments, **script)
    assert pod.process.wait(30) == status
    words = pod.last_words.read_text()
    assert words.startswith(message)
    assert words.count("\n") == 1
    assert "Traceback" not in pod.log.read_text()


def test_a_port_that_is_taken(start_scripted: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        pod = start_scripted("--port", str(port))
        assert pod.process.wait(30) == 1
    assert pod.last_words.read_text() == f"cannot listen on 127.0.0.1 port {port}: Address already in use\n"


def test_clients_of_a_service_alone_are_led_elsewhere_before_anything_is_refused(start_scripted: Any) -> None:
    pod = start_scripted("--lame-duck-s", "60", answers={"Hello": "Hallo"})
    pod.wait_for("/readyz")
    kept = http.client.HTTPConnection("127.0.0.1", pod.port, timeout=30)
    idle = http.client.HTTPConnection("127.0.0.1", pod.port, timeout=30)

    def ask(connection: http.client.HTTPConnection) -> tuple[int, str | None]:
        connection.request("POST", "/translate", json.dumps(REQUEST))
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["connection"]

    assert (ask(kept), ask(idle)) == ((200, None), (200, None))
    before = kept.sock
    assert (
        httpx.post(f"{pod.url}/translate", json=REQUEST, headers={"X-Dragoman-Router": "r"}).status_code
        == 200
    )
    pod.process.send_signal(signal.SIGTERM)
    assert pod.wait_for("/readyz", status=503)["phase"] == "leaving"
    # All routers have confirmed; clients that came by none have not learned of it.
    assert httpx.post(f"{pod.url}/drained", headers={"X-Dragoman-Router": "r"}).status_code == 204
    assert kept.sock is before
    assert ask(kept) == (200, "close")
    assert kept.sock is None
    for _ in range(3):
        assert ask(kept) == (200, "close")
    for path in ("/livez", "/metrics", "/languages", "/nowhere"):
        assert httpx.get(pod.url + path).headers["connection"] == "close"
    refused = httpx.post(f"{pod.url}/translate", json={})
    assert (refused.status_code, refused.headers.get_list("connection")) == (422, ["close"])
    assert ask(idle) == (200, "close"), "an idle connection is kept to the end of the lame duck"
    pod.process.send_signal(signal.SIGTERM)
    assert pod.process.wait(30) == 0
