"""What routers tell the autoscaler: requests held and in flight for each TranslationDeployment.

A router serves `GET /load` on its admin port: one JSON object, or with `?watch=1` one a line, the first at
once, then on every change (at most ten a second), and at least every second so that silence means trouble.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LOAD_PATH = "/load"

WATCH_PARAMETER = "watch"

HEARTBEAT_S = 1.0
"""A watcher that heard nothing for a few of these takes the router for gone."""


class DeploymentLoad(BaseModel):
    """One TranslationDeployment as one router sees it; readers ignore fields they do not know.

    Args:
        held: Requests that wait in the router, because no replica is ready or all are full.
        oldest_held_s: For how long the first of them has waited; 0 where none does.
        in_flight: Requests that the router has passed on and that are not answered.
    """

    model_config = ConfigDict(frozen=True)

    held: Annotated[int, Field(ge=0)] = 0
    oldest_held_s: Annotated[float, Field(ge=0)] = 0.0
    in_flight: Annotated[int, Field(ge=0)] = 0


class RouterLoad(BaseModel):
    """One line of `GET /load`.

    Args:
        deployments: By `namespace/name`; one that is left out has neither held nor in-flight requests.
        draining: Whether this router is about to leave.
    """

    model_config = ConfigDict(frozen=True)

    deployments: dict[str, DeploymentLoad] = Field(default_factory=dict)
    draining: bool = False
