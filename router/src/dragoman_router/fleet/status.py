"""Reads what the operator reports of a TranslationDeployment in its status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from dragoman_kube.quantity import parse
from dragoman_protocols.fleet import MAX_REASON_CHARS, Scaling, ScalingChange

log = logging.getLogger(__name__)

GPU_PREFIX = "nvidia.com/"
"""Of resources that are GPUs, or MIG devices."""
MOST_IMPORTANT = (
    ("Degraded", "True"),
    ("Progressing", "True"),
    ("Available", "False"),
    ("Available", "True"),
)
"""Conditions, the one first that is the state of the object."""

NO_DECISION = Scaling()


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a TranslationDeployment; None: not known.

    Args:
        ready, wanted: Replicas.
        running: Sequences in all engines.
        waiting: Requests in the engines' queues.
        kv_cache_usage: Mean of the engines, 0 to 1.
        gpus: Of the pods that exist.
        state: Reason of the condition that matters most; `message` explains it.
    """

    ready: int = 0
    wanted: int | None = None
    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None
    gpus: float | None = None
    scaling: Scaling = NO_DECISION
    state: str = ""
    message: str = ""
    degraded: bool = False


class _Signals(Struct, rename="camel"):
    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None


class _Scaling(Struct, rename="camel"):
    rule: str | None = None
    reason: str = ""
    evaluation_time: str | None = None
    signals: _Signals | None = None
    changes: tuple[ScalingChange, ...] = ()


class _Condition(Struct, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(Struct, rename="camel"):
    replicas: int = 0
    ready_replicas: int = 0
    desired_replicas: int | None = None
    scaling: _Scaling | None = None
    conditions: tuple[_Condition, ...] = ()


def status(manifest: Mapping[str, Any]) -> Status | None:
    """The status of an object; None where there is none yet, or it cannot be read."""
    try:
        found = msgspec.convert(manifest.get("status") or {}, _Status)
        gpus = _gpus_of_replica(manifest.get("spec") or {})
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        log.debug("a status cannot be read: %.200s", error)
        return None
    if not found.conditions:
        return None
    scaling = found.scaling or _Scaling()
    signals = scaling.signals or _Signals()
    state = _state(found.conditions)
    return Status(
        ready=found.ready_replicas,
        wanted=found.desired_replicas,
        running=signals.running,
        waiting=signals.waiting,
        kv_cache_usage=signals.kv_cache_usage,
        gpus=found.replicas * gpus if gpus else None,
        scaling=Scaling(
            (scaling.rule or "")[:64],
            scaling.reason[:MAX_REASON_CHARS],
            None if scaling.evaluation_time is None else scaling.evaluation_time[:64],
            scaling.changes[:5],
        ),
        state=state.reason[:256],
        message=state.message[:MAX_REASON_CHARS],
        degraded=(state.type, state.status) == MOST_IMPORTANT[0],
    )


def _gpus_of_replica(spec: Mapping[str, Any]) -> float:
    """GPUs of one pod.

    Raises:
        ValueError: A limit is no quantity.
    """
    limits = (spec.get("resources") or {}).get("limits") or {}
    return float(sum(parse(count) for name, count in limits.items() if name.startswith(GPU_PREFIX)))


def _state(conditions: tuple[_Condition, ...]) -> _Condition:
    there = {(each.type, each.status): each for each in reversed(conditions)}
    return next((there[each] for each in MOST_IMPORTANT if each in there), conditions[0])
