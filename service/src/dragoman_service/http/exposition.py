"""What `/metrics` shows: all that is registered, but for what would be untrue."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.registry import Collector

BY_TOKEN = frozenset({"vllm:inter_token_latency_seconds", "vllm:iteration_tokens_total"})
"""vLLM counts these as it hears of each token, and takes a whole answer's tokens for one step's.
`vllm:request_time_per_output_token_seconds` stays right."""


class Exposition(Collector):
    """A registry without some of its metrics.

    Args:
        registry: Of all metrics.
        without: Names of families that are not shown.
    """

    def __init__(self, registry: Collector, without: frozenset[str]) -> None:
        self._registry = registry
        self._without = without

    def collect(self) -> Iterable[Metric]:
        """The families that are shown."""
        return (family for family in self._registry.collect() if family.name not in self._without)
