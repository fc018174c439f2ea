"""The metric by which an engine pod reports its speed: sums over generations, by how many ran at once."""

from __future__ import annotations

SPEED_METRIC = "dragoman_generation_sums_total"
"""A counter with the labels below; `dragoman simulate` fits a table of speeds to it."""

RUNNING_LABEL = "running"
"""Upper bound of the mean number of generations that ran, without those that waited for a slot."""

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Upper bounds of that number; more is `+Inf`."""

SUM_LABEL = "sum"

COUNT, RUNNING, SECONDS, TOKENS, TOKENS_SQUARED, TOKEN_SECONDS = SUMS = (
    "count",
    "running",
    "seconds",
    "tokens",
    "tokens_squared",
    "token_seconds",
)
"""What is summed over generations: 1, the mean number that ran, the duration since the generation got its slot, output
tokens, their square, and output tokens times duration: enough for a line of duration over tokens."""
