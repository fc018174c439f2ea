"""Detection of answers that lack a part, and false alarms on whole ones, over texts translated by people.

    python bench/guards/parallel.py PAIRS.jsonl [--alarms GUARD] [--origin START]

PAIRS has JSON lines of source, target, source_lang, target_lang and perhaps origin, such as a system's outputs on a
test set. The translations stand for good answers; each is also cut in the
ways of `cuts.py`. Rates have 95% intervals (Wilson), which take the pairs for independent.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter, defaultdict
from pathlib import Path

from cuts import cuts

from dragoman_service.text.completeness import lacks, size
from dragoman_service.text.guards import Expectation, Guard, check

SIZES = ((0, 40), (40, 65), (65, 150), (150, 1_000_000))
"""English characters of the source; the first are those that are not checked for missing parts."""


def rate(found: int, of: int) -> str:
    """A share with its 95% interval."""
    if not of:
        return "-"
    share, square = found / of, 1.96**2
    middle = (share + square / 2 / of) / (1 + square / of)
    half = 1.96 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / 4 / of**2)
    return f"{share:7.2%} ({max(0.0, middle - half):.2%} to {middle + half:.2%}) of {of}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--alarms", type=Guard, help="print the false alarms of this check")
    parser.add_argument("--origin", default="", help="only origins that start so")
    arguments = parser.parse_args()
    chance = random.Random(0)
    pairs = [json.loads(line) for line in arguments.pairs.read_text("utf-8").splitlines()]
    pairs = [pair for pair in pairs if pair.get("origin", "").startswith(arguments.origin)]
    alarms: Counter[str] = Counter()
    whole: Counter[tuple[int, int]] = Counter()
    wrong: Counter[tuple[int, int]] = Counter()
    cut_short: Counter[tuple[str, tuple[int, int]]] = Counter()
    found_short: Counter[tuple[str, tuple[int, int]]] = Counter()
    directions: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    origins: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pair in pairs:
        source, target, first, second = (
            pair[name] for name in ("source", "target", "source_lang", "target_lang")
        )
        length = size(source, first)
        bucket = next(each for each in SIZES if each[0] <= length < each[1])
        fired = {found.guard for found in check(source, target, Expectation(first, second))}
        alarms.update(fired)
        alarms["any"] += bool(fired)
        whole[bucket] += 1
        wrong[bucket] += Guard.INCOMPLETE in fired
        for group in (directions[f"{first}-{second}"], origins[pair.get("origin", "").partition("/")[0]]):
            group[0] += 1
            group[1] += bool(fired)
            group[2] += Guard.INCOMPLETE in fired
        if arguments.alarms in fired:
            print(f"{first}-{second} {pair.get('origin', '')}\n  {source}\n  {target}")
        for kind, left in cuts(source, target, first, second, chance):
            cut_short[kind, bucket] += 1
            found_short[kind, bucket] += lacks(source, left, first, second)
    print(f"{len(pairs)} pairs, {len(directions)} directions\n\nfalse alarms")
    for name in [*Guard, "any"]:
        print(f"  {name:<16}{rate(alarms[name], len(pairs))}")
    print("\nfalse alarms of `incomplete`, by the source's size in English characters")
    for bucket in SIZES:
        print(f"  {bucket[0]:>4} to {bucket[1]:<8}{rate(wrong[bucket], whole[bucket])}")
    print("\nby origin: any, incomplete")
    for name, (of, anything, incomplete) in sorted(origins.items()):
        print(f"  {name:<26}{rate(anything, of):<44}{rate(incomplete, of)}")
    print("\ndetection of missing parts")
    for cut in sorted({cut for cut, _ in cut_short}):
        for name, sizes in (
            ("all", SIZES),
            ("40 and more", SIZES[1:]),
            *((f"{a} to {b}", [(a, b)]) for a, b in SIZES),
        ):
            found, of = (sum(counts[cut, each] for each in sizes) for counts in (found_short, cut_short))
            print(f"  {cut:<24}{name:<16}{rate(found, of)}")
    print("\ndirections with more than 2% false alarms of `incomplete` (of 20 pairs and more)")
    for name, (of, _, incomplete) in sorted(directions.items(), key=lambda each: -each[1][2] / each[1][0]):
        if of >= 20 and incomplete / of > 0.02:
            print(f"  {name:<20}{rate(incomplete, of)}")


if __name__ == "__main__":
    main()
