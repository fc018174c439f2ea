"""Base and rules of the spec's models, and the types of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel


@dataclass(frozen=True)
class ValidationRule:
    """A constraint on several fields, for the API server and for the operator.

    The API server evaluates `cel`; the operator evaluates `check`, because a stored object may be older than the
    rule. A test compares the two.
    """

    cel: str
    """True if the object is valid; `self` is the object with the rule."""
    message: str
    """What the user should change."""
    check: Callable[[Any], bool]
    """The same for the parsed model."""


class SpecModel(BaseModel):
    """Base of every group of fields: camelCase in YAML, immutable, no unknown fields, with rules."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = ()

    @model_validator(mode="after")
    def _check_rules(self) -> SpecModel:
        broken = [rule.message for rule in self.RULES if not rule.check(self)]
        if broken:
            raise ValueError("; ".join(broken))
        return self


QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

Quantity = Annotated[
    int | Annotated[str, StringConstraints(pattern=QUANTITY_PATTERN, max_length=32)],
    WithJsonSchema({"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN, "maxLength": 32}),
]
"""A Kubernetes quantity: a whole number or a string such as ``12Gi``."""

DURATION_PATTERN = r"^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$"

Duration = Annotated[str, StringConstraints(pattern=DURATION_PATTERN, min_length=2, max_length=20)]
"""A time such as ``60s``, ``2m`` or ``1h30m``."""


_UNITS_S = {"h": 3600, "m": 60, "s": 1}


def seconds(duration: str) -> int:
    """The seconds of a `Duration`."""
    return sum(int(number) * _UNITS_S[unit] for number, unit in re.findall("([0-9]+)([hms])", duration))


def within(group: str, field: str, minimum: str, maximum: str) -> ValidationRule:
    """The rule that a `Duration`, if set, is between two others."""

    def check(model: BaseModel) -> bool:
        value = model.model_dump(by_alias=True)[field]
        return value is None or seconds(minimum) <= seconds(value) <= seconds(maximum)

    return ValidationRule(
        f"!has(self.{field}) || (duration(self.{field}) >= duration('{minimum}') && "
        f"duration(self.{field}) <= duration('{maximum}'))",
        f"{group}.{field} must be between {minimum} and {maximum}",
        check,
    )


Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", min_length=1, max_length=253)
]
"""The name of a Kubernetes object."""

LabelValue = Annotated[
    str, StringConstraints(pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", max_length=63)
]

Untyped = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
"""Passed to Kubernetes or vLLM, which validate it."""


class LocalObjectReference(SpecModel):
    """A Secret of the same namespace."""

    name: Name = Field(description="Name of the Secret.")


class SecretKey(SpecModel):
    """One key of a Secret in the same namespace."""

    name: Name = Field(description="Name of the Secret.")
    key: str = Field(
        "token",
        min_length=1,
        max_length=253,
        pattern=r"^[-._a-zA-Z0-9]+$",
        description="Key in the Secret.",
    )
