"""Names of the prompt families that a spec may ask for and an engine pod knows.

The strings belong to the engine pod; here are only the names, so that the CRD can refuse an unknown one.
"""

from __future__ import annotations

from typing import Literal, get_args

CUSTOM_FAMILY = "custom"
"""The family whose template the spec itself brings."""

PromptFamily = Literal[
    "chatml-generic",
    "hunyuan-mt",
    "hy-mt2",
    "hy-mt1.5",
    "seed-x",
    "translategemma",
    "tower-plus",
    "tower-instruct",
    "alma",
    "gemma",
    "custom",
]
"""How a model wants to be asked for a translation."""

PROMPT_FAMILIES: tuple[str, ...] = get_args(PromptFamily)
