"""Decides at which engine steps new requests start, so that several are prefilled in one step.

Translations are short: at high load, some end and others start at nearly every step. A step with a prefill takes some
milliseconds longer than its tokens need, because vLLM does not run it as one CUDA graph. All running requests wait for
that.

The rule is that of TCP's delayed acknowledgments: hold new requests until their waiting, added up, equals the delay of
the running ones. Whenever requests arrive, the total delay is at most twice the minimum, unless the maximum number of
steps ends a hold. The rule needs no estimate of arrivals or lengths.

Source: Dooly, Goldman, Scott, TCP Dynamic Acknowledgment Delay: Theory and Practice, STOC 1998.
"""

from __future__ import annotations

PREFILL_DELAY_STEPS = 0.5
"""Time by which a prefill lengthens a step, apart from its tokens; the unit is a step without a prefill. On an H100
with a model of 1.7 B parameters: 1.5 with 25 running requests, 0.5 to 0.7 with 128 and 512. This is the lowest of
them, because the steps of larger models take longer."""


class PrefillGate:
    """Holds requests for a number of steps.

    Args:
        max_steps: Step in which a request starts at the latest, counted from its first, 1 or more; 1 holds none.
    """

    def __init__(self, max_steps: int) -> None:
        self._max_steps = max_steps
        self._held_steps = 0
        self._waited_steps = 0

    def holds(self, startable: int, running: int) -> bool:
        """Whether this step starts no request; called once per step.

        Args:
            startable: Waiting requests for which there is a free slot.
            running: Requests that a prefill would delay.
        """
        self._held_steps += 1
        self._waited_steps += startable
        if (
            startable
            and self._held_steps < self._max_steps
            and self._waited_steps < running * PREFILL_DELAY_STEPS
        ):
            return True
        self._held_steps = self._waited_steps = 0
        return False
