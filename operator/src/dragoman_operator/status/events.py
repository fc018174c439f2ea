"""Changes of the status that become Events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_operator.status.conditions import conditions_by_type

_BAD = {"Degraded": "True", "ScalingActive": "False", "MetricsAvailable": "False"}
"""Conditions with the status whose event is a warning."""


_SUMMARY = ("Ready", "Reconciling", "Stalled")
"""Conditions that repeat others."""


@dataclass(frozen=True)
class Transition:
    """A change of a condition or of the number of replicas, for an event."""

    warning: bool
    reason: str
    message: str


def transitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    """Changes of conditions and of the number of replicas, for events.

    At the first reconciliation, conditions without a problem are not included.
    """
    before = conditions_by_type(old)
    changed = []
    for condition in new.get("conditions") or ():
        if condition["type"] in _SUMMARY:
            continue
        was = before.get(condition["type"], {})
        differs = (was.get("status"), was.get("reason")) != (condition["status"], condition["reason"])
        warning = _BAD.get(condition["type"]) == condition["status"]
        known = not condition["reason"].endswith("Pending")
        is_first_scrape = not was and condition["type"] == "MetricsAvailable"
        reported = bool(was) or (condition["status"] == "True" and not is_first_scrape) or (warning and known)
        # The spec being written is followed by what becomes of it within a second.
        if differs and reported and condition["reason"] != "Applying":
            changed.append(Transition(warning, condition["reason"], condition["message"]))
    return changed + _resizings(old, new) + _limited_requests(old, new)


def _resizings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    known = (old.get("scaling") or {}).get("changes") or ()
    added = [change for change in (new.get("scaling") or {}).get("changes") or () if change not in known]
    return [
        Transition(
            False,
            "ScaledUp" if change["to"] > change["from"] else "ScaledDown",
            f"from {change['from']} to {change['to']} replicas: {change['reason']}",
        )
        for change in reversed(added)
    ]


def _limited_requests(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Transition]:
    """A number requested in `spec.replicas` that changed nothing."""
    before, after = old.get("scaling") or {}, new.get("scaling") or {}
    same = old.get("desiredReplicas") == new.get("desiredReplicas")
    if not same or after.get("rule") != "Requested" or before.get("reason") == after["reason"]:
        return []
    return [Transition(False, "RequestLimited", after["reason"])]
