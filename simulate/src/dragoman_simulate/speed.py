"""How fast an engine pod writes: a measured table, read between its rows."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import accumulate
from pathlib import Path

from dragoman_simulate.errors import SpeedTableError


@dataclass(frozen=True)
class SpeedTable:
    """Milliseconds that one running sequence takes, by the number that run at once.

    Attributes:
        name: What was measured, for the report.
        running: Sequences that run at once on one replica, ascending.
        ms_per_token: Of one sequence at that many; never falling.
        kv_cache_tokens: Tokens that one replica's KV cache holds.
        ms_per_request: What a sequence takes beside its tokens (prefill, waits between steps); empty: nothing.
        overhead_ms: What a request takes beside its sequence: HTTP, tokenisation, checks.
    """

    name: str
    running: tuple[float, ...]
    ms_per_token: tuple[float, ...]
    kv_cache_tokens: int
    ms_per_request: tuple[float, ...] = ()
    overhead_ms: float = 0.0

    def tokens_per_s(self, running: float) -> float:
        """Speed of ONE sequence when `running` run beside each other.

        Between rows the milliseconds are read along a straight line; below the first row they stay (a lone
        sequence is bound by memory bandwidth), and above the last they grow as from the first to the last: each
        sequence adds its part to a step. A single row says nothing about that; above it they grow in proportion.
        """
        return 1000.0 / self._at(self.ms_per_token, running)

    def request_s(self, running: float) -> float:
        """Seconds of one sequence beside its tokens, between rows as for the tokens."""
        return self._at(self.ms_per_request, running) / 1000.0 if self.ms_per_request else 0.0

    def folded(self, tokens: float) -> SpeedTable:
        """The same speed for sequences of so many output tokens, all of it in `ms_per_token`."""
        if not self.ms_per_request:
            return self
        times = [
            token + request / max(1.0, tokens)
            for token, request in zip(self.ms_per_token, self.ms_per_request, strict=True)
        ]
        return replace(self, ms_per_token=tuple(accumulate(times, max)), ms_per_request=())

    def as_json(self, source: str) -> str:
        """The table as a file that `read_speed_table` reads; `source`: what it was measured by."""
        columns = zip(
            self.running, self.ms_per_token, self.ms_per_request or (0.0,) * len(self.running), strict=True
        )
        rows = [
            {
                "running": round(running, 2),
                "ms_per_token": round(token, 4),
                "ms_per_request": round(request, 3),
            }
            for running, token, request in columns
        ]
        document = {
            "name": self.name,
            "source": source,
            "kv_cache_tokens": self.kv_cache_tokens,
            "overhead_ms": round(self.overhead_ms, 3),
            "rows": rows,
        }
        return json.dumps(document, indent=1) + "\n"

    def _at(self, times: Sequence[float], running: float) -> float:
        rows = self.running
        if running <= rows[0]:
            return times[0]
        if running >= rows[-1]:
            slope = times[-1] / rows[-1] if len(rows) == 1 else (times[-1] - times[0]) / (rows[-1] - rows[0])
            return times[-1] + max(0.0, slope) * (running - rows[-1])
        above = bisect_left(rows, running)
        low, high = rows[above - 1], rows[above]
        share = (running - low) / (high - low)
        return times[above - 1] + share * (times[above] - times[above - 1])


def read_speed_table(path: Path | None = None) -> SpeedTable:
    """Read a table of speeds.

    Args:
        path: A JSON file shaped like `data/h200.json`; None reads that one.

    Raises:
        SpeedTableError: The file cannot be read, or its rows are not what a table needs.
    """
    place = "data/h200.json" if path is None else str(path)
    try:
        text = (
            resources.files("dragoman_simulate").joinpath("data/h200.json").read_text()
            if path is None
            else path.read_text()
        )
        document = json.loads(text)
        rows = sorted(
            (float(row["running"]), float(row["ms_per_token"]), float(row.get("ms_per_request", 0)))
            for row in document["rows"]
        )
        table = SpeedTable(
            name=str(document["name"]),
            running=tuple(running for running, _, _ in rows),
            ms_per_token=tuple(time for _, time, _ in rows),
            kv_cache_tokens=int(document["kv_cache_tokens"]),
            ms_per_request=tuple(time for _, _, time in rows) if any(row[2] for row in rows) else (),
            overhead_ms=float(document.get("overhead_ms", 0)),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpeedTableError(f"{place}: not a table of speeds ({error!r}); see data/h200.json") from error
    if not rows or table.running[0] <= 0 or table.ms_per_token[0] <= 0 or table.kv_cache_tokens <= 0:
        raise SpeedTableError(f"{place}: a table needs rows, and every figure in it above zero")
    if min((*table.ms_per_request, table.overhead_ms)) < 0:
        raise SpeedTableError(f"{place}: ms_per_request and overhead_ms must not be below zero")
    if any(
        later < earlier for earlier, later in zip(table.ms_per_token, table.ms_per_token[1:], strict=False)
    ):
        raise SpeedTableError(f"{place}: ms_per_token falls as more run; the model needs it to rise or stay")
    return table
