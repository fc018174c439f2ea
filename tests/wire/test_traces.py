"""Traces of a pod, received by a collector or by none."""

import time
from typing import Any

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
REQUEST = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


def test_a_client_s_trace_goes_on_to_the_pod(start_scripted: Any, collector: Any) -> None:
    pod, spans = start_scripted("--otlp-endpoint", collector.url), collector.spans
    pod.wait_for("/readyz")
    assert pod.client.post("/translate", json=REQUEST, headers=CALLER).status_code == 200
    refused = pod.client.post("/translate", content=b"{", headers=CALLER)
    assert refused.status_code == 400
    assert pod.end() == 0
    names = [span.name for span in spans]
    assert names.count("translate") == names.count("admission") == 2
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    outcomes = {
        attribute.value.string_value
        for span in spans
        for attribute in span.attributes
        if span.name == "translate" and attribute.key == "dragoman.outcome"
    }
    assert outcomes == {"ok", "malformed_request"}
    assert b"Hello" not in b"".join(span.SerializeToString() for span in spans)


def test_a_collector_that_is_gone_fails_no_request_and_holds_up_no_end(start_scripted: Any) -> None:
    pod = start_scripted("--otlp-endpoint", "http://127.0.0.1:9")
    pod.wait_for("/readyz")
    for _ in range(3):
        assert pod.client.post("/translate", json=REQUEST, headers=CALLER).status_code == 200
    began_s = time.monotonic()
    assert pod.end() == 0
    assert time.monotonic() - began_s < 15
