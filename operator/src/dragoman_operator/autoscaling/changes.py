"""The last changes of the number of replicas, as the status tells them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from dragoman_operator.api.status import ScalingChange
from dragoman_operator.autoscaling.replicas import Sizing

KEPT = 5


def changes(old: Mapping[str, Any], sized: Sizing, now: datetime) -> tuple[ScalingChange, ...]:
    """The newest first; one more where the number differs from the one that the status has.

    Args:
        old: The status as stored; may be empty, and then nothing has changed yet.
        sized: Replicas that there should be now.
        now: The time.
    """
    stored = (old.get("scaling") or {}).get("changes") or ()
    known = tuple(change for entry in stored if (change := _read(entry)) is not None)
    before = old.get("desiredReplicas")
    if before is None or before == sized.replicas:
        return known
    change = ScalingChange(
        time=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        from_=before,
        to=sized.replicas,
        rule=sized.rule,
        reason=sized.reason[:1024],
    )
    return (change, *known)[:KEPT]


def _read(entry: object) -> ScalingChange | None:
    """A stored change; None if it is malformed."""
    try:
        return ScalingChange.model_validate(entry)
    except ValidationError:
        return None
