"""Decides at which engine steps new requests start, so that several are prefilled in one step.

Translations are short: at high load, some end and others start at nearly every step. A step with a prefill takes some
milliseconds longer than its tokens need, because vLLM does not run it as one CUDA graph. All running requests wait for
that.

The rule is that of TCP's delayed acknowledgments: hold new requests until their waiting, added up, equals the delay of
the running ones, which `PrefillDelay` measures. Whenever requests arrive, the total delay is at most twice the minimum,
unless the maximum number of steps ends a hold. The rule needs no estimate of arrivals or lengths.

Source: Dooly, Goldman, Scott, TCP Dynamic Acknowledgment Delay: Theory and Practice, STOC 1998.
"""

from __future__ import annotations


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
