"""Prompt families: how a model wants to be asked for a translation."""

PROMPT_FAMILIES = (
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
)
"""Names that `spec.model.promptFamily` and `dragoman serve --prompt-family` take."""
