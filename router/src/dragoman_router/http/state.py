"""The parts and the state of a running router."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from dragoman_http.bodies import BodyMemory
from dragoman_router.access.failures import AuthFailures
from dragoman_router.access.gate import Gate, TokenVerifier
from dragoman_router.access.keys import KeyRing
from dragoman_router.access.usage import AccountUsage, Calendar
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.history import FleetHistory
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.audit import AuditLog, standard_output
from dragoman_router.http.proxy import HeadWriter, Proxy
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings
from dragoman_router.state.kept_glossaries import KeptGlossaries, store_of

if TYPE_CHECKING:
    from dragoman_router.state.opening import SharedState

POLL_S = 0.05
"""Interval at which a drain checks for active requests; an event would cost each request."""

Detector = Callable[[str, tuple[str, ...], tuple[str, ...]], str]
"""A text, its possible tags (none: any) and the targets → a tag, `und` where any deployment will do; raises
`CallerError`."""


@dataclass(slots=True)
class State:
    """The parts and the state of a running router.

    Args:
        gate: Keys and rates; None: neither is configured.
        memory: What the bodies of all requests take.
        draining: Whether this router terminates.
        drained: Whether the drain timed out; requests that are cancelled from then on get 503.
        active: Requests that are not answered.
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
    memory: BodyMemory
    connections: Sized = ()
    audit: AuditLog | None = None
    draining: bool = False
    drained: bool = False
    active: int = 0
    characters: Counter[str] = field(default_factory=Counter)

    async def idle(self, hurry: asyncio.Event) -> None:
        """Wait until no request is active, or the event is set."""
        while self.active and not hurry.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), POLL_S)


def assemble(
    settings: Settings,
    ring: KeyRing | None,
    shared: SharedState | None = None,
    tokens: TokenVerifier | None = None,
) -> State:
    """The parts of a router with these settings; the fleet is empty until a source fills it.

    Raises:
        SettingsError: The directory for glossaries cannot be used.
    """
    chance = Random()
    clock = asyncio.get_running_loop().time
    limits = QueueLimits(
        settings.max_queued_requests,
        settings.max_queued_bytes,
        settings.max_queue_s,
        settings.request_timeout_s,
    )
    fleet = Fleet(limits, chance)
    metrics = Metrics(fleet)
    gate: Gate | None = None
    if ring is not None or tokens is not None or settings.anonymous_requests_per_s is not None:
        usage = AccountUsage(
            Calendar(settings.quota_reset_day), clock, None if shared is None else shared.usage
        )
        per_s = settings.auth_failures_per_s
        failures = AuthFailures(per_s, usage, clock) if per_s else None
        gate = Gate(
            ring,
            tokens,
            settings.anonymous_requests_per_s,
            usage,
            clock,
            failures,
            public_lists=settings.public_lists,
        )
    state = State(
        fleet=fleet,
        history=FleetHistory(fleet),
        proxy=Proxy(fleet, metrics, chance),
        gate=gate,
        metrics=metrics,
        detect=detect,
        heads=HeadWriter(settings.router_id, chance),
        glossaries=KeptGlossaries(store_of(settings, shared), settings.common_glossaries),
        memory=BodyMemory(settings.max_memory_bytes),
        audit=AuditLog(standard_output(), metrics.audit_lines_dropped.inc) if settings.audit_log else None,
    )
    if shared is not None:
        shared.metrics.register(metrics.registry)
    metrics.watch(lambda: state.active, lambda: state.memory.used_bytes, lambda: len(state.connections))
    return state


def detect(text: str, sources: tuple[str, ...], targets: tuple[str, ...]) -> str:
    """The BCP-47 tag of the language that a text is translated from.

    Args:
        text: Up to a thousand characters.
        sources: Possible tags; empty: any.
        targets: Tags of the translations.

    Returns:
        `und` where the text has no letters or is in a target language already.

    Raises:
        CallerError: It is in a language that is not served, or its language could not be told.
    """
    # Imported on first use: the model takes 120 MB and a second or two of CPU; few routers have to detect.
    from dragoman_protocols.source_choice import choose_source
    from dragoman_protocols.translation import UNDETERMINED

    found = choose_source(text, sources, targets)
    return UNDETERMINED if found.is_target else found.tag
