"""`spec.tuning`: whether maxNumSeqs follows what running pods measure."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dragoman_operator.api.fields import Duration, Rule, SpecModel, seconds

LONGEST_WINDOW_S = 7200
"""As the rule below says."""


class Tuning(SpecModel):
    """Whether maxNumSeqs follows what running pods measure."""

    mode: Literal["Off", "Recommend", "Apply"] = Field(
        "Off",
        description="Recommend: the status says which engine.maxNumSeqs fits the measured load. Apply: the "
        "operator tries it on one replica, compares, and goes on or back. Off: engine.maxNumSeqs as it is.",
    )
    window: Duration = Field(
        "10m",
        description="How long pods are watched before a size is recommended, and a size that is tried is compared.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "duration(self.window) >= duration('10s') && duration(self.window) <= duration('2h')",
            "tuning.window must be between 10s and 2h",
            lambda tuning: 10 <= seconds(tuning.window) <= LONGEST_WINDOW_S,
        ),
    )
