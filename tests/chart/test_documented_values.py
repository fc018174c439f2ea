"""The chart takes the values that the documentation gives to `helm … --set`."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.chart.conftest import CHART, HELM

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "charts/dragoman/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
OPTIONS = ("--set", "--set-string", "--show-only")


def options(text: str) -> Iterator[tuple[str, ...]]:
    """Those of each command, and of each option that a sentence names."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r"helm (?:install|upgrade|template) ([^\n`|]*)", joined)
    for command in (*found, *re.findall(r"`(--set [^`]*)`", joined)):
        words = shlex.split(command)
        named = [(word, value) for word, value in pairwise(words) if word in OPTIONS]
        if named:
            yield tuple(part for pair in named for part in pair)


DOCUMENTED = sorted({found for page in PAGES for found in options(page.read_text(encoding="utf-8"))})


def test_many_are_documented() -> None:
    assert len(DOCUMENTED) > 10


@pytest.mark.parametrize("given", DOCUMENTED, ids=" ".join)
def test_the_chart_takes_documented_values(given: tuple[str, ...]) -> None:
    command = [str(HELM), "template", "dragoman", str(CHART), "--namespace", "dragoman-system", *given]
    rendered = subprocess.run(command, capture_output=True, text=True)
    assert rendered.returncode == 0, rendered.stderr
    assert "kind:" in rendered.stdout
