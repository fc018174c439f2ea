"""B0, B1 and B2: FastAPI in front of worker processes, which queues feed.

As the original system is described, flaws included: putting a task writes to a manager's dictionary and to a bounded
queue, both of which block the event loop.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from queue import Empty
from typing import Any

from fastapi import HTTPException

from dragoman_bench.arms.common import ArmOptions, Translate, Translated, arm_options, serve
from dragoman_bench.prompting import Prompting
from dragoman_tune.requests import SampleRequest

QUEUE_SIZE = 300
READY_POLL_S = 0.2
TIMEOUT_S = 30.0
"""Of a request, as in the original system."""

Result = tuple[str, float, float]
"""A translation, and when a worker began and ended it, by the monotonic clock, which processes of a machine share."""


@asynccontextmanager
async def queues(options: ArmOptions) -> AsyncIterator[Translate]:
    """Workers that have loaded their models.

    Raises:
        RuntimeError: A worker ended before.
    """
    context: Any = multiprocessing.get_context("spawn")
    queue, events = context.JoinableQueue(maxsize=QUEUE_SIZE), context.Queue()
    tasks = context.Manager().dict()
    ready = [context.Event() for _ in range(options.workers)]
    workers = [context.Process(target=work, args=(options, queue, tasks, events, each)) for each in ready]
    waiting: dict[str, asyncio.Future[Result]] = {}
    loop = asyncio.get_running_loop()

    def finish(key: str, result: Result) -> None:
        if key in waiting and not waiting[key].done():
            waiting[key].set_result(result)

    def follow() -> None:
        while True:
            loop.call_soon_threadsafe(finish, *events.get())

    async def translate(request: SampleRequest) -> Translated:
        received_s = time.monotonic()
        key = secrets.token_hex(8)
        waiting[key] = loop.create_future()
        tasks[key] = request
        queue.put(key)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                text, began_s, ended_s = await waiting[key]
        except TimeoutError:
            raise HTTPException(504, "timeout") from None
        finally:
            del waiting[key]
        compute_s = ended_s - began_s
        return Translated(text, time.monotonic() - received_s - compute_s, compute_s)

    for worker in workers:
        worker.start()
    try:
        for worker, each in zip(workers, ready, strict=True):
            while not each.is_set():
                if not worker.is_alive():
                    raise RuntimeError("a worker ended before its model was loaded")
                await asyncio.sleep(READY_POLL_S)
        threading.Thread(target=follow, name="events", daemon=True).start()
        yield translate
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def work(options: ArmOptions, queue: Any, tasks: Any, events: Any, ready: Any) -> None:
    """A worker process: load the model, then take tasks until terminated."""
    translate_batch = loaded(options)
    ready.set()
    while True:
        keys = collect(queue, options.batch, options.batch_wait_s)
        requests = [tasks.pop(key) for key in keys]
        began_s = time.monotonic()
        translations = translate_batch(requests)
        ended_s = time.monotonic()
        for key, translation in zip(keys, translations, strict=True):
            events.put((key, (translation, began_s, ended_s)))
            queue.task_done()


def loaded(options: ArmOptions) -> Callable[[Sequence[SampleRequest]], list[str]]:
    """vLLM's synchronous engine: translates some texts together; all wait for the longest."""
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    llm = LLM(**options.engine_arguments)
    prompting = Prompting(llm.get_tokenizer(), options.template, llm.llm_engine.model_config.max_model_len)

    def translate_batch(requests: Sequence[SampleRequest]) -> list[str]:
        encoded = [prompting.encoded(request) for request in requests]
        outputs = llm.generate(
            [TokensPrompt(prompt_token_ids=ids) for ids, _ in encoded],
            [SamplingParams(temperature=0.0, max_tokens=room) for _, room in encoded],
            use_tqdm=False,
        )
        return [output.outputs[0].text.strip() for output in outputs]

    return translate_batch


def collect(queue: Any, maximum: int, wait_s: float) -> list[str]:
    """The next keys: at least one, and up to `maximum` that come within `wait_s`."""
    keys = [queue.get()]
    end_s = time.monotonic() + wait_s
    while len(keys) < maximum and (left_s := end_s - time.monotonic()) > 0:
        try:
            keys.append(queue.get(timeout=left_s))
        except Empty:
            break
    return keys


if __name__ == "__main__":
    chosen = arm_options()
    serve(chosen.port, lambda: queues(chosen))
