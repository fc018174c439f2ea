"""Names of the prompt families: the CRD refuses others, the engine pod has their formats."""

from __future__ import annotations

from typing import Literal, get_args

CUSTOM_FAMILY = "custom"
"""The family whose template is in the spec."""

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
"""Prompt format of a model family."""

PROMPT_FAMILIES: tuple[str, ...] = get_args(PromptFamily)
