"""The metrics of a pod, without those that would be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.registry import Collector


class Exposition(Collector):
    """A registry without some of its metrics.

    Args:
        registry: Of all metrics.
        hidden: Names of families that are not shown; called at each scrape.
    """

    def __init__(self, registry: Collector, hidden: Callable[[], frozenset[str]]) -> None:
        self._registry = registry
        self._hidden = hidden

    def collect(self) -> Iterable[Metric]:
        """The families that are shown."""
        hidden = self._hidden()
        return (family for family in self._registry.collect() if family.name not in hidden)
