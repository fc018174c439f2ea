"""`spec.autoscaling` and `spec.tuning`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from dragoman_operator.api.fields import (
    Duration,
    LocalObjectReference,
    SecretKey,
    SpecModel,
    ValidationRule,
    within,
)

MAX_REPLICAS = 10_000

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
        description=(
            "URL of the Prometheus, such as http://prometheus.monitoring:9090. Default: the chart value "
            "prometheus.url."
        ),
    )
    token_secret_ref: SecretKey | None = Field(
        None,
        description=(
            "Secret with a bearer token for the Prometheus at autoscaling.prometheus.url. In mode "
            "Internal, the operator must be permitted to read the Secret: set the chart value "
            "prometheus.readSecrets to true."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.tokenSecretRef) || has(self.url)",
            "autoscaling.prometheus.tokenSecretRef needs autoscaling.prometheus.url",
            lambda prometheus: prometheus.token_secret_ref is None or prometheus.url is not None,
        ),
    )


class Autoscaling(SpecModel):
    """How the number of replicas is chosen."""

    mode: Literal["Off", "Internal", "External", "HPA", "KEDA"] = Field(
        "Internal",
        description=(
            "What sets the number of replicas.\n"
            "Internal: the operator, by the load of replicas and routers.\n"
            "External: your own autoscaler, which writes spec.replicas.\n"
            "HPA: a HorizontalPodAutoscaler that the operator creates.\n"
            "KEDA: a ScaledObject that the operator creates.\n"
            "Off: you, by spec.replicas in your manifest."
        ),
    )
    min_replicas: int = Field(
        1, ge=0, le=MAX_REPLICAS, description="Minimum number of replicas. 0 allows scaling to zero."
    )
    max_replicas: int = Field(ge=1, le=MAX_REPLICAS, description="Maximum number of replicas.")
    target_concurrency: float | None = Field(
        None,
        gt=0,
        le=4096,
        description="Target number of sequences per replica: running ones in mode Internal, running and waiting ones "
        "in the modes HPA and KEDA. Default: 0.8 × engine.maxNumSeqs.",
    )
    target_kv_cache_usage: Share = Field(
        0.8, description="Target for the mean KV cache usage of all replicas."
    )
    idle_seconds: int = Field(
        900,
        ge=0,
        le=604_800,
        description=(
            "Seconds without requests before the deployment scales to zero (0: at once) or a replica sleeps (see "
            "idle)."
        ),
    )
    idle: Literal["Scale", "Sleep"] = Field(
        "Scale",
        description=(
            "What happens after idleSeconds without requests.\n"
            "Scale: the deployment scales to zero, if minReplicas is 0.\n"
            "Sleep: a replica moves its weights from the GPU to host memory until its next request. The "
            "deployment then does not scale to zero."
        ),
    )
    turns_secret_ref: LocalObjectReference | None = Field(
        None,
        description=(
            "Secret with the URL of a Redis or Valkey server in the key `url`. If set, replicas that share a "
            "GPU (NVIDIA time-slicing) take turns through this server: one is awake, the others sleep. All "
            "TranslationDeployments on the GPU need the same URL."
        ),
    )
    target_queue_time: Duration = Field(
        "2s", description="Mode Internal: maximum time that a sequence should wait in a replica."
    )
    objective: Percentage = Field(
        DEFAULT_OBJECTIVE,
        description=(
            "Percentage of sequences that should wait at most targetQueueTime, 1% to 99.999%. In mode Internal, the "
            "minimum number of replicas is also the one that would have met this in the last hour. Only scaling to "
            "zero ignores it."
        ),
    )
    scale_down_stabilization_window: Duration | None = Field(
        None,
        description=(
            "Time before a scale-down. The scale-down does not go below the highest number of replicas that the load "
            "required during this time. Scaling to zero ignores it. Default in mode Internal: three "
            "startup times of a replica, between 1m and 30m. Default in modes HPA and KEDA: 5m."
        ),
    )
    prometheus: Prometheus | None = Field(
        None,
        description=(
            "Prometheus from which the operator and KEDA read the pods' metrics. Default: the operator reads the pods, "
            "KEDA reads the Prometheus of the chart value prometheus.url. With {}, both read that Prometheus. The "
            "series need the labels namespace and pod."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.minReplicas <= self.maxReplicas",
            "autoscaling.minReplicas must not be above maxReplicas",
            lambda scaling: scaling.min_replicas <= scaling.max_replicas,
        ),
        ValidationRule(
            "self.mode != 'HPA' || self.minReplicas >= 1",
            "a HorizontalPodAutoscaler does not scale to zero: set autoscaling.minReplicas to 1 or more, or "
            "autoscaling.mode to Internal or KEDA",
            lambda scaling: scaling.mode != "HPA" or scaling.min_replicas >= 1,
        ),
        ValidationRule(
            "self.idle != 'Sleep' || (self.mode == 'Internal' && self.idleSeconds >= 1)",
            "autoscaling.idle Sleep needs mode Internal and idleSeconds of 1 or more",
            lambda scaling: (
                scaling.idle != "Sleep" or (scaling.mode == "Internal" and scaling.idle_seconds >= 1)
            ),
        ),
        ValidationRule(
            "!has(self.turnsSecretRef) || self.idle == 'Sleep'",
            "autoscaling.turnsSecretRef needs autoscaling.idle Sleep",
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
        description="Off: no measurement.\n"
        "Recommend: status.recommendation has the maxNumSeqs that fits the measured load.",
    )
    window: Duration = Field(
        "10m", description="Time for which the load is measured before a recommendation."
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (within("tuning", "window", "10s", MAX_TUNING_WINDOW),)
