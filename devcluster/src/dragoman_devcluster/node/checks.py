"""Checks of a running container: its postStart hook and its probes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dragoman_devcluster.node.prober import ProbeResult, Target, attempt, results
from dragoman_kube.objects import Manifest


@dataclass(frozen=True)
class Health:
    """How a running container is.

    Args:
        started: Whether it has passed its startup probe, or has none.
        ready: Whether it may get traffic.
    """

    started: bool = False
    ready: bool = False

    @classmethod
    def at_start(cls, container: Manifest) -> Health:
        """What holds before any probe: who is not probed is well."""
        started = "startupProbe" not in container
        return cls(started, started and "readinessProbe" not in container)


class Patient(Protocol):
    """The container that is checked."""

    def set_health(self, health: Health) -> None:
        """Take in how the container is now."""

    def report(self, reason: str, message: str) -> None:
        """Write a warning event."""

    def must_end(self, grace_s: float, message: str) -> None:
        """End the container's process, so that it is started again."""


async def look_after(container: Manifest, target: Target, patient: Patient, grace_s: float) -> None:
    """Run the postStart hook, then the startup probe, then the others, until cancelled or the patient must end.

    Args:
        container: The container of the pod's spec.
        target: What its handlers act on.
        patient: Who hears of it.
        grace_s: What the pod gives its containers to end.
    """
    name = container["name"]
    hook = (container.get("lifecycle") or {}).get("postStart")
    if hook is not None and (failure := await attempt(hook, target, grace_s)):
        patient.report("FailedPostStartHook", failure)
        patient.must_end(grace_s, f"Container {name} failed its postStart hook")
        return
    if "startupProbe" in container:
        if not await _lives(container, "Startup", target, patient, grace_s, until_success=True):
            return
        patient.set_health(Health(started=True, ready="readinessProbe" not in container))
    checks: list[Coroutine[Any, Any, object]] = []
    if "readinessProbe" in container:
        checks.append(_follow_readiness(container, target, patient))
    if "livenessProbe" in container:
        checks.append(_lives(container, "Liveness", target, patient, grace_s))
    await asyncio.gather(*checks)


async def _follow_readiness(container: Manifest, target: Target, patient: Patient) -> None:
    health = Health(started=True, ready=False)
    async for result in results(container["readinessProbe"], target):
        if result.failure is not None:
            patient.report("Unhealthy", f"Readiness probe failed: {result.failure}")
        if result.verdict is not None and result.verdict != health.ready:
            health = replace(health, ready=result.verdict)
            patient.set_health(health)


async def _lives(
    container: Manifest,
    kind: str,
    target: Target,
    patient: Patient,
    grace_s: float,
    *,
    until_success: bool = False,
) -> bool:
    """Whether the probe has succeeded (if waited for); False once it has failed for good."""
    probe = container[f"{kind.lower()}Probe"]
    async for result in results(probe, target):
        if until_success and result.verdict:
            return True
        if _is_fatal(kind, result, patient):
            message = f"Container {container['name']} failed {kind.lower()} probe, will be restarted"
            patient.must_end(float(probe.get("terminationGracePeriodSeconds") or grace_s), message)
            return False
    return False


def _is_fatal(kind: str, result: ProbeResult, patient: Patient) -> bool:
    if result.failure is None:
        return False
    patient.report("Unhealthy", f"{kind} probe failed: {result.failure}")
    return result.verdict is False
