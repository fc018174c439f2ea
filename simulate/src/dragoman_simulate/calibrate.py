"""A table of speeds from what an engine pod has measured of itself: its /metrics page.

The pod sums over its generations, by how many ran meanwhile, what a line of duration over output
tokens needs. The slope is the time per token, the intercept the time beside the tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from prometheus_client.parser import text_string_to_metric_families

from dragoman_contract.reports import (
    COUNT,
    RUNNING,
    RUNNING_LABEL,
    SECONDS,
    SPEED_METRIC,
    SUM_LABEL,
    SUMS,
    TOKEN_SECONDS,
    TOKENS,
    TOKENS_SQUARED,
)
from dragoman_simulate.errors import MetricsPageError
from dragoman_simulate.speed import SpeedTable

MIN_GENERATIONS = 20
"""Of a row: rows with fewer are joined with the next."""

MIN_SPREAD = 1e-3
"""Variance of the tokens over their mean squared, below which they show no slope."""

DEFAULT_KV_CACHE_TOKENS = 1_000_000
"""Where the page does not say: the KV cache does not limit."""

CACHE = "vllm:cache_config_info"
TOTALS = {
    "requests": "dragoman_request_seconds_count",
    "request_s": "dragoman_request_seconds_sum",
    "segments": "dragoman_segments_total",
    "segment_s": "dragoman_segment_seconds_sum",
    "prompt_tokens": "dragoman_prompt_tokens_total",
    "output_tokens": "dragoman_output_tokens_total",
}

Sums = Mapping[str, float]


@dataclass(frozen=True)
class Page:
    """What a /metrics page says about speed.

    Attributes:
        speeds: By the bound of the number that ran: `SUMS`.
        totals: Of `TOTALS`; missing ones are 0.
        kv_cache_tokens: None where it is not exported.
    """

    speeds: Mapping[float, Sums]
    totals: Mapping[str, float]
    kv_cache_tokens: int | None

    @property
    def source_tokens(self) -> float:
        """Mean prompt tokens of a segment."""
        return self.totals["prompt_tokens"] / max(1.0, self.totals["segments"])

    @property
    def target_tokens(self) -> float:
        """Mean output tokens of a segment."""
        return self.totals["output_tokens"] / max(1.0, self.totals["segments"])

    def since(self, before: Page) -> Page:
        """What was measured after an earlier page of the same pod; all of it, if the pod has restarted."""
        if any(self.totals[name] < before.totals[name] for name in TOTALS):
            return self
        zero = dict.fromkeys(SUMS, 0.0)
        speeds = {
            bound: {name: sums[name] - before.speeds.get(bound, zero)[name] for name in SUMS}
            for bound, sums in self.speeds.items()
        }
        totals = {name: value - before.totals[name] for name, value in self.totals.items()}
        return Page(speeds, totals, self.kv_cache_tokens)


def read_page(text: str, place: str) -> Page:
    """Read a /metrics page of an engine pod.

    Args:
        text: Prometheus' text format.
        place: Where it is from, for errors.

    Raises:
        MetricsPageError: It is malformed, or lacks the pod's speeds.
    """
    wanted = (SPEED_METRIC, CACHE, *TOTALS.values())
    lines = "\n".join(line for line in text.splitlines() if line.startswith(wanted))
    speeds: dict[float, dict[str, float]] = {}
    totals = dict.fromkeys(TOTALS, 0.0)
    kv_cache_tokens = None
    names = {metric: name for name, metric in TOTALS.items()}
    try:
        samples = [one for family in text_string_to_metric_families(lines + "\n") for one in family.samples]
        for sample in samples:
            if sample.name == SPEED_METRIC:
                sums = speeds.setdefault(float(sample.labels[RUNNING_LABEL]), dict.fromkeys(SUMS, 0.0))
                sums[sample.labels[SUM_LABEL]] += sample.value
            elif sample.name in names:
                totals[names[sample.name]] += sample.value
            elif sample.name == CACHE:
                kv_cache_tokens = _kv_cache_tokens(sample.labels)
    except (ValueError, KeyError, IndexError) as error:
        raise MetricsPageError(f"{place}: no metrics in Prometheus' text format ({error})") from error
    if not speeds:
        raise MetricsPageError(
            f"{place}: no {SPEED_METRIC}: it is exported by engine pods that have translated, of this release or later"
        )
    return Page(speeds, totals, kv_cache_tokens)


def _kv_cache_tokens(labels: Mapping[str, str]) -> int | None:
    try:
        return int(labels["num_gpu_blocks"]) * int(labels["block_size"]) or None
    except (KeyError, ValueError):
        return None


def joined(pages: list[Page]) -> Page:
    """Several pods as one: their sums added."""
    speeds: dict[float, dict[str, float]] = {}
    for page in pages:
        for bound, sums in page.speeds.items():
            mine = speeds.setdefault(bound, dict.fromkeys(SUMS, 0.0))
            _add(mine, sums)
    totals = {name: sum(page.totals[name] for page in pages) for name in TOTALS}
    caches = [page.kv_cache_tokens for page in pages if page.kv_cache_tokens]
    return Page(speeds, totals, round(fmean(caches)) if caches else None)


@dataclass(frozen=True)
class _Row:
    """A row to be: means of `count` generations."""

    count: float
    running: float
    seconds: float
    tokens: float
    token_s: float


def calibrated(page: Page, name: str) -> SpeedTable:
    """The table of speeds of a pod.

    Raises:
        MetricsPageError: Fewer than `MIN_GENERATIONS` were measured.
    """
    measured = sum(sums[COUNT] for sums in page.speeds.values())
    rows = [_row(sums) for sums in _groups(page.speeds)]
    if not rows:
        raise MetricsPageError(
            f"{measured:.0f} generations were measured and {MIN_GENERATIONS} under a similar load are needed: "
            "translate more first"
        )
    times = _rising([(row.token_s, row.count) for row in rows])
    requests = page.totals["requests"]
    # A request of several segments has them in the engine at once: the difference would say nothing.
    is_single = requests > 0 and 0 < page.totals["segments"] <= 1.05 * requests
    overhead_s = (
        max(0.0, page.totals["request_s"] / requests - page.totals["segment_s"] / page.totals["segments"])
        if is_single
        else 0.0
    )
    return SpeedTable(
        name=name,
        running=tuple(row.running for row in rows),
        ms_per_token=tuple(1000 * time for time in times),
        kv_cache_tokens=page.kv_cache_tokens or DEFAULT_KV_CACHE_TOKENS,
        ms_per_request=tuple(
            1000 * max(0.0, row.seconds - time * row.tokens) for row, time in zip(rows, times, strict=True)
        ),
        overhead_ms=1000 * overhead_s,
    )


def _groups(speeds: Mapping[float, Sums]) -> list[dict[str, float]]:
    """The sums in ascending order, joined until each has enough."""
    groups: list[dict[str, float]] = []
    for _, sums in sorted(speeds.items()):
        if not sums[COUNT]:
            continue
        if groups and min(groups[-1][COUNT], sums[COUNT]) < MIN_GENERATIONS:
            _add(groups[-1], sums)
        else:
            groups.append(dict(sums))
    return [sums for sums in groups if sums[COUNT] >= MIN_GENERATIONS]


def _row(sums: Sums) -> _Row:
    count = sums[COUNT]
    seconds, tokens = sums[SECONDS] / count, sums[TOKENS] / count
    return _Row(count, sums[RUNNING] / count, seconds, tokens, _token_s(sums, seconds / tokens))


def _token_s(sums: Sums, whole_s: float) -> float:
    """Seconds per token: the slope of duration over tokens, at most `whole_s`, which is all of the time."""
    count = sums[COUNT]
    tokens = sums[TOKENS] / count
    spread = sums[TOKENS_SQUARED] / count - tokens * tokens
    if spread <= MIN_SPREAD * tokens * tokens:
        return whole_s
    slope = (sums[TOKEN_SECONDS] / count - tokens * sums[SECONDS] / count) / spread
    return min(max(slope, whole_s / 10), whole_s)


def _add(sums: dict[str, float], more: Sums) -> None:
    for name in SUMS:
        sums[name] += more[name]


def _rising(values: list[tuple[float, float]]) -> list[float]:
    """The nearest values that never fall, by weighted least squares: neighbours that fall get their mean."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in values:
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (first, first_weight, first_n), (second, second_weight, second_n) = blocks[-2:]
            weight_sum = first_weight + second_weight
            mean = (first * first_weight + second * second_weight) / weight_sum
            blocks[-2:] = [(mean, weight_sum, first_n + second_n)]
    return [value for value, _, count in blocks for _ in range(count)]
