"""Parallel texts from the grammar, and the split into training and held-out texts.

Run as a program, it prints samples: `python -m training.generate --count 20 --seed 1`.
"""

import argparse
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from .conversation import text
from .lexicon import table
from .syntax import Text
from .tags import LANGUAGES, tagged

DIRECTIONS = (("en", "fr"), ("en", "de"), ("en", "ne"), ("fr", "en"), ("de", "en"))
HELD_OUT_ONE_IN = 25
TAGGED_SHARE = 0.2
"""The share of training texts that have inline tags."""

# Greetings and the like are too few to hold any of them out.
_FIXED = frozenset(row["en"] for row in table("phrases"))


@dataclass(frozen=True)
class Parallel:
    """One text in all four languages, keyed en, fr, de, ne."""

    texts: dict[str, str]
    held_out: bool
    tree: Text


def is_held_out(sentence: str) -> bool:
    """Whether an English sentence is kept from training, decided by its hash alone."""
    if sentence in _FIXED:
        return False
    digest = hashlib.sha256(sentence.encode()).digest()
    return int.from_bytes(digest[:4], "big") % HELD_OUT_ONE_IN == 0


def english_is_held_out(text: str) -> bool:
    """Whether an English text of one or more sentences is kept from training: one of them is."""
    return any(is_held_out(sentence) for sentence in re.split(r"(?<=[.?!]) ", text))


def render(tree: Text) -> Parallel:
    """A text in every language."""
    texts = {code: " ".join(sentence(part) for part in tree) for code, sentence in LANGUAGES.items()}
    return Parallel(texts, english_is_held_out(texts["en"]), tree)


def texts(seed: int) -> Iterator[Parallel]:
    """Distinct texts without end, the same for the same seed."""
    rng = Random(seed)
    seen: set[str] = set()
    while True:
        found = render(text(rng))
        if found.texts["en"] not in seen:
            seen.add(found.texts["en"])
            yield found


def training_texts(count: int, seed: int) -> list[Parallel]:
    """The first `count` texts that training may see, `TAGGED_SHARE` of them with tags."""
    rng = Random(seed)
    found = _take(count, seed, held_out=False)
    return [with_tags(rng, each) if rng.random() < TAGGED_SHARE else each for each in found]


def held_out_texts(count: int, seed: int, tags: bool = False) -> list[Parallel]:
    """The first `count` texts that training never sees; `tags` puts inline tags into all of them."""
    found = _take(count, seed, held_out=True)
    rng = Random(seed)
    return [with_tags(rng, each) for each in found] if tags else found


def with_tags(rng: Random, parallel: Parallel) -> Parallel:
    """The same text with inline tags, in every language."""
    return replace(parallel, texts=tagged(rng, parallel.tree))


def _take(count: int, seed: int, held_out: bool) -> list[Parallel]:
    taken: list[Parallel] = []
    for found in texts(seed):
        if len(taken) == count:
            break
        if found.held_out is held_out:
            taken.append(found)
    return taken


def main() -> None:
    """Print sample texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="how many texts (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default 1)")
    options = parser.parse_args()
    for found in training_texts(options.count, options.seed):
        print("\n".join(f"{code}  {line}" for code, line in found.texts.items()), end="\n\n")


if __name__ == "__main__":
    main()
