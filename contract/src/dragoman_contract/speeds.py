"""The metric by which an engine pod reports its speed: sums over generations, by how many were in the engine."""

from __future__ import annotations

SPEED_METRIC = "dragoman_generation_sums"
"""A counter (`…_total`) with the labels below; `dragoman simulate` fits a table of speeds to it."""

IN_FLIGHT_LABEL = "in_flight"
"""Upper bound of the number of generations in the engine."""

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Upper bounds of the number in the engine; more is `+Inf`."""

SUM_LABEL = "sum"

COUNT, IN_FLIGHT, SECONDS, TOKENS, TOKENS_SQUARED, TOKEN_SECONDS, ELAPSED, FINISHED, FINISHED_TOKENS = (
    SUMS
) = (
    "count",
    "in_flight",
    "seconds",
    "tokens",
    "tokens_squared",
    "token_seconds",
    "elapsed",
    "finished",
    "finished_tokens",
)
"""What is summed.

Over generations by the mean number in the engine: 1, that mean, the duration in the engine and its queue, output
tokens, their square, and output tokens times duration: enough for a line of duration over tokens.

By the number in the engine at the moment: the time that it was so, the generations that finished then, and their
output tokens: the throughput of an engine with a queue.
"""
