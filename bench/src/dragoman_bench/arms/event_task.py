"""The bridge from worker processes to coroutines that the seeds describe."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum


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
