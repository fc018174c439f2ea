"""Buffers the tokens of non-streaming requests in the engine's process."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any


class TokenBuffer:
    """Tokens of unfinished outputs.

    Args:
        is_bufferable: Whether a request's tokens can be buffered, by its id; called at its first token.
    """

    def __init__(self, is_bufferable: Callable[[str], bool]) -> None:
        self._is_bufferable = is_bufferable
        self._tokens: dict[str, list[int]] = {}

    def forwarded(self, outputs: list[Any]) -> list[Any]:
        """Outputs of a step without those that are buffered, and with all buffered tokens of those that end.

        Args:
            outputs: vLLM's `EngineCoreOutput`, one a request that has new tokens.
        """
        forwarded = []
        for output in outputs:
            buffered, ended = self._tokens.get(output.request_id), output.finish_reason is not None
            if buffered is None:
                # The first token is sent at once: vLLM measures the time to first token by it.
                if not ended and self._is_bufferable(output.request_id):
                    self._tokens[output.request_id] = []
            elif ended or output.events:
                output.new_token_ids = buffered + output.new_token_ids
                self._tokens[output.request_id] = []
                if ended:
                    del self._tokens[output.request_id]
            else:
                buffered += output.new_token_ids
                continue
            forwarded.append(output)
        return forwarded

    def keep(self, requests: Container[str]) -> None:
        """Forget the tokens of all but these requests."""
        for request_id in [each for each in self._tokens if each not in requests]:
            del self._tokens[request_id]
