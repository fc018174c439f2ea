"""Measure the demo model through vLLM: exact matches on texts it never saw.

`python -m training.evaluate --model . --texts 400` prints the share of exact matches per direction
and some failures; `--json` prints the shares alone, as one JSON object, for programs. `--url` instead of
`--model` asks an engine pod that serves the model.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import httpx

from .generate import DIRECTIONS, held_out_texts
from .prompt import user_turn

SEED = 2024
LONGEST_ANSWER = 256  # tokens
TEXTS_PER_REQUEST = 40


@dataclass(frozen=True)
class Result:
    """One translation and what it should have been."""

    source: str
    target: str
    text: str
    expected: str
    answer: str

    @property
    def exact(self) -> bool:
        """Whether the answer is right to the letter."""
        return self.answer == self.expected


Untranslated = tuple[str, str, str]
"""Source, target, text."""


def translate(model: Path, questions: list[Untranslated]) -> list[str]:
    """Greedy answers to questions, from vLLM, on a GPU if there is one."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM, SamplingParams

    engine = LLM(model=str(model), max_model_len=1024, enforce_eager=True, disable_log_stats=True)
    turns = [[{"role": "user", "content": user_turn(*question)}] for question in questions]
    greedy = SamplingParams(temperature=0.0, max_tokens=LONGEST_ANSWER)
    return [output.outputs[0].text for output in engine.chat(turns, greedy, use_tqdm=False)]


def translate_through(url: str, questions: list[Untranslated]) -> list[str]:
    """Answers of a pod that runs."""
    answers = []
    with httpx.Client(base_url=url, timeout=600) as pod:
        for (source, target), group in groupby(questions, lambda question: question[:2]):
            texts = [text for _, _, text in group]
            for first in range(0, len(texts), TEXTS_PER_REQUEST):
                some = texts[first : first + TEXTS_PER_REQUEST]
                body = {"text": some, "source_lang": source, "target_lang": target}
                answers += pod.post("/translate", json=body).raise_for_status().json()["translation"]
    return answers


def evaluate(
    translated: Callable[[list[Untranslated]], list[str]], count: int, seed: int = SEED, tags: bool = False
) -> list[Result]:
    """Translate `count` held-out texts in every direction, with inline tags in them if `tags`."""
    texts = held_out_texts(count, seed, tags)
    given = [(source, target, text) for source, target in DIRECTIONS for text in texts]
    answers = translated([(source, target, text.texts[source]) for source, target, text in given])
    return [
        Result(source, target, text.texts[source], text.texts[target], answer)
        for (source, target, text), answer in zip(given, answers, strict=True)
    ]


def shares(results: list[Result]) -> dict[str, float]:
    """The share of exact answers per direction, keyed `en-fr`."""
    found: dict[str, list[bool]] = {}
    for result in results:
        found.setdefault(f"{result.source}-{result.target}", []).append(result.exact)
    return {direction: sum(exact) / len(exact) for direction, exact in found.items()}


def main() -> None:
    """Evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--model", type=Path, help="the model's folder")
    where.add_argument("--url", help="of an engine pod that serves the model")
    parser.add_argument("--texts", type=int, default=400, help="held-out texts, each in five directions")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the held-out texts (default {SEED})")
    parser.add_argument("--tags", action="store_true", help="put inline tags, such as <x1>, into the texts")
    parser.add_argument("--failures", type=int, default=8, help="failures to show per direction (default 8)")
    parser.add_argument("--json", action="store_true", help="print the shares as JSON and nothing else")
    options = parser.parse_args()
    translated = partial(translate_through, options.url) if options.url else partial(translate, options.model)
    results = evaluate(translated, options.texts, options.seed, options.tags)
    if options.json:
        print(json.dumps(shares(results)))
        return
    for direction, share in shares(results).items():
        print(f"{direction}  {share:.2%} exact of {options.texts}")
        wrong = [r for r in results if not r.exact and f"{r.source}-{r.target}" == direction]
        for result in wrong[: options.failures]:
            print(f"  {result.text}\n    expected {result.expected}\n    answered {result.answer}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
