"""`status`: what the operator found, and what a person should know about it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ConditionType = Literal["Available", "Progressing", "Degraded", "ScalingActive", "MetricsAvailable"]


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
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="The cause in one word, for programs.",
    )
    message: str = Field(max_length=4096, description="The cause in a sentence, and what to do about it.")
    last_transition_time: str = Field(
        json_schema_extra={"format": "date-time"}, description="When status last changed."
    )
    observed_generation: int = Field(
        ge=0, json_schema_extra={"format": "int64"}, description="The spec's generation it was drawn from."
    )


class Scaling(StatusModel):
    """Why there are as many replicas as there are."""

    reason: str = Field(max_length=1024, description="The rule that decided, with its numbers.")


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
    conditions: tuple[Condition, ...] = Field(
        (),
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="Available: requests are answered. Progressing: pods are being started or replaced. "
        "Degraded: something needs a person.",
    )
