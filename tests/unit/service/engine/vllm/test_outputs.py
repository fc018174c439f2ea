from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_protocols.errors import GenerationError
from dragoman_service.engine.protocol import Chunk, Finish
from dragoman_service.engine.vllm.engine import FEW_SEQUENCES, chunk, trials

WORDS = {1: "Die", 2: " Katze", 3: " schl", 4: "\ufffd", 9: "</s>"}


def decode(token_ids: Any) -> str:
    return "".join(WORDS[token] for token in token_ids)


def output(text: str, token_ids: list[int], finish: str | None) -> Any:
    return SimpleNamespace(outputs=[SimpleNamespace(text=text, token_ids=token_ids, finish_reason=finish)])


def test_a_piece_of_a_stream_is_its_text() -> None:
    assert chunk(output("Die", [1], None), 7, None) == Chunk("Die")


def test_text_that_vllm_made_is_taken_as_it_is() -> None:
    assert chunk(output("Die Katze", [1, 2, 9], "stop"), 7, None) == Chunk("Die Katze", Finish.STOP, 7, 3)


def test_a_whole_output_is_decoded_without_the_token_that_ended_it() -> None:
    assert chunk(output("", [1, 2, 9], "stop"), 7, decode) == Chunk("Die Katze", Finish.STOP, 7, 3)


@pytest.mark.parametrize("finish", ["length", "repetition"])
def test_an_output_that_was_cut_keeps_its_last_token_but_no_half_character(finish: str) -> None:
    assert chunk(output("", [1, 2, 3, 4], finish), 7, decode) == Chunk("Die Katze schl", Finish(finish), 7, 4)


def test_an_output_that_was_aborted_is_no_answer() -> None:
    with pytest.raises(GenerationError, match="the engine ended the generation: abort"):
        chunk(output("", [], "abort"), 7, decode)


def test_before_the_first_request_a_gpu_samples_beside_greedy_sequences_in_small_and_in_large_steps() -> None:
    alone, few, many = trials("cuda", 512)
    assert [decoding.temperature for decoding in alone] == [0.0]
    for batch in (few, many):
        assert batch[0].temperature == 0.0
        assert all(each.temperature and each.top_k and each.top_p < 1 for each in batch[1:])
    assert len(few) <= FEW_SEQUENCES < len(many) <= 512
    assert len(trials("cuda", 8)[-1]) == 9


def test_before_the_first_request_a_cpu_generates_once() -> None:
    (batch,) = trials("cpu", 512)
    assert len(batch) == 1
