"""Overload: a pod refuses at once what exceeds its capacity, and finishes what it admitted."""

import asyncio
import json
import time
from collections import Counter
from email import message_from_bytes
from email.message import Message
from typing import Any, NamedTuple

import httpx

from dragoman.__main__ import raise_file_limit

REQUEST = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


class Answer(NamedTuple):
    status: int
    headers: Message
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return "ok" if self.status == 200 else str(self.body["error"]["code"])


def at_once(pod: Any, count: int, headers: str = "") -> list[Answer]:
    """So many requests, each on a connection of its own, by a client that costs little."""

    async def one(number: int) -> Answer:
        body = json.dumps(REQUEST | {"text": f"Hello {number}"}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", pod.port)
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        writer.write(f"{head}{headers}\r\n".encode() + body)
        answer = await reader.read()
        writer.close()
        top, _, rest = answer.partition(b"\r\n\r\n")
        line, _, fields = top.partition(b"\r\n")
        return Answer(int(line.split()[1]), message_from_bytes(fields), json.loads(rest))

    async def ask() -> list[Answer]:
        async with asyncio.timeout(60):
            return await asyncio.gather(*map(one, range(count)))

    return asyncio.run(ask())


def test_of_a_thousand_at_once_each_ends_in_a_translation_or_a_refusal(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "16", first_token_s=0.02, token_s=0.005)
    pod.wait_for("/readyz")
    raise_file_limit()  # login shells allow 1,024 files, and each request is one
    answers = at_once(pod, 1000)
    found = Counter(answer.status for answer in answers)
    assert set(found) == {200, 503}
    # Those that run and those that may wait, at the least; places that are freed go to later ones.
    assert found[200] >= 16 + 8 * 16
    for answer in answers:
        if answer.status == 503:
            assert answer.code == "overloaded"
            assert int(answer.headers["retry-after"]) >= 1
    refused = {reason: pod.metric(f'dragoman_admission_refusals_total{{model_name="org/model",reason="{reason}"}}')
               for reason in ("sequences", "tokens", "deadline")}  # fmt: skip
    assert sum(refused.values()) == found[503]
    for name in ("dragoman_requests_in_flight", "dragoman_admitted_tokens", "vllm:num_requests_running"):
        pod.wait_for_metric(name, 0)


def test_bounds_may_be_wide_enough_for_all(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "16", "--max-queued-sequences", "1000", token_s=0.001)
    pod.wait_for("/readyz")
    assert {answer.status for answer in at_once(pod, 300)} == {200}


def test_a_long_text_is_taken_on_alone(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "1", "--max-model-len", "256", "--max-queued-tokens", "0")
    pod.wait_for("/readyz")
    text = "This is one of many sentences. " * 200
    assert pod.translate(text).status_code == 200


def test_what_cannot_be_done_in_time_is_refused_at_once(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "4", "--max-queued-sequences", "1000", first_token_s=0.25)
    pod.wait_for("/readyz")
    # Under load for long enough to know the pace: 16 a second.
    assert {answer.status for answer in at_once(pod, 40)} == {200}
    answers = at_once(pod, 60, headers="X-Request-Timeout: 1\r\n")
    codes = Counter(answer.code for answer in answers)
    assert codes["overloaded"] > codes["timeout"]
    assert codes["ok"] >= 4
    late = 'dragoman_admission_refusals_total{model_name="org/model",reason="deadline"}'
    assert pod.metric(late) == codes["overloaded"]


def test_a_caller_s_own_time_limit_ends_its_work_in_the_engine(start_scripted: Any) -> None:
    pod = start_scripted(first_token_s=60)
    pod.wait_for("/readyz")
    began_s = time.monotonic()
    answer = pod.client.post("/translate", json=REQUEST, headers={"X-Request-Timeout": "0.2"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    assert time.monotonic() - began_s < 10
    pod.wait_for_metric("vllm:num_requests_running", 0)
    wrong = pod.client.post("/translate", json=REQUEST, headers={"X-Request-Timeout": "soon"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "invalid_field")


def test_the_shortest_is_served_first_by_choice(start_scripted: Any) -> None:
    pod = start_scripted("--max-num-seqs", "1", "--scheduling-policy", "shortest", first_token_s=0.3)
    pod.wait_for("/readyz")
    done: list[str] = []

    async def ask() -> None:
        async with httpx.AsyncClient(base_url=pod.url, timeout=60) as client:

            async def one(name: str, text: str) -> None:
                answer = await client.post("/translate", json=REQUEST | {"text": text})
                assert answer.status_code == 200
                done.append(name)

            running = asyncio.create_task(one("running", "Hello"))
            await asyncio.sleep(0.1)
            long = asyncio.create_task(one("long", "A sentence of some length that goes on. " * 5))
            await asyncio.sleep(0.1)
            await asyncio.gather(running, long, one("short", "Short"))

    asyncio.run(ask())
    assert done == ["running", "short", "long"]
