"""The rules of the peers: the numbers of their documentation."""

import pytest

from dragoman_simulate.policies.hpa import (
    Behavior,
    ConcurrencyHpa,
    HpaController,
    external_metric_replicas,
    pods_metric_replicas,
)
from dragoman_simulate.policies.keda import Keda
from dragoman_simulate.policies.kpa import Kpa
from dragoman_simulate.policies.llm_d import LlmD


@pytest.mark.parametrize(
    ("total", "ready", "pending", "replicas"),
    [
        (400, 4, 0, 8),  # twice the target, twice the replicas
        (100, 4, 0, 2),  # half of it, half of them
        (219, 4, 0, 4),  # within a tenth: nothing
        (221, 4, 0, 5),
        (400, 4, 4, 8),  # those that start count as idle: 400 over eight is the target
        (100, 4, 4, 6),  # and as at target the other way: 100 + 200 over eight is 0.75 of it
    ],
)
def test_hpa_ratio(total, ready, pending, replicas):
    assert pods_metric_replicas(total, ready, pending, 50, ready + pending) == replicas


def test_hpa_default_behaviour(build):
    controller = HpaController(build.limits(maximum=100), Behavior())
    assert controller.settle(4, 50, 0) == 8  # doubled, or four more
    assert controller.settle(2, 50, 15) == 6
    controller = HpaController(build.limits(), Behavior())
    assert controller.settle(10, 10, 0) == 10
    assert controller.settle(10, 2, 15) == 10
    assert controller.settle(10, 2, 299) == 10
    assert controller.settle(10, 2, 300) == 2


def test_hpa_without_metrics_leaves_replicas_alone(build):
    assert ConcurrencyHpa(build.limits()).decide(build.view(0, 7, blind=True)) == 7


def test_external_metric_average_value():
    assert external_metric_replicas(26, 5, 3) == 6
    assert external_metric_replicas(16, 5, 3) == 3


def test_keda_reads_an_absent_series_as_idle(build):
    keda = Keda(build.limits())
    assert keda.decide(build.view(0, 4, running=100, waiting=22)) == 5
    for now_s in range(15, 330, 15):
        replicas = keda.decide(build.view(now_s, 5, blind=True))
    assert replicas == 1


def test_keda_sleeps_after_the_cooldown_and_wakes_at_its_poll(build):
    keda = Keda(build.limits(minimum=0))
    assert keda.decide(build.view(285, 1)) == 1
    assert keda.decide(build.view(300, 1)) == 0
    assert keda.decide(build.view(315, 0, queued=3)) == 0  # not a poll
    assert keda.decide(build.view(330, 0, queued=3)) == 1


def test_kpa_panics_at_twice_the_target_and_keeps_its_replicas_for_a_window(build):
    kpa = Kpa(build.limits(maximum=50))
    target = 0.7 * 32
    for now_s in range(0, 60, 2):
        assert kpa.decide(build.view(now_s, 1, running=0.9 * target)) == 1
    for now_s in range(60, 66, 2):
        replicas = kpa.decide(build.view(now_s, 1, running=32, waiting=100))
    assert replicas == 6  # six seconds decide, not sixty
    for now_s in range(66, 124, 2):
        assert kpa.decide(build.view(now_s, 6, running=5)) >= 6
    for now_s in range(124, 130, 2):
        replicas = kpa.decide(build.view(now_s, 6, running=5))
    assert replicas == 3  # no lower than half of what is ready


def test_kpa_keeps_its_scale_without_metrics(build):
    assert Kpa(build.limits()).decide(build.view(0, 5, blind=True)) == 5


def test_llm_d_grows_above_085_and_shrinks_below_070(build):
    def decide(share, pending=0):
        return LlmD(build.limits()).decide(build.view(0, 10, running=share * 320, pending=pending))

    assert decide(0.84) == 10
    assert decide(0.86) == 11
    assert decide(0.95) == 12
    assert decide(0.71) == 10
    assert decide(0.50) == 8
    assert decide(0.95, pending=2) == 12  # pending replicas count as supply


def test_llm_d_counts_the_inputs_of_what_waits(build):
    policy = LlmD(build.limits(maximum=40))
    used = 90 + 85 / 2
    demand = 64 * used + 100 * 90
    assert policy.decide(build.view(0, 2, running=64, waiting=100)) == -(-demand / 0.85 // (32 * used))


def test_llm_d_holds_without_metrics(build):
    assert LlmD(build.limits()).decide(build.view(0, 5, blind=True)) == 5
