import math
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.clock import Clock

from dragoman_protocols.errors import DeadlineExceededError, InvalidFieldError, OverloadedError
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.admission import (
    MAX_RETRY_AFTER_S,
    Admission,
    AdmissionSlot,
    Bounds,
    Load,
    Reason,
    Refusal,
    ServiceRate,
    expected_s,
    file_limit_s,
    refusal_for,
)
from dragoman_service.core.costs import (
    PROMPT_TOKENS,
    Cost,
    Demand,
    cost_of,
    demands_of,
    estimated_tokens,
    least_cost_of_file,
)
from dragoman_service.engine.protocol import Capacity, StallDetector

CAPACITY = Capacity(sequences=16, tokens=1000)


def make_engine(capacity: Capacity = CAPACITY) -> Any:
    return SimpleNamespace(capacity=capacity, stall_detector=StallDetector())


def make_admission(clock: Clock | None = None, **bounds: Any) -> Admission:
    return Admission(Bounds(**bounds), make_engine(), longest_s=30, clock=clock or Clock())


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The quick brown fox jumps over the lazy dog.", 9, 14),
        ("Съешь же ещё этих мягких французских булок.", 12, 28),
        ("天地玄黄宇宙洪荒日月盈昃辰宿列张", 10, 18),
        ("सबका साथ सबका विकास", 8, 22),
        ("\ud800", 1, 2),
    ],
)
def test_tokens_are_guessed_by_script(text: str, least: int, most: int) -> None:
    assert least <= estimated_tokens(text) <= most


def test_a_request_costs_what_is_read_and_what_is_written() -> None:
    two = cost_of([Demand("abcd" * 10), Demand("abcd")])
    assert two == Cost(2 * PROMPT_TOKENS + 2 * (10 + 1), PROMPT_TOKENS + 2 * 10, 2)
    lines = cost_of([Demand("abcd\n" * 100)])
    assert lines.tokens > 100 * PROMPT_TOKENS + 200
    assert (lines.longest_tokens, lines.generations) == (PROMPT_TOKENS + 2, 100)
    assert cost_of([Demand("abcd\n\nabcd")]).generations == 2
    assert cost_of([]) == cost_of([Demand(" ")]) == Cost(0, PROMPT_TOKENS, 0)


def test_each_answer_and_what_stands_beside_a_text_cost_too() -> None:
    assert cost_of([Demand("abcd" * 10, answers=10)]) == Cost(
        10 * (PROMPT_TOKENS + 20), PROMPT_TOKENS + 20, 10
    )
    request = TranslationRequest(("abcd\n" * 2,), "de", "en", context="abcd" * 5, instructions=("abcd",))
    assert cost_of(demands_of(request)).tokens == 2 * (PROMPT_TOKENS + 6) + 2 * 3
    assert cost_of(demands_of(replace(request, split=Split.NONE))).generations == 1
    chat = Demand("abcd\nabcd", answer_tokens=100, whole=True)
    assert cost_of([chat]) == Cost(PROMPT_TOKENS + 3 + 100, PROMPT_TOKENS + 3 + 100, 1)


@pytest.mark.parametrize(
    ("bounds", "load", "cost", "reason"),
    [
        (Bounds(), Load(0, 0), 10, None),
        (Bounds(), Load(16 + 8 * 16 - 1, 0), 10, None),
        (Bounds(), Load(16 + 8 * 16, 0), 10, Reason.SEQUENCES),
        (Bounds(queued_sequences=0), Load(15, 0), 10, None),
        (Bounds(queued_sequences=0), Load(16, 0), 10, Reason.SEQUENCES),
        (Bounds(queued_sequences=4), Load(1, 0, generating=20), 10, Reason.SEQUENCES),
        (Bounds(), Load(5, 1990), 10, None),
        (Bounds(), Load(5, 1991), 10, Reason.TOKENS),
        (Bounds(queued_tokens=50), Load(5, 1040), 10, None),
        (Bounds(queued_tokens=50), Load(5, 1041), 10, Reason.TOKENS),
        (Bounds(queued_tokens=0), Load(0, 0), 10, None),
        (Bounds(), Load(5, 1000), 50_000, None),
        (Bounds(), Load(5, 1001), 50_000, Reason.TOKENS),
    ],
)
def test_bounds_are_kept(bounds: Bounds, load: Load, cost: int, reason: Reason | None) -> None:
    found = refusal_for(bounds, CAPACITY, load, Cost(cost, 1), math.inf)
    assert (found and found.reason) == reason


@pytest.mark.parametrize(
    ("load", "cost", "expected"),
    [
        # 600 tokens, of which those that run are half done; then its own.
        (Load(20, 600, 20, tokens_per_s=100), Cost(10, 0), 3.6 + 0.1),
        (Load(160, 600, 20, tokens_per_s=100), Cost(10, 0), 5.7 + 0.1),
        # One after the other, a sixteenth of the pace is its own; but no longer than the model holds.
        (Load(20, 600, 20, tokens_per_s=100), Cost(10, 10), 3.6 + 1.6),
        (Load(20, 600, 20, tokens_per_s=100), Cost(10, 9999), 3.6 + 62 * 16 / 100),
        (Load(20, 600, 20, tokens_per_s=None), Cost(10, 10), 0.0),
        (Load(15, 600, 15, tokens_per_s=100), Cost(10, 10), 0.0),
    ],
)
def test_what_is_expected_is_what_waits_and_its_own(load: Load, cost: Cost, expected: float) -> None:
    assert expected_s(CAPACITY, load, cost) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("load", "time_left_s", "refusal"),
    [
        (Load(20, 600, 20, tokens_per_s=100), 3.8, None),
        (Load(20, 600, 20, tokens_per_s=100), 1.5, Refusal(Reason.DEADLINE, 3)),
        (Load(20, 600, 20, tokens_per_s=0.001), 1, Refusal(Reason.DEADLINE, MAX_RETRY_AFTER_S)),
    ],
)
def test_what_would_come_too_late_is_refused_at_once(
    load: Load, time_left_s: float, refusal: Refusal | None
) -> None:
    assert refusal_for(Bounds(), CAPACITY, load, Cost(10, 0), time_left_s) == refusal
    assert refusal_for(Bounds(deadline_aware=False), CAPACITY, load, Cost(10, 0), time_left_s) is None


@pytest.mark.parametrize(("rate", "retry_after_s"), [(None, 1), (10_000.0, 1), (100.0, 10), (1.0, 60)])
def test_who_is_refused_hears_when_half_of_it_will_be_done(rate: float | None, retry_after_s: int) -> None:
    found = refusal_for(Bounds(), CAPACITY, Load(5, 2000, 5, rate), Cost(10, 10), math.inf)
    assert found == Refusal(Reason.TOKENS, retry_after_s)


def test_the_rate_is_what_was_done_under_load() -> None:
    clock = Clock()
    rate = ServiceRate(clock)
    rate.done(1_000_000)
    rate.under_load(True)
    clock.now_s += 0.6
    rate.done(60)
    assert rate.tokens_per_s is None
    clock.now_s += 0.6
    rate.done(60)
    assert rate.tokens_per_s == pytest.approx(100, rel=0.02)
    rate.under_load(False)
    clock.now_s += 1000
    assert rate.tokens_per_s == pytest.approx(100, rel=0.02)
    rate.under_load(True)
    for _ in range(100):
        clock.now_s += 1
        rate.done(200)
    assert rate.tokens_per_s == pytest.approx(200, rel=0.05)


def test_before_anything_is_finished_the_rate_is_at_most_what_runs() -> None:
    clock = Clock()
    rate = ServiceRate(clock)
    assert rate.at_most(1000) is None
    rate.under_load(True)
    clock.now_s += 0.5
    assert rate.at_most(1000) is None
    clock.now_s += 4.5
    assert (rate.tokens_per_s, rate.at_most(1000)) == (None, 200)
    rate.done(500)
    assert rate.at_most(1000) is None


@pytest.mark.parametrize("service_s", [0.5, 4.0, 20.0])
def test_of_a_demand_eight_times_the_pace_nothing_is_taken_on_that_is_known_to_be_late(
    service_s: float,
) -> None:
    """12 sequences, each request takes `service_s`; arrivals every hundredth of what the engine needs for eight."""
    clock, engine = Clock(), make_engine(Capacity(sequences=12, tokens=100_000))
    admission = Admission(Bounds(), engine, longest_s=30, clock=clock)
    cost, late, done, refused = Cost(50, 50), 0, 0, 0
    waiting: list[tuple[float, ExitStack, AdmissionSlot]] = []
    running: list[tuple[float, float, ExitStack, AdmissionSlot]] = []
    end_s = clock.now_s + max(20.0, 8 * service_s)
    while clock.now_s < end_s:
        clock.now_s += service_s / 12 / 8
        for entry in [each for each in running if each[0] <= clock.now_s]:
            running.remove(entry)
            entry[3].served()
            entry[2].close()
            done += 1
            late += clock.now_s - entry[1] > 30
        held = ExitStack()
        try:
            waiting.append((clock.now_s, held, held.enter_context(admission.admit(cost, 30))))
        except OverloadedError:
            refused += 1
        while waiting and len(running) < 12:
            came_s, held, place = waiting.pop(0)
            running.append((clock.now_s + service_s, came_s, held, place))
        engine.stall_detector._generating = len(waiting) + len(running)
    assert refused
    # What was taken on before the first were finished may be late: these are answered 503 too (`AdmissionSlot.late`).
    before_evidence = 12 * 8
    assert late <= (before_evidence if service_s > 3 else 0)
    assert done > 0.8 * 12 * (max(20.0, 8 * service_s) / service_s - 1)


def test_a_late_request_in_a_crowd_hears_of_the_crowd() -> None:
    engine = make_engine(Capacity(sequences=1, tokens=1000))
    admission = Admission(Bounds(), engine, longest_s=30, clock=Clock())
    late = DeadlineExceededError("late")
    with admission.admit(Cost(1, 1), 30) as alone:
        assert alone.late(late) is late
        with admission.admit(Cost(1, 1), 30) as second:
            for place in (alone, second):
                found = place.late(late)
                assert isinstance(found, OverloadedError)
                assert found.retry_after_s >= 1
    with admission.admit(Cost(1, 1), 30) as alone:
        assert alone.late(late) is late


def test_a_rate_falls_while_nothing_is_done() -> None:
    clock = Clock()
    rate = ServiceRate(clock)
    rate.under_load(True)
    for _ in range(10):
        clock.now_s += 1
        rate.done(100)
    before = rate.tokens_per_s
    clock.now_s += 60
    assert before is not None
    assert rate.tokens_per_s is not None
    assert rate.tokens_per_s < before / 4


@pytest.mark.parametrize(
    ("slots", "generations", "admitted"),
    [
        (134, 10, True),
        (135, 10, False),
        (112, 1000, True),
        (113, 1000, False),
        (143, 0, True),
        (144, 0, False),
    ],
)
def test_a_request_takes_as_many_places_as_generations_up_to_its_bound(
    slots: int, generations: int, admitted: bool
) -> None:
    cost = Cost(1, 1, generations)
    found = refusal_for(Bounds(at_once=32), CAPACITY, Load(slots, 0), cost, math.inf)
    assert (found is None) is admitted


def test_what_is_over_the_whole_bound_is_admitted_when_nothing_waits() -> None:
    bounds, cost = Bounds(queued_sequences=4), Cost(1, 1, 100)
    assert refusal_for(bounds, CAPACITY, Load(16, 0), cost, math.inf) is None
    assert refusal_for(bounds, CAPACITY, Load(17, 0), cost, math.inf) == Refusal(Reason.SEQUENCES, 1)


def test_retries_are_added_to_their_request_while_it_lasts() -> None:
    admission = make_admission()
    with admission.admit(Cost(40, 1), 30) as place:
        place.add(60)
        assert (admission.load.tokens, place.tokens, place.generations) == (100, 100, 2)
    place.add(60)
    assert admission.load.tokens == 0


@pytest.mark.parametrize(("characters", "limit_s"), [(0, 30), (5000, 30), (10_000, 60), (10**7, 600)])
def test_a_file_gets_time_by_its_size(characters: int, limit_s: float) -> None:
    admission = Admission(Bounds(), make_engine(), longest_s=30, file_longest_s=600)
    assert admission.time_limit_s(None, characters) == limit_s
    assert admission.time_limit_s("20", characters) == 20
    assert file_limit_s(characters, request_s=30, max_s=10) == 30


def test_places_are_counted_and_given_back() -> None:
    admission = make_admission(queued_sequences=0)
    with admission.admit(Cost(40, 1), 30) as place:
        assert (admission.load.slots, admission.load.tokens, place.tokens) == (1, 40, 40)
        with pytest.raises(ZeroDivisionError), admission.admit(Cost(2, 1), 30):
            raise ZeroDivisionError
    assert (admission.load.slots, admission.load.tokens) == (0, 0)


def test_a_full_pod_refuses_and_names_the_limit() -> None:
    admission = make_admission(queued_tokens=10)
    with admission.admit(Cost(1005, 1), 30):
        assert not admission.full
        with admission.admit(Cost(5, 1), 30):
            assert admission.full
            with pytest.raises(OverloadedError) as refused, admission.admit(Cost(5, 1), 30):
                pass
    assert (refused.value.reason, refused.value.retry_after_s) == ("tokens", 1)
    assert not admission.full


def test_a_request_over_the_whole_bound_is_taken_when_nothing_waits() -> None:
    admission = make_admission(queued_tokens=10)
    with (
        admission.admit(Cost(1_000_000, 1), 30),
        pytest.raises(OverloadedError),
        admission.admit(Cost(1, 1), 30),
    ):
        pass
    with admission.admit(Cost(990, 1), 30), admission.admit(Cost(1_000_000, 1), 30):
        assert admission.load.slots == 2


@pytest.mark.parametrize(("requested", "limit_s"), [(None, 30), ("2.5", 2.5), ("1e9", 30), ("inf", 30)])
def test_a_caller_may_have_less_time_and_no_more(requested: str | None, limit_s: float) -> None:
    assert make_admission().time_limit_s(requested) == limit_s


@pytest.mark.parametrize("requested", ["", "0", "-1", "soon", "nan", "2s"])
def test_a_time_limit_that_is_none_is_refused(requested: str) -> None:
    with pytest.raises(InvalidFieldError, match="X-Request-Timeout"):
        make_admission().time_limit_s(requested)


def test_an_estimate_is_replaced_by_the_cost_or_refused_with_it() -> None:
    admission = make_admission(queued_tokens=500)
    with ExitStack() as stack:
        stack.enter_context(admission.admit(Cost(1100, 10, 4), 30))
        slot = stack.enter_context(admission.admit(least_cost_of_file(20_000), math.inf))
        assert (admission.load.slots, admission.load.tokens) == (5, 1120)
        with pytest.raises(OverloadedError):
            slot.set_cost(Cost(501, 10, 2), 30)
        assert (admission.load.slots, admission.load.tokens) == (5, 1120)
        slot.set_cost(Cost(400, 10, 2), 30)
        assert (admission.load.slots, admission.load.tokens) == (6, 1500)
    assert (admission.load.slots, admission.load.tokens) == (0, 0)
