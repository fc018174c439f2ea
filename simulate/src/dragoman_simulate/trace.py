"""Traces of arrivals: JSON lines in, one cohort of requests per second out."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dragoman_simulate.errors import TraceError

SHAPE = '{"time": seconds, "source_tokens": n, "target_tokens": n}, with "count": n for several alike'
LONGEST_S = 60 * 86_400
"""Sixty days: above it a time is more likely a Unix timestamp or milliseconds than a trace's second."""


@dataclass(frozen=True)
class Trace:
    """Arrivals by second, counted from the trace's first whole minute.

    Attributes:
        name: The file's name without its endings.
        counts: Requests that arrive in each second.
        source_tokens: Their mean length before translation; 0 in a second without requests.
        target_tokens: Their mean length after it.
        outages: Spans (from, to), in seconds, in which no metrics can be had.
    """

    name: str
    counts: NDArray[np.float64]
    source_tokens: NDArray[np.float64]
    target_tokens: NDArray[np.float64]
    outages: tuple[tuple[float, float], ...] = ()

    @property
    def duration_s(self) -> int:
        """Length of the trace in seconds."""
        return len(self.counts)

    def blind(self, now_s: float) -> bool:
        """Whether metrics are out at this second."""
        return any(begin <= now_s < end for begin, end in self.outages)


def read_trace(path: Path) -> Trace:
    """Read a trace, gzip'd when its name ends in .gz.

    Lines are requests in any order, `{"time", "source_tokens", "target_tokens"}` with an optional `count`, and
    events: `{"event": "metrics_outage", "from": s, "to": s}` and `{"event": "end", "time": s}` for a trace that
    ends in silence. Empty lines and lines that begin with # are left out.

    Raises:
        TraceError: The file cannot be read, or a line is none of these; says which line.
    """
    sums: dict[int, list[float]] = {}
    outages: list[tuple[float, float]] = []
    end_s = 0.0
    for number, line in _lines(path):
        record = _record(path, number, line)
        if "event" in record:
            if record["event"] == "metrics_outage":
                begin, stop = _number(path, number, record, "from"), _number(path, number, record, "to")
                if stop <= begin:
                    raise TraceError(path, number, f'the outage ends at {stop:g}, "from" is {begin:g}')
                outages.append((begin, stop))
            elif record["event"] == "end":
                end_s = max(end_s, _number(path, number, record, "time"))
            else:
                raise TraceError(path, number, f"unknown event {record['event']!r}: metrics_outage or end")
            continue
        time_s = _number(path, number, record, "time")
        if time_s > LONGEST_S:
            raise TraceError(
                path, number, f'"time" is {time_s:g}: seconds from the trace\'s begin, at most 60 days'
            )
        count = _number(path, number, record, "count") if "count" in record else 1.0
        cohort = sums.setdefault(int(time_s), [0.0, 0.0, 0.0])
        cohort[0] += count
        cohort[1] += count * _number(path, number, record, "source_tokens")
        cohort[2] += count * _number(path, number, record, "target_tokens")
    if not sums:
        raise TraceError(path, None, f"holds no request; a line is {SHAPE}")
    return _trace(path, sums, tuple(sorted(outages)), end_s)


def _trace(
    path: Path, sums: dict[int, list[float]], outages: tuple[tuple[float, float], ...], end_s: float
) -> Trace:
    duration = max(max(sums) + 1, math.ceil(end_s))
    table = np.zeros((3, duration))
    for second, cohort in sums.items():
        table[:, second] = cohort
    counts = table[0]
    divisor = np.maximum(counts, 1e-12)
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return Trace(name, counts, table[1] / divisor, table[2] / divisor, outages)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    yield number, line
    except UnicodeDecodeError as error:
        raise TraceError(path, None, f"is not UTF-8 text ({error.reason})") from error
    except (OSError, EOFError) as error:
        raise TraceError(
            path,
            None,
            f"cannot be read: {error.strerror if isinstance(error, OSError) and error.strerror else error}",
        ) from error


def _open(path: Path) -> TextIO:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise TraceError(path, number, f"not JSON ({error}); a line is {SHAPE}") from error
    if not isinstance(record, dict):
        raise TraceError(path, number, f"not an object; a line is {SHAPE}")
    return record


def _number(path: Path, number: int, record: dict[str, Any], field: str) -> float:
    value = record.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        problem = "is missing" if field not in record else f"is {value!r}"
        raise TraceError(path, number, f'"{field}" {problem}: a number of 0 or more; a line is {SHAPE}')
    return float(value)
