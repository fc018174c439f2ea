"""Load whose translations are known, against a pod with a checkpoint of `dragoman_bench.checkpoint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_bench.loads import VARIABLE, stream
from dragoman_bench.vocabulary import vocabulary
from dragoman_devcluster.ports import free_port
from dragoman_tune.client import connections
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from dragoman_tune.requests import Answer, Request
from dragoman_tune.server import Server


def gpu_pod(program: Sequence[str], model: Path, output: Path, memory: float, log: Path) -> Server:
    """A pod on a GPU, with 512 slots.

    Args:
        program: What runs `dragoman`; its arguments are appended.
        model: The checkpoint.
        output: The folder for the pod's cache.
        memory: Share of the GPU's memory.
        log: The file for the pod's output.
    """
    port = free_port()
    command = [
        *(*program, "serve", "--host", "127.0.0.1", "--port", str(port)),
        *("--model", str(model), "--device", "cuda", "--served-name", "bench"),
        *("--prompt-family", "custom", "--prompt-template", "{text}"),
        *("--cache-dir", str(output / "cache"), "--request-timeout-s", "120"),
        *("--max-num-seqs", "512", "--max-num-batched-tokens", "8192", "--max-model-len", "2048"),
        *("--gpu-memory-utilization", str(memory)),
    ]
    return Server("pod", command, port, "/readyz", log, {})


class Checked:
    """Sends requests, and counts the translations that are not the known ones."""

    def __init__(self, session: aiohttp.ClientSession, url: str, words: tuple[str, ...]) -> None:
        self._session, self._url, self._words = session, url, words
        self.wrong = 0

    async def send(self, request: Request) -> Answer:
        """Send one."""
        body = {"text": request.text, "source_lang": "en", "target_lang": "de"}
        try:
            async with self._session.post(f"{self._url}/translate", json=body) as answer:
                document = await answer.json()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(error=type(error).__name__)
        if answer.status != 200:
            return Answer(error=f"status {answer.status}")
        tokens = request.output_tokens or 0
        self.wrong += document["translation"] != " ".join(self._words[len(self._words) - tokens + 1 :])
        return Answer()


def target_words(model: Path) -> tuple[str, ...]:
    """The words that a checkpoint generates, in its order."""
    from transformers import AutoTokenizer

    return vocabulary(AutoTokenizer.from_pretrained(model)).target


async def measured(server: Server, model: Path, in_flight: int, pace: Pace) -> dict[str, Any]:
    """One window: throughput, latencies, errors and wrong translations."""
    async with connections() as session:
        checked = Checked(session, server.url, target_words(model))
        window = await closed_loop(
            checked.send, stream(VARIABLE, model, None, in_flight), in_flight, pace, ended=server.ended
        )
    found = asdict(figures(window))
    return {"in_flight": in_flight, "wrong": checked.wrong, **found}
