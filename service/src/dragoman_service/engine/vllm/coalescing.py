"""Tokens of answers that are not whole yet, kept back in the engine's process."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any


class HeldTokens:
    """Tokens of answers that are not whole yet.

    Args:
        holdable: Whether a request's tokens may be held, by its id; asked at its first token.
    """

    def __init__(self, holdable: Callable[[str], bool]) -> None:
        self._holdable = holdable
        self._tokens: dict[str, list[int]] = {}

    def passed_on(self, outputs: list[Any]) -> list[Any]:
        """Outputs of a step without those that are held, and with all held tokens of those that end.

        Args:
            outputs: vLLM's `EngineCoreOutput`, one a request that has new tokens.
        """
        passed = []
        for output in outputs:
            held, ended = self._tokens.get(output.request_id), output.finish_reason is not None
            if held is None:
                # The first token goes out at once: vLLM measures by it how long it took.
                if not ended and self._holdable(output.request_id):
                    self._tokens[output.request_id] = []
            elif ended or output.events:
                output.new_token_ids = held + output.new_token_ids
                self._tokens[output.request_id] = []
                if ended:
                    del self._tokens[output.request_id]
            else:
                held += output.new_token_ids
                continue
            passed.append(output)
        return passed

    def keep(self, requests: Container[str]) -> None:
        """Forget the tokens of all but these requests."""
        for request_id in [each for each in self._tokens if each not in requests]:
            del self._tokens[request_id]
