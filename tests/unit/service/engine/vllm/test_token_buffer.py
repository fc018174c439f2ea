"""Tokens that stay in the engine's process until their answer is whole."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from dragoman_service.engine.vllm.coalescing import TokenBuffer


@dataclass
class Output:
    """The fields of vLLM's `EngineCoreOutput` that matter here."""

    request_id: str
    new_token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    events: list[str] | None = None


def forwarded(buffer: TokenBuffer, *outputs: Output) -> list[tuple[str, list[int]]]:
    return [(each.request_id, each.new_token_ids) for each in buffer.forwarded(list(outputs))]


def test_an_answer_is_forwarded_when_it_starts_and_when_it_is_complete() -> None:
    buffer = TokenBuffer(lambda _: True)
    assert forwarded(buffer, Output("a", [1])) == [("a", [1])]
    assert forwarded(buffer, Output("a", [2])) == []
    assert forwarded(buffer, Output("a", [3, 4])) == []
    assert forwarded(buffer, Output("a", [5], "stop")) == [("a", [2, 3, 4, 5])]


def test_a_streamed_answer_is_forwarded_token_by_token() -> None:
    buffer = TokenBuffer(lambda request_id: request_id == "whole")
    forwarded(buffer, Output("whole", [1]), Output("streamed", [1]))
    assert forwarded(buffer, Output("whole", [2]), Output("streamed", [2])) == [("streamed", [2])]


def test_an_answer_of_one_token_is_whole_at_once() -> None:
    buffer = TokenBuffer(lambda _: True)
    assert forwarded(buffer, Output("a", [1], "stop")) == [("a", [1])]
    # Another request of that id begins anew.
    assert forwarded(buffer, Output("a", [2]), Output("b", [7], "length")) == [("a", [2]), ("b", [7])]


def test_events_of_a_request_are_forwarded_at_once() -> None:
    buffer = TokenBuffer(lambda _: True)
    forwarded(buffer, Output("a", [1]))
    forwarded(buffer, Output("a", [2]))
    assert forwarded(buffer, Output("a", [3], events=["preempted"])) == [("a", [2, 3])]
    assert forwarded(buffer, Output("a", [4])) == []
    assert forwarded(buffer, Output("a", [], "stop")) == [("a", [4])]


def test_a_request_that_is_gone_leaves_nothing() -> None:
    buffer = TokenBuffer(lambda _: True)
    forwarded(buffer, Output("a", [1]), Output("b", [1]))
    forwarded(buffer, Output("a", [2]), Output("b", [2]))
    buffer.keep({"b"})
    assert forwarded(buffer, Output("a", [9], "stop"), Output("b", [3], "stop")) == [
        ("a", [9]),
        ("b", [2, 3]),
    ]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.booleans(), st.sampled_from("abc")),
        max_size=40,
    )
)
def test_no_token_is_lost_doubled_or_turned_round(
    steps: list[tuple[list[int], bool, str]],
) -> None:
    buffer = TokenBuffer(lambda request_id: request_id != "c")
    sent: dict[str, list[int]] = {each: [] for each in "abc"}
    came: dict[str, list[int]] = {each: [] for each in "abc"}
    steps += [([0], False, each) for each in "abc"]
    for number, (tokens, eventful, request_id) in enumerate(steps):
        sent[request_id] += tokens
        ends = number >= len(steps) - 3
        output = Output(
            request_id, list(tokens), "stop" if ends else None, ["preempted"] if eventful else None
        )
        for each in buffer.forwarded([output]):
            came[each.request_id] += each.new_token_ids
    assert came == sent
