"""From what vLLM says of a generation to chunks of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman_protocols.errors import GenerationError
from dragoman_service.engine.protocol import Chunk, Finish


def chunk(output: Any, prompt_tokens: int, decode: Callable[[Sequence[int]], str] | None) -> Chunk:
    """One of vLLM's outputs as a chunk.

    Args:
        output: A `RequestOutput`, with one completion.
        prompt_tokens: Of its prompt.
        decode: Turns token ids into text where vLLM was asked not to (`detokenize=False`), in which case there are
            no stop strings and the output comes whole; None where vLLM did.

    Raises:
        GenerationError: vLLM ended the generation without an answer.
    """
    completion = output.outputs[0]
    if completion.finish_reason is None:
        return Chunk(completion.text)
    if completion.finish_reason not in tuple(Finish):
        raise GenerationError(f"vLLM ended the generation: {completion.finish_reason}")
    finish = Finish(completion.finish_reason)
    text = completion.text if decode is None else _decoded(completion.token_ids, finish, decode)
    return Chunk(text, finish, prompt_tokens, len(completion.token_ids))


def _decoded(token_ids: Sequence[int], finish: Finish, decode: Callable[[Sequence[int]], str]) -> str:
    if finish is Finish.STOP:
        # What ended it is its last token, which is no text.
        return decode(token_ids[:-1])
    # A character of several tokens may have been cut in two.
    return decode(token_ids).rstrip("\ufffd")
