"""Outlier detection.

A replica that cannot be reached or refuses is ejected at once, one with five consecutive errors unless it is the
last. Its readiness probe, sent at exponentially increasing intervals, readmits it with a small share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

ERRORS_IN_A_ROW = 5
"""As Envoy's outlier detection has it (consecutive_5xx)."""
FIRST_PROBE_S = 0.1
MAX_PROBE_S = 10.0
FORGET_RATIO = 0.1
"""Weight of one response in the recent share of errors."""


@dataclass(frozen=True, slots=True)
class Health:
    """One replica's.

    Args:
        error_ratio: Recent share of failed requests, 0 to 1.
        errors_in_a_row: Since the last success.
        ejected: Whether it gets no requests until a probe succeeds.
        probes_failed: Since it was ejected.
    """

    error_ratio: float = 0.0
    errors_in_a_row: int = 0
    ejected: bool = False
    probes_failed: int = 0

    @property
    def probe_in_s(self) -> float:
        """Seconds until the next probe."""
        return float(min(MAX_PROBE_S, FIRST_PROBE_S * 2 ** min(self.probes_failed, 10)))


HEALTHY = Health()


def after_success(health: Health) -> Health:
    """It answered."""
    if health is HEALTHY or (not health.errors_in_a_row and health.error_ratio < 0.001):
        return health if health.ejected else HEALTHY
    return replace(health, errors_in_a_row=0, error_ratio=health.error_ratio * (1 - FORGET_RATIO))


def after_error(health: Health, *, last: bool) -> Health:
    """It responded with an error, or the connection was lost.

    Args:
        health: Before.
        last: Whether it is the only available one: a failing replica is better than none.
    """
    in_a_row = health.errors_in_a_row + 1
    return replace(
        health,
        errors_in_a_row=in_a_row,
        error_ratio=health.error_ratio + (1 - health.error_ratio) * FORGET_RATIO,
        ejected=health.ejected or (in_a_row >= ERRORS_IN_A_ROW and not last),
    )


def after_refusal(health: Health) -> Health:
    """It cannot be reached, or refuses all requests."""
    return replace(health, ejected=True)


def after_probe(health: Health, answered: bool) -> Health:
    """Its readiness probe was sent."""
    if answered:
        return Health(error_ratio=health.error_ratio * 0.5)
    return replace(health, probes_failed=health.probes_failed + 1)
