"""`spec.rollout`, `podTemplate`, `service` and `networkPolicy`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from dragoman_operator.api.fields import Duration, LabelValue, Name, Rule, SpecModel, Untyped, within

Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=16_384)]], Field(max_length=64)]


class LocalObjectReference(SpecModel):
    """An object of the same namespace."""

    name: Name = Field(description="Name of the object.")


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
        "30m", description="Maximum time to download, load and compile the model before the pod is restarted."
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
        description="NetworkPolicy peers that may connect to the http port. Empty: all. List the router, "
        "your clients and your Prometheus.",
    )
    egress: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="Additional NetworkPolicy egress rules. Always allowed: DNS, port 443 for models that "
        "are downloaded (hf://, s3://), and the port of tracing.otlpEndpoint.",
    )
