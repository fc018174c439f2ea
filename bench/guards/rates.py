"""How many bad answers each guard finds, and how many good ones it takes for bad.

    python bench/guards/rates.py [--held-out] [--misses]

Each line of `cases.jsonl` is a source, an answer, the guard it is about and whether that guard has to fire.
Where none has to fire, every guard that does is a false alarm.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dragoman_service.text.chat import cleaned
from dragoman_service.text.guards import Expectation, Guard, check

CASES = Path(__file__).with_name("cases.jsonl")
HELD_OUT = Path(__file__).with_name("held_out.jsonl")


@dataclass(frozen=True)
class Case:
    """One answer of a model, and what the guards should make of it.

    Args:
        fires: Whether that guard has to fire; if not, none may.
        source: What was to be translated.
    """

    guard: Guard
    fires: bool
    source_lang: str
    target_lang: str
    source: str
    output: str
    finish: str = "stop"

    def fired(self) -> frozenset[Guard]:
        """The guards that fire on this answer."""
        expected = Expectation(self.source_lang, self.target_lang, self.finish)
        return frozenset(found.guard for found in check(self.source, cleaned(self.output), expected))


@dataclass(frozen=True)
class Rates:
    """What one guard did on the whole corpus.

    Args:
        false_alarms: Good answers that it took for bad.
    """

    bad: int
    found: int
    false_alarms: int


def cases(path: Path = CASES) -> list[Case]:
    """The corpus that the guards were made with, or the one written afterwards."""
    read = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [Case(**{**case, "guard": Guard(case["guard"])}) for case in read]


def rates(corpus: list[Case]) -> dict[Guard, Rates]:
    """Each guard's rates; false alarms are counted over all the good answers."""
    bad, found, alarms = Counter[Guard](), Counter[Guard](), Counter[Guard]()
    for case in corpus:
        fired = case.fired()
        if case.fires:
            bad[case.guard] += 1
            found[case.guard] += case.guard in fired
        else:
            alarms.update(fired)
    return {guard: Rates(bad[guard], found[guard], alarms[guard]) for guard in Guard}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="print the cases that came out wrong, too")
    parser.add_argument(
        "--held-out", action="store_true", help="the cases that were written after the guards"
    )
    arguments = parser.parse_args()
    corpus = cases(HELD_OUT if arguments.held_out else CASES)
    good = sum(not case.fires for case in corpus)
    print(f"{len(corpus)} cases, {good} of them good answers\n")
    print(f"{'guard':<16}{'found':>10}{'detection':>11}{'false alarms':>15}{'rate':>8}")
    table = rates(corpus)
    for guard, rate in table.items():
        if not rate.bad:
            continue
        print(
            f"{guard:<16}{f'{rate.found}/{rate.bad}':>10}{rate.found / rate.bad:>11.0%}"
            f"{f'{rate.false_alarms}/{good}':>15}{rate.false_alarms / good:>8.1%}"
        )
    found, bad = sum(rate.found for rate in table.values()), sum(rate.bad for rate in table.values())
    alarmed = sum(not case.fires and bool(case.fired()) for case in corpus)
    print(
        f"{'all':<16}{f'{found}/{bad}':>10}{found / bad:>11.0%}{f'{alarmed}/{good}':>15}{alarmed / good:>8.1%}"
    )
    if arguments.misses:
        for case in corpus:
            fired = case.fired()
            if (case.guard not in fired) if case.fires else fired:
                print(
                    f"\n{case.guard} {'must' if case.fires else 'must not'} fire; fired: {sorted(fired)}\n  {case}"
                )


if __name__ == "__main__":
    main()
