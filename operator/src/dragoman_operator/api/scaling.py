"""`spec.autoscaling` and `spec.tuning`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from dragoman_operator.api.fields import (
    Duration,
    LocalObjectReference,
    Rule,
    SecretKey,
    SpecModel,
    within,
)

MAX_REPLICAS = 10_000

DEFAULT_TARGET_QUEUE_TIME = "2s"
"""Not in the schema: there it would hide the former name of the field, which users have set."""

DEFAULT_OBJECTIVE = "95%"

Percentage = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?([.][0-9]{1,3})?%$", max_length=7)]
"""A ratio such as ``99%`` or ``99.9%``, at least 1% and below 100%."""


def ratio(percentage: str) -> float:
    """A `Percentage` as a number from 0 to 1."""
    return float(percentage.removesuffix("%")) / 100


Share = Annotated[float, Field(gt=0, le=1)]


class Prometheus(SpecModel):
    """Prometheus server with the pods' metrics."""

    url: str | None = Field(
        None,
        min_length=8,
        max_length=512,
        pattern=r"^https?://[^\s]+$",
        description="Base URL, such as http://prometheus.monitoring:9090. Default: the operator's "
        "Prometheus.",
    )
    token_secret_ref: SecretKey | None = Field(
        None,
        description="Secret with a bearer token for Prometheus. The operator needs permission to read it.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.tokenSecretRef) || has(self.url)",
            "autoscaling.prometheus.tokenSecretRef needs a url: the operator's own Prometheus has its own token",
            lambda prometheus: prometheus.token_secret_ref is None or prometheus.url is not None,
        ),
    )


class Autoscaling(SpecModel):
    """How the number of replicas is chosen."""

    mode: Literal["Off", "Internal", "External", "HPA", "KEDA"] = Field(
        "Internal",
        description="Internal: the operator scales by queue length and load, and writes spec.replicas. External: "
        "another controller "
        "or user writes the scale subresource. HPA, KEDA: the operator creates an autoscaler of that "
        "kind. Off: spec.replicas is fixed.",
    )
    min_replicas: int = Field(
        1, ge=0, le=MAX_REPLICAS, description="Minimum number of replicas. 0 allows scaling to zero."
    )
    max_replicas: int = Field(ge=1, le=MAX_REPLICAS, description="Maximum number of replicas.")
    target_concurrency: float | None = Field(
        None,
        gt=0,
        le=4096,
        description="Target number of running and waiting sequences per replica. Default: 0.8 × maxNumSeqs.",
    )
    target_kv_cache_usage: Share = Field(
        0.8, description="Target KV cache usage, averaged over replicas, 0 to 1."
    )
    idle_seconds: int = Field(
        900,
        ge=0,
        le=604_800,
        description="Seconds without requests before scaling to zero, if minReplicas is 0; with idle: Sleep, before "
        "a replica sleeps.",
    )
    idle: Literal["Scale", "Sleep"] = Field(
        "Scale",
        description="What idle time does. Scale: it scales to zero, if minReplicas is 0. Sleep: an idle replica moves "
        "its weights from the GPU to host memory until its next request, and at least one replica is kept. Needs "
        "device cuda and mode Internal.",
    )
    turns_secret_ref: LocalObjectReference | None = Field(
        None,
        description="For replicas of several TranslationDeployments that share one GPU (time-slicing): Secret whose "
        "entry url names a Redis or Valkey server, through which they agree which of them is awake. All that share "
        "the GPU need the same server. Needs idle: Sleep and engine.tensorParallelSize 1.",
    )
    target_queue_time: Duration | None = Field(
        None,
        description="Maximum queue time of a request in a replica. A replica above it is not counted as "
        "capacity for new requests. Default: 2s.",
    )
    objective: Percentage = Field(
        DEFAULT_OBJECTIVE,
        description="Percentage of requests that should wait in a replica for at most targetQueueTime, such as "
        "99% or 99.9%. As many replicas are kept for bursts as the arrivals of the last hour need; "
        "status.scaling.expectation has the result. Above 95%, replicas are also kept for bursts higher "
        "than any observed, the fewer the longer the deployment was observed.",
    )
    scale_down_stabilization_window: Duration | None = Field(
        None,
        description="Stabilization window for scaling down: replicas stay at the maximum that the load "
        "required within it. Default: 5m (or twice the startup time of a replica, if longer); 1m (or the "
        "startup time) or 30m instead, if the objective then needs fewer replicas.",
    )
    prometheus: Prometheus | None = Field(
        None,
        description="Read metrics from Prometheus instead of the pods. Its series need the labels "
        "namespace and pod.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.minReplicas <= self.maxReplicas",
            "autoscaling.minReplicas must not be above maxReplicas",
            lambda scaling: scaling.min_replicas <= scaling.max_replicas,
        ),
        Rule(
            "self.mode != 'HPA' || self.minReplicas >= 1",
            "a HorizontalPodAutoscaler does not scale to zero: set minReplicas to 1 or mode to Internal or "
            "KEDA",
            lambda scaling: scaling.mode != "HPA" or scaling.min_replicas >= 1,
        ),
        Rule(
            "self.idle != 'Sleep' || (self.mode == 'Internal' && self.idleSeconds >= 1)",
            "autoscaling.idle Sleep needs mode Internal and idleSeconds of 1 or more",
            lambda scaling: (
                scaling.idle != "Sleep" or (scaling.mode == "Internal" and scaling.idle_seconds >= 1)
            ),
        ),
        Rule(
            "!has(self.turnsSecretRef) || self.idle == 'Sleep'",
            "autoscaling.turnsSecretRef needs idle: Sleep: a replica sleeps while another has its turn",
            lambda scaling: scaling.turns_secret_ref is None or scaling.idle == "Sleep",
        ),
        within("autoscaling", "targetQueueTime", "1s", "1h"),
        within("autoscaling", "scaleDownStabilizationWindow", "5s", "30m"),
    )

    @property
    def sleep_after_s(self) -> int | None:
        """Seconds without requests after which a replica sleeps; None: never."""
        return self.idle_seconds if self.idle == "Sleep" else None

    @property
    def lowest_replicas(self) -> int:
        """Minimum number of replicas: one is kept to sleep."""
        return self.min_replicas if self.sleep_after_s is None else max(1, self.min_replicas)


MAX_TUNING_WINDOW = "2h"


class Tuning(SpecModel):
    """Whether a maxNumSeqs is recommended."""

    mode: Literal["Off", "Recommend"] = Field(
        "Off",
        description="Recommend: status.recommendation has the maxNumSeqs that fits the measured load. Apply: "
        "deprecated, as Recommend.",
    )
    window: Duration = Field("10m", description="Measurement time before a recommendation.")

    RULES: ClassVar[tuple[Rule, ...]] = (within("tuning", "window", "10s", MAX_TUNING_WINDOW),)
