"""`spec.rollout`, `podTemplate`, `service`, `networkPolicy`, `admission`, `translation`, `glossary` and `tracing`.

Fields that are not set are left out of the pods' command line, so that the engine pod's defaults apply.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from dragoman_kube.quantity import parse
from dragoman_operator.api.fields import (
    Duration,
    LabelValue,
    Name,
    Quantity,
    Rule,
    SpecModel,
    Untyped,
    within,
)

Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=16_384)]], Field(max_length=64)]


PROGRESS_MARGIN_S = 300
"""Added to the maximum startup time, for scheduling and pulling the image."""


class Rollout(SpecModel):
    """How pods are replaced when the spec changes."""

    surge: Literal["Auto", "Always", "Never"] = Field(
        "Auto",
        description="Always: start a new pod before terminating an old one (needs a spare GPU). Never: "
        "terminate first. Auto: as Always if the new pod is scheduled within 10 s, else as Never.",
    )
    drain_timeout: Duration = Field(
        "60s", description="Maximum time to finish in-flight requests after SIGTERM."
    )
    lame_duck: Duration | None = Field(
        None,
        description="Maximum time that a pod keeps accepting requests after SIGTERM while its readiness "
        "probe fails, for load balancers that react late. Ends earlier when all routers have confirmed "
        "and no direct client remains. Default: 5s if there were requests in the last minute, else 0s.",
    )
    start_timeout: Duration = Field(
        "30m",
        description="Maximum time to download the model, and again to load and compile it, before the container is "
        "restarted. A download continues where it was.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        within("rollout", "lameDuck", "0s", "10m"),
        within("rollout", "drainTimeout", "1s", "1h"),
        within("rollout", "startTimeout", "10s", "24h"),
    )


class EnvVar(SpecModel):
    """One environment variable of the engine container, as in a pod."""

    name: str = Field(
        min_length=1,
        max_length=253,
        pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$",
        description="Name of the variable.",
    )
    value: str | None = Field(None, max_length=32_768, description="Value of the variable.")
    value_from: Untyped | None = Field(None, description="Source of the value, as in a pod.")


def _ours(key: str) -> bool:
    return key.startswith(("dragoman.io/", "app.kubernetes.io/"))


class PodTemplate(SpecModel):
    """Additions to every engine pod."""

    labels: Labels = Field({}, description="Labels of the pods.")
    annotations: Annotations = Field({}, description="Annotations of the pods.")
    node_selector: Labels = Field({}, description="Labels that a node must have.")
    tolerations: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (), description="Taints that the pods tolerate, as in a pod."
    )
    affinity: Untyped | None = Field(None, description="Affinity, as in a pod.")
    topology_spread_constraints: Annotated[tuple[Untyped, ...], Field(max_length=16)] = Field(
        (), description="Topology spread constraints, as in a pod."
    )
    runtime_class_name: Name | None = Field(None, description="Runtime class, such as nvidia.")
    priority_class_name: Name | None = Field(None, description="Priority class of the pods.")
    scheduler_name: Name | None = Field(None, description="Scheduler of the pods. Default: the cluster's.")
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = Field(
        (),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="Environment variables of the engine container; they override those set by the "
        "operator. Options of `dragoman serve` without a field here can be set as DRAGOMAN_<OPTION>.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.labels.all(key, !key.startsWith('dragoman.io/') && !key.startsWith('app.kubernetes.io/'))",
            "podTemplate.labels cannot set dragoman.io/… and app.kubernetes.io/…: the operator does",
            lambda template: not any(map(_ours, template.labels)),
        ),
    )


class Service(SpecModel):
    """The Service in front of the pods."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        "ClusterIP", description="Type of the Service."
    )
    annotations: Annotations = Field(
        {}, description="Annotations of the Service, such as those for a load balancer."
    )


class NetworkPolicy(SpecModel):
    """Allowed connections to and from the pods."""

    model_config = ConfigDict(
        alias_generator=lambda name: to_camel(name.rstrip("_")), extra="forbid", frozen=True
    )

    enabled: bool = Field(True, description="Whether the operator creates a NetworkPolicy.")
    from_: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="NetworkPolicy peers that may connect to the http port, besides the operator and pods of the same "
        "object. Empty: all. List the router, your clients and your Prometheus.",
    )
    to: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="NetworkPolicy peers to which the pods may connect on port 443, for models that are "
        "downloaded (hf://, s3://), and on the port of tracing.otlpEndpoint. Empty: all. List the addresses "
        "of your mirror, store or proxy, and your trace collector.",
    )
    egress: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="Additional NetworkPolicy egress rules, as they are. Allowed without one: DNS, port 443 "
        "for models that are downloaded (hf://, s3://), the port of tracing.otlpEndpoint (see to), and the "
        "http port of the same object's pods.",
    )


_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
ENDPOINT_PATTERN = rf"^(https?)://([^\s/?#@:\[\]]+|\[[0-9a-fA-F:]+\])(:({_PORT}))?(/[^\s?#]*)?$"
"""A URL with its scheme and port in groups 1 and 4. Must be valid for RE2 (API server) and Python."""


class Admission(SpecModel):
    """Admission limits of each pod; requests above them are refused with 503 (429 in DeepL's API)."""

    max_queued_requests: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Maximum number of generations that wait for the engine; a request counts one per "
        "segment, target and alternative. Default: 8 × maxNumSeqs.",
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="Maximum number of estimated tokens that wait for the engine. Default: as many as run "
        "at once.",
    )
    deadline_aware: bool | None = Field(
        None,
        description="Refuse a request immediately if, at the measured throughput, it would exceed its "
        "time limit. Default: true.",
    )
    request_timeout: Duration | None = Field(
        None,
        description="Maximum time of a request; after it the answer is 504. Default: 30s. Routers have "
        "their own limit (router.bounds.requestTimeoutSeconds of the chart).",
    )
    unready_when_overloaded: bool | None = Field(
        None,
        description="Fail the readiness probe while requests are refused because of overload, for load "
        "balancers that use readiness only. Default: false.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (within("admission", "requestTimeout", "1s", "1h"),)


class Translation(SpecModel):
    """Translation settings of the pods."""

    split: Literal["Lines", "Sentences", "NoNewlines", "None"] | None = Field(
        None,
        description="How plain text is split if a request does not say. Lines: at line breaks; lines too "
        "long for the model also at sentences. Sentences: at sentences. NoNewlines: at sentences, line "
        "breaks count as spaces. None: not at all; texts that do not fit are refused. NoLines: deprecated, as "
        "NoNewlines. Default: the model family's preference.",
    )
    cache_size: Quantity | None = Field(
        None,
        description="Memory per pod for a cache of translated segments, such as 256Mi. Default: no cache.",
    )

    @property
    def cache_bytes(self) -> int | None:
        """`cache_size` as a number of bytes."""
        return None if self.cache_size is None else int(parse(self.cache_size))


class ConfigMapKey(SpecModel):
    """One key of a ConfigMap in the same namespace."""

    name: Name = Field(description="Name of the ConfigMap.")
    key: str = Field(
        "glossary.yaml",
        max_length=253,
        pattern=r"^[-_a-zA-Z0-9][-._a-zA-Z0-9]*$",
        description="Key in the ConfigMap. A name ending in .tsv: tab-separated lines; otherwise YAML.",
    )


class Glossary(SpecModel):
    """Terminology for all requests; terms in a request take precedence."""

    config_map_key_ref: ConfigMapKey = Field(
        description="ConfigMap key with the terms. Changes take effect in running pods within about a "
        "minute. Invalid content is ignored: the last valid terms stay in use."
    )


class Tracing(SpecModel):
    """Destination of request traces."""

    otlp_endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=ENDPOINT_PATTERN,
        description="OTLP/HTTP endpoint for OpenTelemetry traces, such as "
        "http://otel-collector.monitoring:4318. The NetworkPolicy of the pods allows its port.",
    )

    @property
    def port(self) -> int | None:
        """The endpoint's TCP port; None without tracing."""
        match = re.match(ENDPOINT_PATTERN, self.otlp_endpoint or "")
        if match is None:
            return None
        return int(match[4] or {"http": 80, "https": 443}[match[1]])
