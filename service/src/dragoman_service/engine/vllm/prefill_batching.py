"""Decides at which engine steps new requests start, so that several are prefilled in one step.

Translations are short: at high load, some end and others start at nearly every step. A step with a prefill takes some
milliseconds longer than its tokens need, because vLLM does not run it as one CUDA graph. All running requests wait for
that.

The rule is that of TCP's delayed acknowledgments: hold new requests until their waiting, added up, equals the delay of
the running ones, which `PrefillDelay` measures. Whenever requests arrive, the total delay is at most twice the minimum,
unless the maximum number of steps ends a hold. The rule needs no estimate of arrivals or lengths.

`PrefillDelay` measures that delay, apart from the time for each prompt token. vLLM runs a step with a prefill as many
small CUDA graphs. With a small model and few prompt tokens, launching them takes longer than the GPU's work: a second
prompt in the same step costs nothing. With a large model or many tokens the GPU's work takes longer: then each prompt
costs the same in any step. Both are seen in the line through the times of such steps over their prompt tokens. Its
value at 0 tokens is what a step with several prompts saves per further prompt.

Source: Dooly, Goldman, Scott, TCP Dynamic Acknowledgment Delay: Theory and Practice, STOC 1998.
"""

from __future__ import annotations

from collections import deque

KEPT = 1 - 1 / 64
"""Weight of a measurement after each further one."""

MIN_WEIGHT = 16.0
"""Sum of the weights from which the line is used."""

MIN_STEPS = 0.5
"""Lowest delay, and the one before it is measured. Measured with a model of 1.7 B parameters on an H100: 3.2 with 25
running sequences, 0.0 with 128, 0.9 with 512. With 128, a gate with 0.5 still has a higher throughput than none."""

MAX_STEPS = 4.0
"""Highest delay: errors of the measurement must not hold sequences for long."""


class PrefillGate:
    """Holds requests for a number of steps.

    Args:
        max_steps: Step in which a request starts at the latest, counted from its first, 1 or more; 1 holds none.
    """

    def __init__(self, max_steps: int) -> None:
        self._max_steps = max_steps
        self._held_steps = 0
        self._waited_steps = 0

    def holds(self, startable: int, running: int, delay_steps: float) -> bool:
        """Whether this step starts no request; called once per step.

        Args:
            startable: Waiting requests for which there is a free slot.
            running: Requests that a prefill would delay.
            delay_steps: By how many steps, apart from the time for its tokens.
        """
        self._held_steps += 1
        self._waited_steps += startable
        if startable and self._held_steps < self._max_steps and self._waited_steps < running * delay_steps:
            return True
        self._held_steps = self._waited_steps = 0
        return False


class PrefillDelay:
    """Mean delay by the prefill in a step; the unit is a step without a prefill."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int, int]] = deque(maxlen=2)
        self._decode_s: float | None = None
        self._line = _Line()

    @property
    def steps(self) -> float:
        """The delay, between `MIN_STEPS` and `MAX_STEPS`."""
        if self._decode_s is None or self._line.weight < MIN_WEIGHT:
            return MIN_STEPS
        return min(max(self._line.intercept / self._decode_s, MIN_STEPS), MAX_STEPS)

    def observe(self, began_s: float, prompt_tokens: int, running: int) -> None:
        """Add a step; called once per step, in their order.

        With async scheduling, a step is launched before the one before it is complete. So the time of a prefill is
        seen in its own step and the next one.

        Args:
            began_s: When it began, on a monotonic clock.
            prompt_tokens: Tokens that it prefills.
            running: Sequences that ran before it. After none, the time since the step before may be idle time.
        """
        if len(self._steps) == 2 and running and all(busy for *_, busy in self._steps):
            (first_s, first_tokens, _), (second_s, second_tokens, _) = self._steps
            if not first_tokens and not second_tokens:
                self._add_decode(began_s - second_s)
            elif not second_tokens and self._decode_s is not None:
                self._line.add(first_tokens, began_s - first_s - 2 * self._decode_s)
        self._steps.append((began_s, prompt_tokens, running))

    def _add_decode(self, step_s: float) -> None:
        known_s = self._decode_s
        # A single long step, such as one in which CUDA graphs are captured, changes the mean little.
        self._decode_s = (
            step_s if known_s is None else known_s + (min(step_s, 2 * known_s) - known_s) * (1 - KEPT)
        )


class _Line:
    """Least squares; older points have less weight."""

    def __init__(self) -> None:
        self.weight = self._x = self._y = self._xx = self._xy = 0.0

    def add(self, x: float, y: float) -> None:
        self.weight = self.weight * KEPT + 1
        off = x - self._x
        self._x += off / self.weight
        self._y += (y - self._y) / self.weight
        self._xx = self._xx * KEPT + off * (x - self._x)
        self._xy = self._xy * KEPT + off * (y - self._y)

    @property
    def intercept(self) -> float:
        """The value at 0; the line does not fall."""
        slope = max(0.0, self._xy / self._xx) if self._xx else 0.0
        return self._y - slope * self._x
