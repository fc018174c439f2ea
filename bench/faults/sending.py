"""One request as a client of two routers makes it: until it has one answer, or its time is up."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from faults.client import BrokenError, CheckingClient, GarbledError, RawAnswer
from faults.questions import KnownRequest

PATH = "/translate"
PATIENCE_S = 600.0
"""A client that follows Retry-After for ten minutes: overload lasts for minutes here, and its end decides."""
ATTEMPT_S = 90.0
"""An attempt has 30 s at a router; what takes so long hangs."""
BACK_OFF_S = 0.05
"""Before the second attempt at another router; each further one waits as much longer, up to a second."""


@dataclass(frozen=True)
class Patience:
    """What a client does about a request that is not answered.

    Args:
        seconds: Deadline of the request, retries included.
        attempt_s: Deadline of each attempt.
        attempts: Connections that may be refused or break before an answer.
        waits: Whether 429 and 503 with Retry-After are retried after that time, where the deadline allows.
    """

    seconds: float = PATIENCE_S
    attempt_s: float = ATTEMPT_S
    attempts: int = 10_000
    waits: bool = True


@dataclass
class RequestOutcome:
    """What became of one request; it is right where `lost` and `wrong` are empty.

    Args:
        lost: Why it was not answered with a translation.
        wrong: What came instead of one right answer.
        resent: Whether the router sent it to more than one replica, refusals included.
        cut: Whether an answer began and did not come to its end.
        way: Each attempt: time, port, how it ended.
    """

    lost: str = ""
    wrong: str = ""
    reconnected: int = 0
    refused: int = 0
    resent: bool = False
    cut: bool = False
    seconds: float = 0.0
    way: list[str] = field(default_factory=list)


async def send(
    client: CheckingClient,
    question: KnownRequest,
    ports: Sequence[int],
    patience: Patience,
    *,
    stall_s: float = 0.0,
) -> RequestOutcome:
    """Send one request, to the first router or to the others in turn, until it is answered."""
    outcome, began_s = RequestOutcome(), time.perf_counter()
    problem, turn = "no attempt", 0
    try:
        async with asyncio.timeout(patience.seconds):
            while outcome.reconnected < patience.attempts:
                port = ports[turn % len(ports)]
                note = f"{time.perf_counter() - began_s:.1f} s :{port}"
                problem = "waiting for the answer"
                try:
                    async with asyncio.timeout(patience.attempt_s):
                        answer = await client.post(port, PATH, question.body, stall_s=stall_s)
                except BrokenError as error:
                    outcome.reconnected += 1
                    outcome.way.append(f"{note} {error}")
                    turn += 1
                    problem = str(error)
                    await asyncio.sleep(min(1.0, BACK_OFF_S * (outcome.reconnected - 1)))
                    continue
                outcome.way.append(f"{note} {answer.status}")
                pause_s = retry_after_s(answer) if patience.waits else None
                if pause_s is not None:
                    outcome.refused += 1
                    problem = f"refused: {answer.status} {answer.body[:200]!r}"
                    await asyncio.sleep(pause_s)
                    continue
                outcome.resent = attempts_of(answer) > 1
                outcome.lost, outcome.wrong = judged(question, answer)
                outcome.cut = bool(outcome.lost) and answer.status == 200
                break
            else:
                outcome.lost = problem
    except GarbledError as error:
        outcome.wrong, outcome.cut = f"{question.text[:80]!r}: {error}", True
    except TimeoutError:
        waited_s = time.perf_counter() - began_s
        outcome.lost = f"{question.text[:80]!r}: no answer after {waited_s:.0f} s; {problem}"
    outcome.seconds = time.perf_counter() - began_s
    return outcome


def retry_after_s(answer: RawAnswer) -> float | None:
    """Seconds of Retry-After in a refusal; None where it is none or has no such header."""
    if answer.status not in (429, 503):
        return None
    try:
        return float(answer.headers["retry-after"])
    except (KeyError, ValueError):
        return None


def attempts_of(answer: RawAnswer) -> int:
    """How many replicas the router sent it to."""
    found = re.search(r"attempts=(\d+)", answer.headers.get("x-dragoman-route", ""))
    return int(found[1]) if found else 1


def judged(question: KnownRequest, answer: RawAnswer) -> tuple[str, str]:
    """Why the request is lost, and what is wrong with its answer; both empty where it is right."""
    if answer.status != 200:
        return f"{answer.status} {answer.body[:200]!r} {answer.headers.get('x-dragoman-route', '')}", ""
    body = answer.body
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        last = body.rstrip().rpartition(b"\n\n")[2]
        if last.startswith(b"event: error"):
            return f"{last[:200]!r}", ""
        body = last.removeprefix(b"event: result\ndata: ")
    translation = translation_in(body)
    if translation == question.translation:
        return "", ""
    return "", f"{question.text[:80]!r} → {translation!r:.200}, not {question.expected!r:.200}"


def translation_in(body: bytes) -> Any:
    """The translation in an answer's body; the body where there is none."""
    try:
        return json.loads(body)["translation"]
    except (ValueError, KeyError, TypeError):
        return body
