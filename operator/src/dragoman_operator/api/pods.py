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
    SpecModel,
    Untyped,
    ValidationRule,
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
        description=(
            "Order in which pods are replaced when the spec changes.\n"
            "Always: start a new pod, then terminate an old one. Needs a spare GPU.\n"
            "Never: terminate an old pod, then start a new one.\n"
            "Auto: as Always if the new pod is scheduled within 10 s, otherwise as Never."
        ),
    )
    lame_duck: Duration | None = Field(
        None,
        description=(
            "Maximum time after SIGTERM in which a pod still accepts requests while its readiness probe "
            "fails. Default: 5s, or 0s if no request arrived in the last minute."
        ),
    )
    drain_timeout: Duration = Field(
        "60s", description="Maximum time to finish in-flight requests, once lameDuck is over."
    )
    start_timeout: Duration = Field(
        "30m",
        description=(
            "Maximum time for each of two phases: the download of the model, and the start of vLLM. A "
            "container that exceeds it is restarted. An interrupted download is resumed."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
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
    value: str | None = Field(
        None, max_length=32_768, description="Value of the variable. Literal: $(NAME) stays as it is."
    )
    value_from: Untyped | None = Field(None, description="Source of the value, as in a Pod.")


def _ours(key: str) -> bool:
    return key.startswith(("dragoman.io/", "app.kubernetes.io/"))


class PodTemplate(SpecModel):
    """Additions to every engine pod."""

    labels: Labels = Field({}, description="Labels of the pods.")
    annotations: Annotations = Field({}, description="Annotations of the pods.")
    node_selector: Labels = Field({}, description="Labels that a node must have to run the pods.")
    tolerations: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (), description="Tolerations, as in a Pod."
    )
    affinity: Untyped | None = Field(None, description="Affinity, as in a Pod.")
    topology_spread_constraints: Annotated[tuple[Untyped, ...], Field(max_length=16)] = Field(
        (), description="Topology spread constraints, as in a Pod."
    )
    runtime_class_name: Name | None = Field(None, description="RuntimeClass of the pods, such as nvidia.")
    priority_class_name: Name | None = Field(None, description="PriorityClass of the pods.")
    scheduler_name: Name | None = Field(
        None, description="Scheduler of the pods. Default: the cluster's default scheduler."
    )
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = Field(
        (),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description=(
            "Environment variables of the pods. They override variables of the same name that the operator sets, "
            "and can set flags of `dragoman serve`, which the pods run. For example, DRAGOMAN_MAX_TEXTS sets "
            "--max-texts."
        ),
    )
    volumes: Annotated[tuple[Untyped, ...], Field(max_length=32)] = Field(
        (),
        description=(
            "Volumes of the pods, as in a Pod, such as a ConfigMap with a CA bundle. They replace volumes of the same "
            "name that the operator sets: cache, glossary, model, shm, tmp."
        ),
    )
    volume_mounts: Annotated[tuple[Untyped, ...], Field(max_length=32)] = Field(
        (),
        description=(
            "Volume mounts of the containers that serve and that download the model, as in a Pod. They replace mounts "
            "of the same mountPath that the operator sets."
        ),
    )
    security_context: Untyped | None = Field(
        None,
        description=(
            "Security context of the pods, as in a Pod, beside runAsNonRoot and the seccomp profile RuntimeDefault. It "
            "replaces runAsUser, runAsGroup and fsGroup of the operator: an empty object {} leaves them to the "
            "platform, as OpenShift requires. Default: 65532 for all three; those of the platform if the chart value "
            "podSecurityContext is null."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.labels.all(key, !key.startsWith('dragoman.io/') && !key.startsWith('app.kubernetes.io/'))",
            "podTemplate.labels cannot set dragoman.io/… and app.kubernetes.io/… labels: the operator sets them",
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

    enabled: bool = Field(True, description="Whether the operator creates a NetworkPolicy for the pods.")
    from_: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description=(
            "NetworkPolicy peers that may connect to the pods (port 8000), such as routers, clients and "
            "your Prometheus. The operator needs no entry. Empty: all peers."
        ),
    )
    to: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description=(
            "NetworkPolicy peers to which the pods may connect for downloads of hf:// and s3:// models "
            "(port 443) and for traces (port of tracing.otlpEndpoint). Empty: all peers."
        ),
    )
    egress: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description=(
            "Additional egress rules of the NetworkPolicy, such as one to a Redis server. Downloads, "
            "traces and DNS need no rule here."
        ),
    )


_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
ENDPOINT_PATTERN = rf"^(https?)://([^\s/?#@:\[\]]+|\[[0-9a-fA-F:]+\])(:({_PORT}))?(/[^\s?#]*)?$"
"""A URL with its scheme and port in groups 1 and 4. Must be valid for RE2 (API server) and Python."""


class Admission(SpecModel):
    """Admission limits of each pod; requests above them are refused with 503, in some APIs 429."""

    max_queued_sequences: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description=(
            "Maximum number of sequences (runs of the model) that wait in the queue of vLLM. For example, 10 "
            "segments into 2 languages are 20 sequences. Default: 8 × engine.maxNumSeqs."
        ),
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description=(
            "Maximum number of tokens of all waiting sequences. The tokens of a sequence are those of its prompt "
            "and of its translation, both estimated. "
            "Default: as many as fit into the KV cache, at most engine.maxNumSeqs × engine.maxModelLen."
        ),
    )
    deadline_aware: bool | None = Field(
        None,
        description=(
            "Refuse a request at once if it would exceed its time limit at the measured throughput of "
            "the pod. Default: true."
        ),
    )
    request_timeout: Duration | None = Field(
        None,
        description=(
            "Maximum time of a request in the pod. A slower request gets status 504, or 503 if the pod "
            "was overloaded. Default: 30s. Routers have their own limit "
            "(chart value router.bounds.requestTimeoutSeconds)."
        ),
    )
    unready_when_overloaded: bool | None = Field(
        None,
        description=(
            "Fail the readiness probe while the pod refuses requests because of overload. For load "
            "balancers that choose pods by readiness alone. Default: false."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (within("admission", "requestTimeout", "1s", "1h"),)


class Translation(SpecModel):
    """Translation settings of the pods."""

    split: Literal["Lines", "Sentences", "NoNewlines", "None"] | None = Field(
        None,
        description=(
            "How plain text is split into segments, unless the request sets the field split.\n"
            "Lines: at line breaks, and between the sentences of a very long line.\n"
            "Sentences: at line breaks and between sentences.\n"
            "NoNewlines: between sentences. A line break counts as a space. In requests, this value is written "
            "no-lines.\n"
            "None: not at all. A text that is too long for the model is refused.\n"
            "Default: Lines or Sentences, depending on the model."
        ),
    )
    cache_size: Quantity | None = Field(
        None,
        description="Memory of each pod for a cache of translated segments, such as 256Mi. Default: no cache.",
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
        description=(
            "Key in the ConfigMap. A key that ends in .tsv has tab-separated lines, any other key has YAML."
        ),
    )


class Glossary(SpecModel):
    """Terminology for all requests; terms in a request take precedence."""

    config_map_key_ref: ConfigMapKey = Field(
        description=(
            "Required. ConfigMap key with the terms. Running pods apply changes within about a minute, "
            "and ignore invalid content."
        )
    )


class Tracing(SpecModel):
    """Destination of request traces."""

    otlp_endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=ENDPOINT_PATTERN,
        description="OTLP/HTTP endpoint for OpenTelemetry traces, such as http://otel-collector.monitoring:4318. "
        "Default: no traces.",
    )

    @property
    def port(self) -> int | None:
        """The endpoint's TCP port; None without tracing."""
        match = re.match(ENDPOINT_PATTERN, self.otlp_endpoint or "")
        if match is None:
            return None
        return int(match[4] or {"http": 80, "https": 443}[match[1]])
