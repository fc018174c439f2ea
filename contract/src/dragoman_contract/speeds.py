"""The metric by which an engine pod reports its speed: sums over generations, by how many were in the engine."""

from __future__ import annotations

SPEED_METRIC = "dragoman_generation_sums"
"""A counter (`…_total`) with the labels below; `dragoman simulate` fits a table of speeds to it."""

IN_FLIGHT_LABEL = "in_flight"
"""Upper bound of the mean number of generations in the engine during a generation, itself included."""

SUM_LABEL = "sum"

COUNT, IN_FLIGHT, SECONDS, TOKENS, TOKENS_SQUARED, TOKEN_SECONDS = SUMS = (
    "count",
    "in_flight",
    "seconds",
    "tokens",
    "tokens_squared",
    "token_seconds",
)
"""What is summed: 1, the mean number in the engine, the duration in the engine and its queue, output tokens, their
square, and output tokens times duration: enough for a line of duration over tokens."""
