"""`status` of a TranslationDeployment."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ConditionType = Literal[
    "Available",
    "Progressing",
    "Degraded",
    "Ready",
    "Reconciling",
    "Stalled",
    "ScalingActive",
    "MetricsAvailable",
    "Tuning",
]

REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""Format of a condition's reason in Kubernetes."""


UNOBSERVED = -1
"""observedGeneration of an object that the operator has not reconciled. Tools such as Flux take an object without
observedGeneration and conditions for a ready one.

Source: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
"""


def written_status(body: Mapping[str, Any]) -> dict[str, Any]:
    """The status that the operator wrote; empty before its first."""
    status: dict[str, Any] = body.get("status") or {}
    return {} if status.get("observedGeneration") == UNOBSERVED else status


class StatusModel(BaseModel):
    """Base of the status: camelCase in YAML; unset fields are left out."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Condition(StatusModel):
    """Condition of the object."""

    type: ConditionType = Field(description="Type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="Status of the condition.")
    reason: str = Field(
        min_length=1,
        max_length=256,
        pattern=REASON_PATTERN,
        description="Reason for the status, in one word.",
    )
    message: str = Field(max_length=4096, description="Explanation of the reason, with the action to take.")
    last_transition_time: str = Field(
        json_schema_extra={"format": "date-time"}, description="Time at which the field status last changed."
    )
    observed_generation: int = Field(
        ge=0,
        json_schema_extra={"format": "int64"},
        description="Generation of the spec that the condition is based on.",
    )


class ConditionValue(NamedTuple):
    """A condition without its times."""

    type: ConditionType
    status: bool
    reason: str
    message: str


class SignalsStatus(StatusModel):
    """Measurements behind the last decision."""

    running: float | None = Field(None, description="Running sequences of all replicas.")
    waiting: float | None = Field(None, description="Waiting sequences of all replicas.")
    queued_at_routers: int | None = Field(None, description="Requests that wait in the routers.")
    in_flight_at_routers: int | None = Field(
        None, description="Unfinished requests that routers have sent to replicas."
    )
    replicas_not_reporting: int | None = Field(None, description="Ready replicas without metrics.")
    routers_not_reporting: int | None = Field(None, description="Routers that do not report their load.")
    arrivals_per_second: float | None = Field(
        None, description="Arriving sequences per second, averaged over the last minute."
    )
    seconds_per_request: float | None = Field(None, description="Mean running time of a sequence.")
    kv_cache_usage: float | None = Field(None, description="Mean KV cache usage of the replicas, 0 to 1.")
    replicas_by_load: float | None = Field(None, description="Replicas that the load requires, not rounded.")
    replicas_by_kv_cache: float | None = Field(
        None, description="Replicas that the KV cache usage requires, not rounded."
    )
    stabilization_window_seconds: float | None = Field(
        None, description="Stabilization window for scale-downs in seconds."
    )


class ScalingChange(StatusModel):
    """A change of the number of replicas."""

    time: str = Field(json_schema_extra={"format": "date-time"}, description="Time of the change.")
    from_: int = Field(ge=0, alias="from", description="Number of replicas before the change.")
    to: int = Field(ge=0, description="Number of replicas after the change.")
    rule: str = Field(max_length=64, description="Rule that determined the change.")
    reason: str = Field(max_length=1024, description="Reason for the change, with measurements.")


class ExpectedWait(StatusModel):
    """What is expected with a number of replicas."""

    replicas: int = Field(ge=0, description="Number of replicas.")
    late_ratio: float = Field(
        ge=0, le=1, description="Fraction of sequences that would wait longer than targetQueueTime."
    )


class ScalingStatus(StatusModel):
    """State of autoscaling."""

    mode: str | None = Field(
        None, max_length=64, description="Autoscaling mode, as in spec.autoscaling.mode."
    )
    rule: str | None = Field(
        None,
        max_length=64,
        description="Rule that determined the number of replicas, see docs/explanation/scaling.md.",
    )
    reason: str = Field(max_length=1024, description="Reason for the number of replicas, with measurements.")
    desired_replicas: int | None = Field(None, ge=0, description="Same as status.desiredReplicas.")
    current_replicas: int | None = Field(None, ge=0, description="Same as status.replicas.")
    observed_spec_replicas: int | None = Field(
        None,
        ge=0,
        description=(
            "Value of spec.replicas when the operator last read or wrote it. If spec.replicas now has another value, "
            "a client other than the operator has changed it."
        ),
    )
    evaluation_time: str | None = Field(
        None,
        json_schema_extra={"format": "date-time"},
        description="Time of the measurements in scaling.signals.",
    )
    source: str | None = Field(
        None, max_length=512, description="Source of the measurements: the pods or a Prometheus."
    )
    signals: SignalsStatus | None = Field(None, description="Measurements for the last decision.")
    expectation: str | None = Field(
        None,
        max_length=256,
        description="Expected percentage of sequences that wait longer than targetQueueTime. Example: with 3 replicas, "
        "0.4% of requests would wait over 2 s; with 2, 6%. Here, a request is a sequence.",
    )
    expected: tuple[ExpectedWait, ...] = Field(
        (),
        max_length=2,
        description="The numbers in scaling.expectation.",
    )
    time_to_ready_seconds: float | None = Field(
        None, description="Measured time from the creation of a pod until it is ready."
    )
    changes: tuple[ScalingChange, ...] = Field(
        (), max_length=5, description="Last changes of the number of replicas, newest first."
    )
    state: str | None = Field(
        None,
        max_length=32_768,
        description="Encoded data with which a restarted operator continues scaling.",
    )


class RolloutStatus(StatusModel):
    """State of rollouts and rollbacks."""

    last_ready_template_hash: str | None = Field(
        None,
        max_length=63,
        description=(
            "Label pod-template-hash of the last pod template whose pods were all ready. A rollback "
            "restores this template."
        ),
    )
    last_ready_source: str | None = Field(
        None,
        max_length=63,
        description=(
            "Digest of the spec and the engine image when all pods were last ready. As "
            "long as both are the same as then, an upgrade of the operator replaces no pods, even if the new "
            "version generates another pod template."
        ),
    )
    failed_template_digest: str | None = Field(
        None,
        max_length=63,
        description="Digest of the spec and image that were rolled back. The operator does not retry them.",
    )
    reason: str | None = Field(
        None,
        max_length=1024,
        description="Reason for the rollback.",
    )


class SizeMeasurements(StatusModel):
    """Measurements of one replica in the window of a recommendation."""

    window_seconds: float = Field(description="Duration of the measurement.")
    samples: int = Field(ge=0, description="Number of scrapes with running or waiting sequences.")
    requests: int = Field(ge=0, description="Number of finished sequences.")
    concurrency_p50: float = Field(
        description="Median number of running and waiting sequences, idle times excluded."
    )
    concurrency_p95: float = Field(
        description="95th percentile of the number of running and waiting sequences, idle times excluded."
    )
    queued_request_ratio: float = Field(
        description="Waiting sequences as a fraction of running and waiting sequences."
    )
    queue_time_seconds: float | None = Field(None, description="Mean queue time of a sequence.")
    time_per_output_token_seconds: float | None = Field(
        None,
        description="Time per output token of a running sequence.",
    )
    output_tokens_per_second: float | None = Field(
        None, description="Output tokens per second, idle times excluded."
    )
    kv_cache_usage_p95: float | None = Field(None, description="95th percentile of KV cache usage, 0 to 1.")
    preemptions_per_request: float | None = Field(None, description="Preemptions per sequence.")


class SizeRecommendation(StatusModel):
    """The maxNumSeqs that fits the measured load."""

    max_num_seqs: int = Field(ge=1, description="Recommended spec.engine.maxNumSeqs.")
    reason: str = Field(max_length=1024, description="Reason for the recommendation, with measurements.")
    first_recommended_time: str = Field(
        json_schema_extra={"format": "date-time"},
        description="Time at which recommendation.maxNumSeqs was first recommended.",
    )
    measurements: SizeMeasurements = Field(
        description="Measurements per replica, except samples and requests: these are totals of all replicas."
    )


class TuningStatus(StatusModel):
    """State of tuning."""

    mode: str = Field(max_length=64, description="Tuning mode, as in spec.tuning.mode.")
    state: str | None = Field(
        None,
        max_length=32_768,
        description="Encoded data with which a restarted operator continues tuning.",
    )


class Status(StatusModel):
    """Observed state of the deployment."""

    observed_generation: int = Field(
        UNOBSERVED,
        ge=UNOBSERVED,
        json_schema_extra={"format": "int64"},
        description="Generation of the spec that this status is based on. -1 until the operator has reconciled the "
        "object.",
    )
    replicas: int | None = Field(None, ge=0, description="Existing pods, ready or not.")
    ready_replicas: int | None = Field(None, ge=0, description="Ready pods.")
    desired_replicas: int | None = Field(None, ge=0, description="Desired number of pods.")
    selector: str | None = Field(
        None, max_length=1024, description="Label selector of the pods, for the scale subresource."
    )
    url: str | None = Field(None, max_length=512, description="URL for requests from inside the cluster.")
    languages: str | None = Field(
        None,
        max_length=1024,
        description="Language pairs that are served. en>de,fr: from en into de and fr.",
    )
    message: str | None = Field(None, max_length=1024, description="Message of the most important condition.")
    scaling: ScalingStatus | None = Field(None, description="State of autoscaling.")
    rollout: RolloutStatus | None = Field(None, description="State of rollouts and rollbacks.")
    recommendation: SizeRecommendation | None = Field(
        None, description="Recommended engine.maxNumSeqs, with the measurements."
    )
    tuning: TuningStatus | None = Field(None, description="State of the recommendation of engine.maxNumSeqs.")
    conditions: tuple[Condition, ...] = Field(
        (),
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="Available: at least one replica is ready.\n"
        "Progressing: pods are being started or replaced.\n"
        "Degraded: manual action is needed.\n"
        "Ready: all replicas run the current spec and are ready.\n"
        "Reconciling: replicas are being started, replaced or removed, without a failure.\n"
        "Stalled: manual action is needed before the spec can be fulfilled.\n"
        "ScalingActive: the number of replicas follows the load.\n"
        "MetricsAvailable: metrics for scaling are available.\n"
        "Tuning: another maxNumSeqs is recommended.",
    )


def rounded(value: float | None, digits: int = 3) -> float | None:
    """A measurement for the status."""
    return None if value is None else round(value, digits)


MAX_BYTES = 1 << 20


def encode_state(text: str) -> str:
    """The text, compressed and in Base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def decode_state(word: Any) -> str:
    """The text of `encode_state`.

    Raises:
        ValueError: `word` is not encoded text.
    """
    try:
        raw = base64.b64decode(str(word), validate=True)
        return zlib.decompressobj().decompress(raw, MAX_BYTES).decode()
    except (binascii.Error, zlib.error) as error:
        raise ValueError("not an encoded state") from error
