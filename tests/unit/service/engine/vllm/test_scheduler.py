"""The schedulers hold requests by vLLM's own argument, and send statistics when they are due."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm.prefill_batching import PrefillDelay, PrefillGate

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
"""Imports of vLLM take 10 s of CPU time, and warn."""


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose `schedule` returns a step with the argument that vLLM's own would get."""
    from vllm.v1.core.sched.scheduler import Scheduler

    from dragoman_service.engine.vllm.scheduler import GatedScheduler

    def schedule(self: Any, throttled: bool) -> Any:
        tokens = dict.fromkeys(range(20), 1) | ({} if throttled else {"new": 101})
        total = sum(tokens.values())
        return SimpleNamespace(
            throttled=throttled, num_scheduled_tokens=tokens, total_num_scheduled_tokens=total
        )

    monkeypatch.setattr(Scheduler, "schedule", schedule)
    made = object.__new__(GatedScheduler)
    made._gate, made._delay = PrefillGate(16), PrefillDelay()
    made.max_num_running_reqs = 32
    made.running = [SimpleNamespace(is_prefill_chunk=False)] * 20
    made.waiting = [SimpleNamespace()]
    made.prefill_capacity_bound = True
    return made


def test_a_request_is_held_while_others_run(scheduler: Any) -> None:
    assert [scheduler.schedule().throttled for _ in range(10)] == [True] * 9 + [False]
    assert not scheduler.prefill_capacity_bound


def test_a_prefill_that_has_begun_goes_on(scheduler: Any) -> None:
    scheduler.running = [*scheduler.running, SimpleNamespace(is_prefill_chunk=True)]
    assert not scheduler.schedule().throttled


def test_requests_without_a_free_slot_do_not_shorten_the_hold(scheduler: Any) -> None:
    scheduler.waiting = [SimpleNamespace()] * 500
    scheduler.max_num_running_reqs = 21
    assert [scheduler.schedule().throttled for _ in range(10)] == [True] * 9 + [False]


def test_vllm_s_own_throttle_is_kept(scheduler: Any) -> None:
    scheduler.waiting = []
    assert scheduler.schedule(True).throttled


def test_the_delay_by_a_prefill_is_measured(scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = []
    monkeypatch.setattr(scheduler._delay, "observe", lambda _s, *step: observed.append(step))
    for _ in range(10):
        scheduler.schedule()
    assert observed == [(0, 20)] * 9 + [(100, 20)]


@pytest.fixture
def coalescing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose time the test sets, and of which vLLM's `make_stats` returns its arguments."""
    from vllm.v1.core.sched.scheduler import Scheduler

    from dragoman_service.engine.vllm import scheduler

    made = object.__new__(scheduler.CoalescingScheduler)
    made.now_s = 100.0
    made._statistics_due_s = 0.0
    made.running, made.waiting = [SimpleNamespace()], []
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: made.now_s))
    monkeypatch.setattr(Scheduler, "make_stats", lambda _self, *of_step: of_step)
    return made


def test_statistics_of_running_requests_are_sent_at_intervals(coalescing: Any) -> None:
    sent = []
    for _ in range(100):
        sent.append(coalescing.make_stats(None, None) is not None)
        coalescing.now_s += 1 / 64
    assert sent == [True, False, False, False] * 25


def test_statistics_of_the_step_alone_are_sent_at_once(coalescing: Any) -> None:
    coalescing.make_stats(None)
    assert coalescing.make_stats("drafts", None) == ("drafts", None)


def test_statistics_are_sent_after_the_last_request(coalescing: Any) -> None:
    coalescing.make_stats(None)
    coalescing.running = []
    assert coalescing.make_stats(None) is not None


def test_a_step_without_content_sends_no_message(coalescing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine import EngineCoreOutputs

    messages = [
        EngineCoreOutputs(),
        EngineCoreOutputs(finished_requests={"a"}),
        EngineCoreOutputs(scheduler_stats=object()),
    ]
    coalescing._buffer = SimpleNamespace(forwarded=lambda outputs: outputs)
    monkeypatch.setattr(Scheduler, "update_from_output", lambda _self: dict(enumerate(messages)))
    assert list(coalescing.update_from_output()) == [1, 2]
