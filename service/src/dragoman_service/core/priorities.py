"""Short texts before long ones, without any of them waiting for ever.

The engine takes the smallest priority first, and a request's priority is fixed when it comes. So age is part
of it from the start: it is the moment that a segment came, put off by the length that its translation is
expected to have. A long segment lets pass the shorter ones that come within that time and none that come later.

Source: https://docs.vllm.ai/en/latest/api/vllm/config/scheduler/ (`policy: priority`, lower goes first).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dragoman_protocols.languages import Pair

PATIENCE_S_PER_TOKEN = 0.05
"""How long a segment waits for shorter ones, for each token that it is expected to be longer: see
bench/scheduling for what other values do."""

MAX_PATIENCE_S = 15.0
"""Longest that a segment lets others pass: half of the time that callers wait by default."""

MAX_PAIRS = 256
"""Pairs whose ratio is remembered; callers may name any."""

MEMORY = 500.0
"""Segments after which what was learned before counts for about a third."""

MIN_EVIDENCE = 20
MIN_RATIO = 0.25
MAX_RATIO = 8.0
"""As much longer as an output may get before it counts as a loop."""


def priority(
    came_s: float, expected_tokens: float, patience_s_per_token: float = PATIENCE_S_PER_TOKEN
) -> int:
    """A segment's place in the engine's queue, smaller is sooner.

    Args:
        came_s: When it came, in seconds of any clock that only goes forward.
        expected_tokens: Of its translation.
        patience_s_per_token: See `PATIENCE_S_PER_TOKEN`.

    Returns:
        Milliseconds of that clock.
    """
    return round(1000 * (came_s + min(MAX_PATIENCE_S, patience_s_per_token * expected_tokens)))


@dataclass
class Lengths:
    """How long the translations of one pair get, by least squares over those that were seen.

    What is known of each is how long its prompt was, of which the text is only a part. As that part is what
    varies, the slope is the ratio of translation to text, whatever stands around the text.
    """

    count: float = 0.0
    prompt: float = 0.0
    output: float = 0.0
    prompt_squared: float = 0.0
    prompt_output: float = 0.0

    def learn(self, prompt_tokens: int, output_tokens: int) -> None:
        """Take note of a translation."""
        kept = 1 - 1 / MEMORY
        self.count = self.count * kept + 1
        self.prompt = self.prompt * kept + prompt_tokens
        self.output = self.output * kept + output_tokens
        self.prompt_squared = self.prompt_squared * kept + prompt_tokens**2
        self.prompt_output = self.prompt_output * kept + prompt_tokens * output_tokens

    @property
    def ratio(self) -> float:
        """Tokens of translation for a token of text; 1 where too little was seen to tell."""
        spread = self.count * self.prompt_squared - self.prompt**2
        if self.count < MIN_EVIDENCE or spread < self.count**2:
            return 1.0
        slope = (self.count * self.prompt_output - self.prompt * self.output) / spread
        return min(MAX_RATIO, max(MIN_RATIO, slope))


class ShortestFirst:
    """Gives segments their priorities, and learns how long translations get.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._lengths: dict[tuple[str, str], Lengths] = {}

    def __call__(self, pair: Pair | None, tokens: int) -> int:
        """The priority of a segment, or a chat, that comes now.

        Args:
            pair: The segment's languages; None for a chat.
            tokens: The segment's length; of a chat the expected length of the answer.
        """
        ratio = 1.0 if pair is None else self.ratio(pair)
        return priority(self._clock() - self._began_s, tokens * ratio)

    def ratio(self, pair: Pair) -> float:
        """Tokens of translation for a token of text, as seen lately; 1 where nothing was."""
        seen = self._lengths.get((pair.source.tag, pair.target.tag))
        return 1.0 if seen is None else seen.ratio

    def learn(self, pair: Pair, prompt_tokens: int, output_tokens: int) -> None:
        """Take note of a segment that was translated.

        Args:
            pair: Its languages.
            prompt_tokens: Length of its prompt, the text and all around it.
            output_tokens: Length of its translation.
        """
        key = (pair.source.tag, pair.target.tag)
        if key in self._lengths or len(self._lengths) < MAX_PAIRS:
            self._lengths.setdefault(key, Lengths()).learn(prompt_tokens, output_tokens)
