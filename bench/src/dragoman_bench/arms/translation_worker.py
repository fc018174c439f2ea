"""Worker processes fed by queues: B0 with one worker, B1 with two, B2 with static batches.

As the seeds describe it, flaws included: putting a task writes to a manager's dictionary and to a bounded queue,
both of which block the event loop.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import secrets
import string
import sys
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty
from typing import Any

from dragoman_bench.arms.options import ArmOptions
from dragoman_tune.requests import Request

QUEUE_SIZE = 300
KEY_CHARS = 10
READY_POLL_S = 0.2


class EventType(StrEnum):
    """How far a task is."""

    WAITING = "waiting"
    COMPLETED = "completed"


@dataclass(frozen=True)
class TranslationTask:
    """What the shared dictionary holds for a key."""

    text: str
    source_lang: str
    target_lang: str


@dataclass(frozen=True)
class TranslationResult:
    """What a worker sends back; times are of the monotonic clock, which processes of a machine share."""

    translation: str
    began_s: float
    ended_s: float


class EventTask:
    """A coroutine's handle on a task that another process does."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.event = asyncio.Event()
        self.event_type = EventType.WAITING
        self.result: TranslationResult | None = None

    def update(self, event_type: EventType, result: TranslationResult) -> None:
        """Note the result and wake who waits; on the event loop's thread alone."""
        self.event_type = event_type
        self.result = result
        self.event.set()


class TranslationWorker:
    """The main process's side."""

    def __init__(self, options: ArmOptions) -> None:
        self._options = options
        self._ctx = multiprocessing.get_context("spawn")
        self._event_tasks: dict[str, EventTask] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._processes: list[Any] = []

    def run(self) -> None:
        """Start the workers and wait until each has its model.

        Raises:
            SystemExit: One of them ended before.
        """
        self._translation_queue: Any = self._ctx.JoinableQueue(maxsize=QUEUE_SIZE)
        self._manager = self._ctx.Manager()
        self._translation_tasks: Any = self._manager.dict()
        self._event_queue: Any = self._ctx.Queue()
        ready = [self._ctx.Event() for _ in range(self._options.workers)]
        for event in ready:
            shared = (self._translation_queue, self._translation_tasks, self._event_queue)
            process = self._ctx.Process(target=process_queue, args=(self._options, *shared, event))
            process.start()
            self._processes.append(process)
        for process, event in zip(self._processes, ready, strict=True):
            while not event.wait(READY_POLL_S):
                if not process.is_alive():
                    self.stop()
                    sys.exit(1)

    def listen(self) -> None:
        """Follow the event queue in a thread; called on the event loop that serves."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._consume, name="events", daemon=True).start()

    def add_translation_task(self, text: str, source_lang: str, target_lang: str) -> EventTask:
        """Hand a task to the workers."""
        key = "t_" + "".join(secrets.choice(string.ascii_letters) for _ in range(KEY_CHARS))
        event_task = EventTask(key)
        self._event_tasks[key] = event_task
        self._translation_tasks[key] = TranslationTask(text, source_lang, target_lang)
        self._translation_queue.put(key)
        return event_task

    def forget(self, key: str) -> None:
        """Drop a task without a waiting request; a worker does it all the same."""
        self._event_tasks.pop(key, None)

    def stop(self) -> None:
        """End the workers."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def _consume(self) -> None:
        loop = self._loop
        assert loop is not None
        while True:
            key, event_type, result = self._event_queue.get()
            loop.call_soon_threadsafe(self._update, key, event_type, result)

    def _update(self, key: str, event_type: EventType, result: TranslationResult) -> None:
        event_task = self._event_tasks.pop(key, None)
        if event_task is not None:
            event_task.update(event_type, result)


def process_queue(options: ArmOptions, queue: Any, tasks: Any, events: Any, ready: Any) -> None:
    """A worker process: load the model, then take tasks until killed."""
    from dragoman_bench.arms.translation_processor import TranslationProcessor

    processor = TranslationProcessor(options)
    ready.set()
    while True:
        keys = collect(queue, options.batch, options.batch_wait_s)
        requests = [Request(task.text, task.source_lang, task.target_lang) for task in map(tasks.pop, keys)]
        began_s = time.monotonic()
        translations = processor.translate_batch(requests)
        ended_s = time.monotonic()
        for key, translation in zip(keys, translations, strict=True):
            events.put((key, EventType.COMPLETED, TranslationResult(translation, began_s, ended_s)))
            queue.task_done()


def collect(queue: Any, most: int, wait_s: float) -> list[str]:
    """The next keys: at least one, and as many more as come in time."""
    keys = [queue.get()]
    end_s = time.monotonic() + wait_s
    while len(keys) < most and (left_s := end_s - time.monotonic()) > 0:
        try:
            keys.append(queue.get(timeout=left_s))
        except Empty:
            break
    return keys
