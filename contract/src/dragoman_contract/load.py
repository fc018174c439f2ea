"""Load reports of routers to the autoscaler: queued and in-flight requests of each TranslationDeployment.

A router serves `GET /load` on its admin port: one JSON object, or with `?watch=1` one per line: the first at
once, then one for each change (at most ten a second), and at least one every second as a heartbeat.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LOAD_PATH = "/load"

WATCH_PARAMETER = "watch"

HEARTBEAT_S = 1.0
"""After a few of these without a report a router counts as not reporting."""


class DeploymentLoad(BaseModel):
    """Load of one TranslationDeployment at one router; unknown fields are ignored.

    Args:
        queued: Requests that are queued at the router, because no replica is ready or all are full.
        oldest_queued_s: Queue time of the oldest of them; 0 without any.
        in_flight: Requests that were sent to replicas and are not answered.
    """

    model_config = ConfigDict(frozen=True)

    queued: Annotated[int, Field(ge=0)] = 0
    oldest_queued_s: Annotated[float, Field(ge=0)] = 0.0
    in_flight: Annotated[int, Field(ge=0)] = 0


class RouterLoad(BaseModel):
    """One line of `GET /load`.

    Args:
        deployments: By `namespace/name`; those without requests are left out.
        draining: Whether this router is terminating.
    """

    model_config = ConfigDict(frozen=True)

    deployments: dict[str, DeploymentLoad] = Field(default_factory=dict)
    draining: bool = False
