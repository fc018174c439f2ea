"""What routers and pods report: load to the autoscaler, speeds to the simulator.

A router serves `GET /load` on its admin port: one JSON object, or with `?watch=1` one per line: the first at
once, then one for each change (at most ten a second), and at least one every second as a heartbeat. It has the queued
and in-flight requests of each TranslationDeployment.

A pod reports its speed by one metric: sums over generations, by how many ran at once.
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


SPEED_METRIC = "dragoman_generation_sums_total"
"""A counter with the labels below; `dragoman simulate` fits a table of speeds to it."""

RUNNING_LABEL = "running"
"""Upper bound of the mean number of generations that ran, without those that waited for a slot."""

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Upper bounds of that number; more is `+Inf`."""

SUM_LABEL = "sum"

COUNT, RUNNING, SECONDS, TOKENS, TOKENS_SQUARED, TOKEN_SECONDS = SUMS = (
    "count",
    "running",
    "seconds",
    "tokens",
    "tokens_squared",
    "token_seconds",
)
"""What is summed over generations: 1, the mean number that ran, the duration since the generation got its slot, output
tokens, their square, and output tokens times duration: enough for a line of duration over tokens."""
