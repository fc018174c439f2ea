"""The deployments of a router, now and in the last hours, as the page shows them; see docs/how-to/page.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

MAX_REASON_CHARS = 1024
"""Of a text from a status, which the API server bounds likewise."""

Text = Annotated[str, Meta(max_length=MAX_REASON_CHARS)]


class Sample(Struct, frozen=True, gc=False):
    """One deployment at one time; None: not known."""

    time: Annotated[int, Meta(description="Unix seconds")]
    ready: Annotated[int, Meta(description="replicas that are ready")]
    wanted: Annotated[int, Meta(description="replicas that are wanted")]
    queued: Annotated[float, Meta(description="requests in the queues of this router and of the engines")]
    running: Annotated[
        float, Meta(description="sequences that the engines run; else requests in flight here")
    ]
    characters: Annotated[
        int, Meta(description="characters translated through this router in the minute before")
    ]
    p95_s: Annotated[
        float | None, Meta(description="95th percentile of the request durations of the minute before")
    ] = None
    kv_cache_usage: Annotated[
        float | None, Meta(description="mean KV cache usage of the engines, 0 to 1")
    ] = None
    gpus: Annotated[float | None, Meta(description="GPUs of the pods that exist")] = None


class History(Struct, frozen=True):
    """Samples, oldest first, as one list for each field of `Sample`."""

    time: list[int]
    ready: list[int]
    wanted: list[int]
    queued: list[float]
    running: list[float]
    characters: list[int]
    p95_s: list[float | None]
    kv_cache_usage: list[float | None]
    gpus: list[float | None]


class ScalingChange(Struct, frozen=True):
    """A change of the number of replicas, from the object's status."""

    time: Text
    from_: int = msgspec.field(name="from")
    to: int
    rule: Text
    reason: Text


class Scaling(Struct, frozen=True):
    """The decision in force, and the last changes, newest first."""

    rule: Text = ""
    reason: Text = ""
    measured: Annotated[Text | None, Meta(description="time of the measurements of the status")] = None
    changes: tuple[ScalingChange, ...] = ()


class DeploymentView(Struct, frozen=True):
    """One TranslationDeployment."""

    name: Annotated[str, Meta(description="NAMESPACE/NAME")]
    now: Sample
    history: History
    scaling: Scaling
    state: Annotated[str, Meta(description="reason of the condition that matters most; empty: not known")] = (
        ""
    )
    message: Annotated[str, Meta(description="explanation of the state")] = ""
    degraded: Annotated[bool, Meta(description="whether manual action is needed")] = False
    characters: Annotated[int, Meta(description="characters of the whole history")] = 0
    gpu_seconds_per_million_characters: float | None = None


class FleetView(Struct, frozen=True):
    """The answer."""

    router: Annotated[str, Meta(description="name of the router that answers")]
    time: Annotated[int, Meta(description="Unix seconds")]
    step_s: Annotated[int, Meta(description="seconds between two samples of the history")]
    kept_s: Annotated[int, Meta(description="seconds that the history reaches back at most")]
    deployments: list[DeploymentView]
    left_out: Annotated[
        int, Meta(description="deployments that are not listed, because there are too many")
    ] = 0


class FleetQuery(Struct):
    """The query."""

    since: Annotated[int, Meta(description="leave out samples up to this time in Unix seconds")] = 0


class Observed(Struct, frozen=True):
    """What a router has of one deployment: see `DeploymentView`."""

    name: str
    now: Sample
    samples: tuple[Sample, ...]
    scaling: Scaling = Scaling()
    state: str = ""
    message: str = ""
    degraded: bool = False


class ObservedFleet(Struct, frozen=True):
    """What a router has of all: see `FleetView`."""

    router: str
    time: int
    step_s: int
    kept_s: int
    deployments: tuple[Observed, ...]
    left_out: int = 0


def cost(samples: Sequence[Sample], step_s: int) -> tuple[int, float | None]:
    """Characters, and the GPU-seconds that a million of them took.

    Returns:
        The second is None where no GPUs are known, or nothing was translated.
    """
    characters = sum(each.characters for each in samples)
    gpu_s = sum(each.gpus or 0.0 for each in samples) * step_s
    return characters, round(gpu_s / characters * 1e6, 1) if gpu_s and characters else None


def view(observed: Observed, since: int, step_s: int) -> DeploymentView:
    """One deployment, with its samples after a time."""
    characters, gpu_s = cost(observed.samples, step_s)
    rows = [msgspec.structs.astuple(each) for each in observed.samples if each.time > since]
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in Sample.__struct_fields__)
    return DeploymentView(
        observed.name,
        observed.now,
        History(*columns),
        observed.scaling,
        observed.state,
        observed.message,
        observed.degraded,
        characters,
        gpu_s,
    )
