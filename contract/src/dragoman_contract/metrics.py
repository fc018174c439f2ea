"""How a part defines the metrics that it exports; the tables of the documentation are made from the definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, eq=False, slots=True)
class Metric:
    """A metric of Prometheus; see `Section`."""

    section: str
    kind: Kind
    name: str
    about: str
    labels: tuple[str, ...]

    @property
    def help(self) -> str:
        """The description without markup, as `/metrics` has it."""
        return LINK.sub(r"\1", self.about).replace("`", "")


@dataclass(frozen=True)
class Section:
    """A table of docs/reference/metrics.md; its methods define metrics.

    They take the full name (of a counter with `_total`), a description in Markdown with links relative to that page,
    and the labels that the table lists.
    """

    title: str

    def counter(self, name: str, about: str, *labels: str) -> Metric:
        """A counter."""
        return Metric(self.title, "counter", name, about, labels)

    def gauge(self, name: str, about: str, *labels: str) -> Metric:
        """A gauge."""
        return Metric(self.title, "gauge", name, about, labels)

    def histogram(self, name: str, about: str, *labels: str) -> Metric:
        """A histogram."""
        return Metric(self.title, "histogram", name, about, labels)


def by_section(module: Mapping[str, Any]) -> dict[str, list[Metric]]:
    """The metrics among a module's names in their order, by the title of their section."""
    found = (each for each in module.values() if isinstance(each, Metric))
    return {title: list(metrics) for title, metrics in groupby(found, lambda each: each.section)}
