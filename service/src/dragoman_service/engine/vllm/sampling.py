"""What vLLM is asked to sample, from how a segment is to be decoded."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from dragoman_service.engine.protocol import Decoding


def sampling_params(
    decoding: Decoding, max_tokens: int, stop: Collection[str], stop_token_ids: Collection[int]
) -> Any:
    """vLLM's `SamplingParams`.

    Args:
        decoding: As the translation core wants it.
        max_tokens: The longest output.
        stop: Strings that end the output, unless one token says the same.
        stop_token_ids: Tokens that do.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
        repetition_penalty=decoding.repetition_penalty,
        stop=list(stop),
        stop_token_ids=list(stop_token_ids),
        max_tokens=max_tokens,
        # Stop strings and streams need the text at each token. Else it is had once, from all of them, for a
        # fraction of the event loop's time.
        detokenize=decoding.stream or bool(stop),
        seed=decoding.seed,
        presence_penalty=decoding.presence_penalty,
        frequency_penalty=decoding.frequency_penalty,
        output_kind=RequestOutputKind.DELTA if decoding.stream else RequestOutputKind.FINAL_ONLY,
        **(_repetition_detection() if decoding.stop_on_repetition else {}),
    )


@cache
def _repetition_detection() -> dict[str, Any]:
    """What ends loops in the engine; nothing in releases that cannot (0.20 and later can).

    Six times the same 12 tokens, which finds loops of 1, 2, 3, 4 and 6 tokens too. Shorter runs stand in texts
    ("ha ha ha"); and vLLM's scheduler, in the engine's one thread, looks for each length of pattern at each token: with
    512 sequences five lengths took 5% of that thread. The guards find loops of other lengths in the answer.
    """
    from vllm import sampling_params

    detection = getattr(sampling_params, "RepetitionDetectionParams", None)
    if detection is None:
        return {}
    return {"repetition_detection": detection(max_pattern_size=12, min_pattern_size=12, min_count=6)}
