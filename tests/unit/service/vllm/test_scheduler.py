"""The schedulers hold requests by vLLM's own argument."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm.prefill_gate import PrefillGate

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
"""Imports of vLLM take 10 s of CPU time, and warn."""


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose `schedule` returns the argument that vLLM's own would get."""
    from vllm.v1.core.sched.scheduler import Scheduler

    from dragoman_service.engine.vllm.scheduler import GatedScheduler

    monkeypatch.setattr(Scheduler, "schedule", lambda _self, throttle: throttle)
    made = object.__new__(GatedScheduler)
    made._gate = PrefillGate(16)
    made.max_num_running_reqs = 32
    made.running = [SimpleNamespace(is_prefill_chunk=False)] * 20
    made.waiting = [SimpleNamespace()]
    made.prefill_capacity_bound = True
    return made


def test_a_request_is_held_while_others_run(scheduler: Any) -> None:
    assert [scheduler.schedule() for _ in range(10)] == [True] * 9 + [False]
    assert not scheduler.prefill_capacity_bound


def test_a_prefill_that_has_begun_goes_on(scheduler: Any) -> None:
    scheduler.running = [*scheduler.running, SimpleNamespace(is_prefill_chunk=True)]
    assert not scheduler.schedule()


def test_requests_without_a_free_slot_do_not_shorten_the_hold(scheduler: Any) -> None:
    scheduler.waiting = [SimpleNamespace()] * 500
    scheduler.max_num_running_reqs = 21
    assert [scheduler.schedule() for _ in range(10)] == [True] * 9 + [False]


def test_vllm_s_own_throttle_is_kept(scheduler: Any) -> None:
    scheduler.waiting = []
    assert scheduler.schedule(True)
