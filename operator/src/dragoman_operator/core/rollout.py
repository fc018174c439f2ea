"""How pods are replaced: the Deployment's rolling update."""

from __future__ import annotations

from dragoman_operator.api.pods import Rollout


def strategy(rollout: Rollout) -> dict[str, object]:
    """The Deployment's `strategy`.

    `Auto` surges: capacity never falls below what is desired, at the price of one spare place for a pod.
    """
    surge, unavailable = (0, 1) if rollout.surge == "Never" else (1, 0)
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }
