"""`spec.tuning`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dragoman_operator.api.fields import Duration, Rule, SpecModel, seconds

MAX_WINDOW_S = 7200
"""Maximum of the rule below."""


class Tuning(SpecModel):
    """Whether maxNumSeqs is adapted to the measured load."""

    mode: Literal["Off", "Recommend", "Apply"] = Field(
        "Off",
        description="Off: maxNumSeqs is used as set. Recommend: status.recommendation has the maxNumSeqs "
        "that fits the measured load. Apply: the operator tries it on one replica, compares, and applies "
        "or rejects it.",
    )
    window: Duration = Field(
        "10m",
        description="Measurement time before a recommendation, and for comparing a trial.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "duration(self.window) >= duration('10s') && duration(self.window) <= duration('2h')",
            "tuning.window must be between 10s and 2h",
            lambda tuning: 10 <= seconds(tuning.window) <= MAX_WINDOW_S,
        ),
    )
