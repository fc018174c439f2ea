"""The question to a Prometheus, and what its answer says of each pod."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.autoscaling.sources.engine_metrics import (
    NAMES,
    Reading,
    Value,
    reading,
    replica_sample,
)
from dragoman_operator.errors import MetricsError

LOOK_BACK = "2m"
"""Two scrapes of a pod lie in it where they are a minute apart."""

PodName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class PodSamples:
    """What was scraped of one pod.

    Attributes:
        sample: The latest, with the rate since the one before it.
        interval_s: Seconds between the two; 0 where there is only one.
    """

    sample: ReplicaSample
    interval_s: float


def query(namespaces: Iterable[str]) -> str:
    """PromQL for the raw samples of the last minutes, each with the time of its scrape.

    An instant query would give one value with the time of asking: a Prometheus that stopped scraping minutes ago
    would look alive.
    """
    names, spaces = "|".join(map(re.escape, NAMES)), "|".join(sorted(map(re.escape, namespaces)))
    names, spaces = names.replace("\\", "\\\\"), spaces.replace("\\", "\\\\")
    return f'{{__name__=~"{names}",namespace=~"{spaces}",pod!=""}}[{LOOK_BACK}]'


def pod_samples(data: Any) -> dict[PodName, PodSamples]:
    """What the answer's series say, by pod.

    Args:
        data: `data` of the answer: a matrix.

    Raises:
        MetricsError: It is none.
    """
    scrapes: dict[PodName, dict[float, list[Value]]] = {}
    try:
        if data["resultType"] != "matrix":
            raise MetricsError(f"answers with a {data['resultType']} instead of a matrix")
        for series in data["result"]:
            labels = series["metric"]
            pod = scrapes.setdefault((labels["namespace"], labels["pod"]), {})
            for at, value in series["values"]:
                pod.setdefault(float(at), []).append((labels["__name__"], float(value)))
    except (TypeError, KeyError, ValueError) as error:
        raise MetricsError(f"answers in a form that is not Prometheus': {error!r}") from error
    found = {pod: _latest(times) for pod, times in scrapes.items()}
    return {pod: samples for pod, samples in found.items() if samples is not None}


def _latest(scrapes: dict[float, list[Value]]) -> PodSamples | None:
    """The last two scrapes that say something."""
    readings: list[Reading] = []
    for at in sorted(scrapes, reverse=True):
        try:
            readings.append(reading(scrapes[at], at))
        except MetricsError:
            continue
        if len(readings) == 2:
            now, before = readings
            return PodSamples(replica_sample(now, before), math.ceil(now.at - before.at))
    return PodSamples(replica_sample(readings[0], None), 0.0) if readings else None
