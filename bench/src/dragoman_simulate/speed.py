"""How fast an engine pod writes: a measured table, read between its rows."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from dragoman_simulate.errors import SpeedTableError


@dataclass(frozen=True)
class SpeedTable:
    """Milliseconds that one running sequence takes for one token, by the number that run beside it.

    Attributes:
        name: What was measured, for the report.
        running: Sequences that run at once on one replica, ascending.
        ms_per_token: Of one sequence at that many; never falling.
        kv_cache_tokens: Tokens that one replica's KV cache holds.
    """

    name: str
    running: tuple[float, ...]
    ms_per_token: tuple[float, ...]
    kv_cache_tokens: int

    def tokens_per_s(self, running: float) -> float:
        """Speed of ONE sequence when `running` run beside each other.

        Between rows the milliseconds are read along a straight line; below the first row they stay (a lone
        sequence is bound by memory bandwidth), and above the last they grow in proportion (the engine is full).
        """
        rows, times = self.running, self.ms_per_token
        if running <= rows[0]:
            return 1000.0 / times[0]
        if running >= rows[-1]:
            return 1000.0 / (times[-1] * running / rows[-1])
        above = bisect_left(rows, running)
        low, high = rows[above - 1], rows[above]
        share = (running - low) / (high - low)
        return 1000.0 / (times[above - 1] + share * (times[above] - times[above - 1]))


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
        rows = sorted((float(row["running"]), float(row["ms_per_token"])) for row in document["rows"])
        table = SpeedTable(
            name=str(document["name"]),
            running=tuple(running for running, _ in rows),
            ms_per_token=tuple(time for _, time in rows),
            kv_cache_tokens=int(document["kv_cache_tokens"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpeedTableError(f"{place}: not a table of speeds ({error!r}); see data/h200.json") from error
    if not rows or table.running[0] <= 0 or table.ms_per_token[0] <= 0 or table.kv_cache_tokens <= 0:
        raise SpeedTableError(f"{place}: a table needs rows, and every figure in it above zero")
    if any(
        later < earlier for earlier, later in zip(table.ms_per_token, table.ms_per_token[1:], strict=False)
    ):
        raise SpeedTableError(f"{place}: ms_per_token falls as more run; the model needs it to rise or stay")
    return table
