"""The parts and the state of a running router."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import dataclass, field

from dragoman_router.access.gate import Gate
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.history import FleetHistory
from dragoman_router.http.audit import AuditLog
from dragoman_router.http.proxy import HeadWriter, Proxy
from dragoman_router.metrics import Metrics
from dragoman_router.state.kept_glossaries import KeptGlossaries

POLL_S = 0.05
"""Interval at which a drain checks for active requests; an event would cost each request."""

Detector = Callable[[str, tuple[str, ...]], str]
"""A text and the possible tags (none: any) → a tag, `und` where it cannot be determined."""


@dataclass(slots=True)
class State:
    """The parts and the state of a running router.

    Args:
        gate: Keys and rates; None: neither is configured.
        body_bytes: Memory that the bodies of all requests take.
        draining: Whether this router terminates.
        drained: Whether the drain timed out; requests that are cancelled from then on get 503.
        active: Requests that are not answered.
        max_memory_bytes: Maximum of `body_bytes`.
        connections: Of clients.
        audit: The audit log; None: it is off.
        characters: What was translated since the start, by API; keys' quotas are the gate's.
    """

    fleet: Fleet
    history: FleetHistory
    proxy: Proxy
    gate: Gate | None
    metrics: Metrics
    detect: Detector
    heads: HeadWriter
    glossaries: KeptGlossaries
    max_memory_bytes: int
    connections: Sized = ()
    audit: AuditLog | None = None
    body_bytes: int = 0
    draining: bool = False
    drained: bool = False
    active: int = 0
    characters: Counter[str] = field(default_factory=Counter)

    async def idle(self, hurry: asyncio.Event) -> None:
        """Wait until no request is active, or the event is set."""
        while self.active and not hurry.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), POLL_S)
