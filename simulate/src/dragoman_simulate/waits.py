"""The distribution of waits, kept as spans: so many requests, whose waits lie evenly between two ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Waits:
    """Collects waits of cohorts; evaluated once, at the end."""

    def __init__(self) -> None:
        self._none = 0.0
        self._spans: list[tuple[float, float, float]] = []

    def add(self, count: float, first_s: float, last_s: float) -> None:
        """Count requests whose waits lie evenly between `first_s` and `last_s`, in either order."""
        if first_s <= 0.0 and last_s <= 0.0:
            self._none += count
        elif count > 0.0:
            self._spans.append((count, min(first_s, last_s), max(first_s, last_s)))

    @property
    def total(self) -> float:
        """Requests counted."""
        return self._none + sum(span[0] for span in self._spans)

    def over(self, target_s: float) -> float:
        """Share of requests that waited longer than `target_s`, from 0 to 1."""
        total = self.total
        return max(0.0, 1.0 - self._below(self._table(), target_s) / total) if total else 0.0

    def percentiles(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """Waits in seconds below which these shares (0 to 1) of the requests lie."""
        table, total = self._table(), self.total
        found = []
        for share in shares:
            low, high = 0.0, float(table[:, 2].max()) if len(table) else 0.0
            if self._below(table, 0.0) >= share * total:
                high = 0.0
            while high - low > 1e-4 * max(1.0, high):
                middle = (low + high) / 2
                low, high = (low, middle) if self._below(table, middle) >= share * total else (middle, high)
            found.append(high)
        return tuple(found)

    def _table(self) -> NDArray[np.float64]:
        return np.array(self._spans, dtype=np.float64).reshape(-1, 3)

    def _below(self, table: NDArray[np.float64], wait_s: float) -> float:
        if not len(table):
            return self._none
        count, first, last = table.T
        width = np.maximum(last - first, 1e-9)
        return self._none + float((count * np.clip((wait_s - first) / width, 0.0, 1.0)).sum())
