"""Builds the application of a router from its settings."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from dragoman_router.access.failures import AuthFailures
from dragoman_router.access.gate import Gate, TokenVerifier
from dragoman_router.access.keys import KeyRing
from dragoman_router.access.usage import AccountUsage, Calendar
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.history import FleetHistory
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.app import App
from dragoman_router.http.audit import AuditLog, standard_output
from dragoman_router.http.proxy import HeadWriter, Proxy
from dragoman_router.http.state import State
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings
from dragoman_router.state.kept_glossaries import KeptGlossaries, store_of

if TYPE_CHECKING:
    from dragoman_router.state.opening import SharedState


def assemble(
    settings: Settings,
    ring: KeyRing | None,
    shared: SharedState | None = None,
    tokens: TokenVerifier | None = None,
) -> tuple[App, State]:
    """The application and what it is made of; the fleet is empty until a source fills it.

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
        gate = Gate(ring, tokens, settings.anonymous_requests_per_s, usage, clock, failures)
    state = State(
        fleet=fleet,
        history=FleetHistory(fleet),
        proxy=Proxy(fleet, metrics, chance),
        gate=gate,
        metrics=metrics,
        detect=detect,
        heads=HeadWriter(settings.router_id, chance),
        glossaries=KeptGlossaries(store_of(settings, shared), settings.common_glossaries),
        max_memory_bytes=settings.max_memory_bytes,
        audit=AuditLog(standard_output(), metrics.audit_lines_dropped.inc) if settings.audit_log else None,
    )
    if shared is not None:
        shared.metrics.register(metrics.registry)
    metrics.watch(lambda: state.active, lambda: state.body_bytes, lambda: len(state.connections))
    return App(state, settings), state


def detect(text: str, among: tuple[str, ...]) -> str:
    """The BCP-47 tag of a text's language; `und` where it cannot be determined.

    Args:
        text: Up to a thousand characters.
        among: Possible tags; empty: any.
    """
    # Imported on first use: the model takes 90 MB and a second or two of CPU; few routers have to detect.
    from dragoman_protocols import detection

    return detection.detect(text, among).tag
