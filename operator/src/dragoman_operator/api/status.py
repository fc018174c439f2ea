"""`status`: what the operator found, and what a person should know about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ConditionType = Literal["Available", "Progressing", "Degraded", "ScalingActive", "MetricsAvailable", "Tuning"]

REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""Of a condition's reason, as Kubernetes has it."""


class StatusModel(BaseModel):
    """Base of the status: camelCase outside; what is unset is left out."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Condition(StatusModel):
    """One statement about the object, with its reason."""

    type: ConditionType = Field(description="What the condition is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(
        min_length=1,
        max_length=256,
        pattern=REASON_PATTERN,
        description="The cause in one word, for programs.",
    )
    message: str = Field(max_length=4096, description="The cause in a sentence, and what to do about it.")
    last_transition_time: str = Field(
        json_schema_extra={"format": "date-time"}, description="When status last changed."
    )
    observed_generation: int = Field(
        ge=0, json_schema_extra={"format": "int64"}, description="The spec's generation it was drawn from."
    )


class ConditionValue(NamedTuple):
    """A condition before it is stamped with times."""

    type: ConditionType
    holds: bool
    reason: str
    message: str


class Signals(StatusModel):
    """The figures that the last decision was made by."""

    running: float | None = Field(None, description="Sequences in all engines.")
    waiting: float | None = Field(None, description="Requests in the engines' queues.")
    held: int | None = Field(None, description="Requests that wait at the routers.")
    in_flight_at_routers: int | None = Field(
        None, description="Requests that routers have passed on and that are not answered."
    )
    silent_replicas: int | None = Field(None, description="Ready replicas that give no metrics.")
    silent_routers: int | None = Field(None, description="Routers whose load is not known.")
    arrivals_per_second: float | None = Field(None, description="Requests that come, over the last minute.")
    seconds_per_request: float | None = Field(None, description="Seconds that a request spends in an engine.")
    kv_cache_usage: float | None = Field(None, description="Mean share of the KV caches in use.")
    replicas_by_load: float | None = Field(None, description="Replicas that the load asks for, not rounded.")
    replicas_by_memory: float | None = Field(
        None, description="Replicas that the KV caches ask for, not rounded."
    )
    window_seconds: float | None = Field(
        None, description="How far back the autoscaler looks before it lets replicas go."
    )


class ScalingChange(StatusModel):
    """One change of the number of replicas."""

    time: str = Field(json_schema_extra={"format": "date-time"}, description="When.")
    from_: int = Field(ge=0, alias="from", description="Replicas before.")
    to: int = Field(ge=0, description="Replicas after.")
    rule: str = Field(max_length=64, description="The rule that decided.")
    reason: str = Field(max_length=1024, description="Why, with its numbers.")


class Scaling(StatusModel):
    """Why there are as many replicas as there are."""

    mode: str | None = Field(None, max_length=64, description="Who decides, as spec.autoscaling.mode says.")
    rule: str | None = Field(
        None, max_length=64, description="The rule that decided; docs/autoscaling.md tells them."
    )
    reason: str = Field(max_length=1024, description="Why, with its numbers.")
    desired_replicas: int | None = Field(None, ge=0, description="Pods that there should be.")
    current_replicas: int | None = Field(None, ge=0, description="Pods that there are, ready or not.")
    evaluated_at: str | None = Field(
        None, json_schema_extra={"format": "date-time"}, description="When the figures below were read."
    )
    source: str | None = Field(None, max_length=512, description="Where they were read.")
    signals: Signals | None = Field(None, description="The figures that the decision was made by.")
    time_to_ready_seconds: float | None = Field(
        None, description="How long a replica takes to become ready, as measured."
    )
    changes: tuple[ScalingChange, ...] = Field(
        (), max_length=5, description="The last changes of the number of replicas, the newest first."
    )
    memory: str | None = Field(
        None, max_length=32_768, description="What the autoscaler remembers, for its next start."
    )


class RolloutStatus(StatusModel):
    """What a failed rollout goes back to."""

    good_template: str | None = Field(
        None,
        max_length=63,
        description="The pod-template-hash of the version whose pods were all ready last.",
    )
    failed_template: str | None = Field(
        None, max_length=63, description="Digest of the version that failed and is not tried again."
    )
    reason: str | None = Field(None, max_length=1024, description="Why it failed.")


class SizeEvidence(StatusModel):
    """What was measured of one replica, in the window that a recommendation rests on."""

    window_seconds: float = Field(description="Length of the window.")
    samples: int = Field(ge=0, description="Looks at a replica that had requests.")
    requests: int = Field(ge=0, description="Requests that ended.")
    concurrency_p50: float = Field(description="Requests running and waiting, half the time it was busy.")
    concurrency_p95: float = Field(description="The same for 95% of that time.")
    queue_share: float = Field(description="Share of these requests that waited, 0 to 1.")
    queue_seconds: float | None = Field(None, description="Seconds that a request waited.")
    seconds_per_output_token: float | None = Field(
        None, description="Seconds that a running sequence took for a token."
    )
    tokens_per_second: float | None = Field(
        None, description="Tokens that a replica wrote while it was busy."
    )
    kv_cache_usage_p95: float | None = Field(None, description="KV cache in use 95% of the time, 0 to 1.")
    preemptions_per_request: float | None = Field(
        None, description="How often a sequence lost its place in the KV cache."
    )


class SizeRecommendation(StatusModel):
    """The size that fits the measured load."""

    max_num_seqs: int = Field(ge=1, description="For spec.engine.maxNumSeqs.")
    reason: str = Field(max_length=1024, description="Why, with its numbers.")
    since: str = Field(json_schema_extra={"format": "date-time"}, description="When it was first made.")
    evidence: SizeEvidence = Field(description="What was measured.")


class SizeTrial(StatusModel):
    """A size that is tried, or was."""

    time: str = Field(json_schema_extra={"format": "date-time"}, description="When it began, or ended.")
    from_: int = Field(ge=1, alias="from", description="The size before.")
    to: int = Field(ge=1, description="The size that is tried.")
    result: str = Field(max_length=64, description="Starting, Comparing, Applied or TurnedDown.")
    reason: str = Field(max_length=1024, description="Why, with its numbers.")


class TuningStatus(StatusModel):
    """How maxNumSeqs follows the measured load."""

    mode: str = Field(max_length=64, description="What spec.tuning.mode asked for.")
    max_num_seqs: int = Field(ge=1, description="The size in force; the spec's, where none was applied.")
    trial: SizeTrial | None = Field(None, description="The size that is being tried.")
    trials: tuple[SizeTrial, ...] = Field((), max_length=5, description="The last ones, the newest first.")
    memory: str | None = Field(
        None, max_length=32_768, description="What tuning remembers, for the operator's next start."
    )


class Status(StatusModel):
    """What the operator found, and what a person should know about it."""

    observed_generation: int | None = Field(
        None,
        ge=0,
        json_schema_extra={"format": "int64"},
        description="The spec's generation that this status belongs to.",
    )
    replicas: int | None = Field(None, ge=0, description="Pods that exist, ready or not.")
    ready_replicas: int | None = Field(None, ge=0, description="Pods that answer requests.")
    desired_replicas: int | None = Field(None, ge=0, description="Pods that there should be.")
    selector: str | None = Field(
        None, max_length=1024, description="Label selector of the pods, for the scale subresource."
    )
    url: str | None = Field(None, max_length=512, description="Where requests go, inside the cluster.")
    languages: str | None = Field(
        None, max_length=1024, description="The pairs served, for people: en>de,fr,ne."
    )
    why: str | None = Field(
        None, max_length=1024, description="The most important of the conditions, in one sentence."
    )
    scaling: Scaling | None = Field(None, description="Why there are as many replicas as there are.")
    rollout: RolloutStatus | None = Field(None, description="What a failed rollout goes back to.")
    recommendation: SizeRecommendation | None = Field(
        None, description="The maxNumSeqs that fits the measured load."
    )
    tuning: TuningStatus | None = Field(None, description="How maxNumSeqs follows the measured load.")
    conditions: tuple[Condition, ...] = Field(
        (),
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="Available: requests are answered. Progressing: pods are being started or replaced. "
        "Degraded: something needs a person. ScalingActive: the number of replicas follows the load. "
        "MetricsAvailable: there are figures to decide by. Tuning: another maxNumSeqs is being tried.",
    )
