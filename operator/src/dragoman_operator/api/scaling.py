"""`spec.autoscaling`: who decides how many replicas there are, and from what."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dragoman_operator.api.fields import Duration, Rule, SecretKey, SpecModel, seconds

MAX_REPLICAS = 10_000

Share = Annotated[float, Field(gt=0, le=1)]


class Prometheus(SpecModel):
    """A Prometheus that has the pods' metrics."""

    url: str | None = Field(
        None,
        min_length=8,
        max_length=512,
        pattern=r"^https?://[^\s]+$",
        description="Address, such as http://prometheus.monitoring:9090; the operator's own where unset.",
    )
    token_secret_ref: SecretKey | None = Field(
        None,
        description="Secret with the bearer token, where the Prometheus asks for one; the "
        "operator has to be allowed to read it.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.tokenSecretRef) || has(self.url)",
            "autoscaling.prometheus.tokenSecretRef needs a url: the operator's own Prometheus has its own token",
            lambda prometheus: prometheus.token_secret_ref is None or prometheus.url is not None,
        ),
    )


class Autoscaling(SpecModel):
    """Who decides how many replicas there are, and from what."""

    mode: Literal["Off", "Internal", "External", "HPA", "KEDA"] = Field(
        "Internal",
        description="Internal: the operator decides from the engines' queues. External: whoever writes the "
        "scale subresource. HPA, KEDA: the operator makes an autoscaler of that kind. Off: spec.replicas.",
    )
    min_replicas: int = Field(
        1, ge=0, le=MAX_REPLICAS, description="Fewest replicas; 0 allows scaling to zero."
    )
    max_replicas: int = Field(ge=1, le=MAX_REPLICAS, description="Most replicas.")
    target_concurrency: float | None = Field(
        None,
        gt=0,
        le=4096,
        description="Running and waiting sequences that one replica should have; 0.8 of maxNumSeqs where "
        "unset.",
    )
    target_kv_cache_usage: Share = Field(
        0.8, description="Share of the KV cache that may be in use on average."
    )
    idle_seconds: int = Field(
        900,
        ge=0,
        le=604_800,
        description="Seconds without a request after which replicas go to zero, where minReplicas is 0.",
    )
    target_wait: Duration = Field(
        "2s",
        description="Longest that a request should wait in a replica's queue: one further behind is not counted "
        "on for new requests.",
    )
    scale_down_window: Duration | None = Field(
        None,
        description="How far back the operator looks before it lets replicas go: they stay as many as the load "
        "has asked for in it. Where unset 5m, or twice a replica's start if that is longer, and more where a "
        "shorter one has proved wrong.",
    )
    prometheus: Prometheus | None = Field(
        None,
        description="Read metrics from a Prometheus instead of from the pods themselves. Its series need the "
        "labels namespace and pod.",
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
            "duration(self.targetWait) >= duration('1s') && duration(self.targetWait) <= duration('1h')",
            "autoscaling.targetWait must be between 1s and 1h",
            lambda scaling: 1 <= seconds(scaling.target_wait) <= 3600,
        ),
        Rule(
            "!has(self.scaleDownWindow) || (duration(self.scaleDownWindow) >= duration('5s') && "
            "duration(self.scaleDownWindow) <= duration('30m'))",
            "autoscaling.scaleDownWindow must be between 5s and 30m",
            lambda scaling: (
                scaling.scale_down_window is None or 5 <= seconds(scaling.scale_down_window) <= 1800
            ),
        ),
    )
