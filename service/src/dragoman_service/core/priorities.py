"""Short segments before long ones, with aging.

The engine takes the smallest priority first, and a segment's priority is fixed when it arrives. So age is part of
it: it is the time of arrival plus a delay that grows with the expected length of the translation. A long segment
waits for shorter ones that arrive within that delay, and for none that arrive later.

Source: https://docs.vllm.ai/en/latest/api/vllm/config/scheduler/ (`policy: priority`, lower goes first).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dragoman_protocols.languages import Pair

PATIENCE_S_PER_TOKEN = 0.05
"""How long a segment waits for shorter ones, for each token that it is expected to be longer: docs/benchmarks.md
has what other values do."""

MAX_PATIENCE_S = 15.0
"""Maximum delay of a segment: half of the default request timeout."""

MAX_PAIRS = 256
"""Pairs whose ratio is kept; clients can name any."""

MEMORY = 500.0
"""Segments after which what was learned before counts for about a third."""

MIN_EVIDENCE = 20
MIN_RATIO = 0.25
MAX_RATIO = 8.0
"""Longer outputs are loops."""


def priority(
    arrived_s: float, expected_tokens: float, patience_s_per_token: float = PATIENCE_S_PER_TOKEN
) -> int:
    """A segment's priority in the engine's queue in milliseconds, from its arrival and length; smaller is sooner.

    Returns:
        Milliseconds of that clock.
    """
    return round(1000 * (arrived_s + min(MAX_PATIENCE_S, patience_s_per_token * expected_tokens)))


@dataclass
class Lengths:
    """Lengths of the translations of one pair, by least squares.

    Known of each is the length of its prompt, of which the text is only a part. As only that part varies, the slope is
    the ratio of translation to text, independent of the text around it.
    """

    count: float = 0.0
    prompt: float = 0.0
    output: float = 0.0
    prompt_squared: float = 0.0
    prompt_output: float = 0.0

    def learn(self, prompt_tokens: int, output_tokens: int) -> None:
        """Add a translation."""
        kept = 1 - 1 / MEMORY
        self.count = self.count * kept + 1
        self.prompt = self.prompt * kept + prompt_tokens
        self.output = self.output * kept + output_tokens
        self.prompt_squared = self.prompt_squared * kept + prompt_tokens**2
        self.prompt_output = self.prompt_output * kept + prompt_tokens * output_tokens

    @property
    def ratio(self) -> float:
        """Tokens of translation for a token of text; 1 before enough was seen."""
        spread = self.count * self.prompt_squared - self.prompt**2
        if self.count < MIN_EVIDENCE or spread < self.count**2:
            return 1.0
        slope = (self.count * self.prompt_output - self.prompt * self.output) / spread
        return min(MAX_RATIO, max(MIN_RATIO, slope))


class ShortestFirst:
    """Gives segments their priorities, and learns the lengths of translations."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_s = clock()
        self._lengths: dict[tuple[str, str], Lengths] = {}

    def __call__(self, pair: Pair | None, tokens: int) -> int:
        """The priority of a segment that arrives now, of `tokens`; of a chat without a pair by its answer's."""
        ratio = 1.0 if pair is None else self.ratio(pair)
        return priority(self._clock() - self._started_s, tokens * ratio)

    def ratio(self, pair: Pair) -> float:
        """Tokens of translation for a token of text, as measured; 1 before it was."""
        seen = self._lengths.get((pair.source.tag, pair.target.tag))
        return 1.0 if seen is None else seen.ratio

    def learn(self, pair: Pair, prompt_tokens: int, output_tokens: int) -> None:
        """Add a segment that was translated."""
        key = (pair.source.tag, pair.target.tag)
        if key in self._lengths or len(self._lengths) < MAX_PAIRS:
            self._lengths.setdefault(key, Lengths()).learn(prompt_tokens, output_tokens)
