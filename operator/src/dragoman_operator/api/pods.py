"""How pods are rolled out, placed, reached and fenced: `spec.rollout`, `podTemplate`, `service`, `networkPolicy`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from dragoman_operator.api.fields import Duration, LabelValue, Name, Rule, SpecModel, Untyped, seconds, within

Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=16_384)]], Field(max_length=64)]


class LocalObjectReference(SpecModel):
    """An object of the same namespace."""

    name: Name = Field(description="Name of the object.")


PROGRESS_MARGIN_S = 300
"""Added to the time a pod may take to start: scheduling and pulling an image come before it."""


class Rollout(SpecModel):
    """How pods are replaced when the spec changes."""

    surge: Literal["Auto", "Always", "Never"] = Field(
        "Auto",
        description="Always: a new pod starts before an old one leaves, which needs a spare GPU. Never: an "
        "old pod leaves first. Auto: the former where the new pod finds a node within 10 s, else the latter.",
    )
    drain_timeout: Duration = Field(
        "60s", description="Longest that a pod which is told to stop finishes what it has accepted."
    )
    lame_duck: Duration | None = Field(
        None,
        description="Longest that a pod goes on taking requests after SIGTERM, while unready, for load balancers "
        "that are slow to notice; routers cut it short where all requests come by them. 5s where any came in the "
        "last minute, else none, where unset.",
    )
    start_timeout: Duration = Field(
        "30m", description="Longest that a pod may download, load and compile before it is restarted."
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        within("rollout", "lameDuck", "0s", "10m"),
        Rule(
            "duration(self.drainTimeout) >= duration('1s') && duration(self.drainTimeout) <= duration('1h')",
            "rollout.drainTimeout must be between 1s and 1h",
            lambda rollout: 1 <= seconds(rollout.drain_timeout) <= 3600,
        ),
        Rule(
            "duration(self.startTimeout) >= duration('10s') && duration(self.startTimeout) <= duration('24h')",
            "rollout.startTimeout must be between 10s and 24h",
            lambda rollout: 10 <= seconds(rollout.start_timeout) <= 86_400,
        ),
    )


class EnvVar(SpecModel):
    """One environment variable of the engine container, as in a pod."""

    name: str = Field(
        min_length=1, max_length=253, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", description="Its name."
    )
    value: str | None = Field(None, max_length=32_768, description="Its value.")
    value_from: Untyped | None = Field(None, description="Where its value comes from, as in a pod.")


def _ours(key: str) -> bool:
    return key.startswith(("dragoman.io/", "app.kubernetes.io/"))


class PodTemplate(SpecModel):
    """What is added to every engine pod."""

    labels: Labels = Field({}, description="Labels of the pods.")
    annotations: Annotations = Field({}, description="Annotations of the pods.")
    node_selector: Labels = Field({}, description="Labels that a node must have.")
    tolerations: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (), description="Taints that the pods tolerate, as in a pod."
    )
    affinity: Untyped | None = Field(None, description="Affinity, as in a pod.")
    topology_spread_constraints: Annotated[tuple[Untyped, ...], Field(max_length=16)] = Field(
        (), description="How replicas spread over nodes and zones, as in a pod."
    )
    runtime_class_name: Name | None = Field(None, description="Runtime class, such as nvidia.")
    priority_class_name: Name | None = Field(None, description="Priority class of the pods.")
    scheduler_name: Name | None = Field(None, description="Scheduler, where not the default one.")
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = Field(
        (),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="Environment of the engine container; wins over what the operator sets. Every option of "
        "`dragoman serve` that has no field here can be set as DRAGOMAN_<OPTION>.",
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
        "ClusterIP", description="How it is reached; ClusterIP is inside the cluster alone."
    )
    annotations: Annotations = Field({}, description="Annotations, such as those a load balancer reads.")


class NetworkPolicy(SpecModel):
    """What may reach the pods, and what they may reach."""

    model_config = ConfigDict(
        alias_generator=lambda name: to_camel(name.rstrip("_")), extra="forbid", frozen=True
    )

    enabled: bool = Field(True, description="Whether the operator makes a NetworkPolicy.")
    from_: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="Peers that may reach the pods' http port, as in a NetworkPolicy; empty lets everyone. "
        "Name the router, your clients and your Prometheus.",
    )
    egress: Annotated[tuple[Untyped, ...], Field(max_length=64)] = Field(
        (),
        description="Further egress rules, as in a NetworkPolicy. Without any, pods reach DNS and port 443 "
        "where the model is downloaded (hf://, s3://), the port of tracing.otlpEndpoint, and nothing otherwise.",
    )
