"""One test for each bug of a peer that lies in what it computes; the issue or file stands in the name's docstring."""

import pytest
from tests.support.decisions import make_clock

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import ReplicaSample, Rule, Samples


def test_a_missing_metric_is_not_zero():
    """aibrix#2591, keda#3065, keda#965, llm-d-autoscaling#1550: metrics out at the peak shrank the fleet."""
    clock = make_clock(8)
    clock.tick(100, running=64, finished_per_s=100)
    decision = clock.tick(400, missing=8)
    assert (decision.replicas, decision.rule, decision.metrics_available) == (8, Rule.METRICS, False)
    assert decision.reason == "kept at 8 replicas: 8 of 8 report no metrics"
    # And what follows an outage is not taken for a quiet window.
    assert clock.tick(50, running=2, finished_per_s=10).replicas == 8


def test_a_replica_without_the_cache_metric_is_not_an_empty_cache():
    """production-stack#617, vllm#18354: the renamed KV metric read as 0."""
    clock = make_clock(4)
    old, new = ReplicaSample(clock.now, 2, 0, None), ReplicaSample(clock.now, 2, 0, 0.95)
    samples = Samples(4, (new, new, old, old))
    assert recommend(clock.policy, samples, clock.history, clock.now).signals.by_kv_cache == pytest.approx(
        4.75
    )


def test_the_mean_per_replica_is_multiplied_by_replicas():
    """aibrix KPA: four pods at 0.8 against 0.5 became ceil(0.8 / 0.5) = 2."""
    decision = make_clock(4, target_kv_cache_usage=0.5).tick(kv_usage=0.8, running=4, follow=False)
    assert decision.replicas == 7


def test_scale_down_uses_the_maximum_of_the_window():
    """aibrix stabilizeRecommendation takes the lowest, which speeds shrinking up."""
    clock = make_clock(8)
    clock.tick(100, running=64)
    clock.tick(20, running=2)
    clock.tick(20, running=60)
    clock.tick(35, running=2)
    assert clock.replicas == 8


def test_stale_samples_of_deleted_replicas_do_not_scale_up():
    """llm-d-autoscaling#368: series of deleted pods drove growth. Only ready replicas are given, and old is none."""
    clock = make_clock(2)
    clock.tick(20, running=4)
    old = ReplicaSample(clock.now - 60, running=10, waiting=500)
    fresh = ReplicaSample(clock.now, running=2)
    decision = recommend(clock.policy, Samples(2, (fresh, old)), clock.history, clock.now + 5)
    assert decision.replicas == 2
    assert decision.signals.missing == 1


def test_one_replica_without_metrics_does_not_stop_a_scale_up():
    """aibrix#593, #617: one unready pod stalled the loop; KubeAI skips the tick for every model on one error."""
    decision = make_clock(4).tick(running=40, waiting=60, missing=1, follow=False)
    assert decision.replicas > 4


def test_starting_replicas_are_not_required_again():
    """aibrix#2671: without a guard each tick adds the same replicas again."""
    clock = make_clock(1)
    desired = 1
    for _ in range(12):
        desired = clock.tick(
            running=10, waiting=30, desired=desired, pending=desired - 1, follow=False
        ).replicas
    assert desired == 5


def test_a_replica_that_waits_for_a_gpu_does_not_freeze_the_rest():
    """dynamo#14251: the planner stood still while a pod waited for a GPU."""
    clock = make_clock(2)
    grown = clock.tick(running=20, waiting=60, desired=3, pending=1, pending_s=9000, follow=False)
    assert grown.replicas > 3
    clock.tick(400, running=2, desired=3, pending=1, pending_s=9000, follow=False)
    assert 1 in {decision.replicas for decision in clock.decisions}


def test_scaling_from_zero_needs_no_metrics():
    """production-stack#1003, llm-d#2492, aibrix#476: at zero there are no metrics, so nothing ever woke."""
    clock = make_clock(1, min_replicas=0)
    clock.tick(400)
    assert clock.replicas == 0
    assert clock.tick(queued=1).replicas == 1


def test_no_flapping_between_nought_and_one():
    """kubeai#67: a request every few minutes took the replica down and up again."""
    clock = make_clock(1, min_replicas=0)
    for _ in range(20):
        clock.tick(120)
        clock.tick(running=1)
    assert {decision.replicas for decision in clock.decisions} == {1}


def test_a_step_is_not_averaged_away():
    """KubeAI's ten-minute mean follows a step minutes late."""
    clock = make_clock(2)
    clock.tick(40, running=8, finished_per_s=40)
    assert clock.replicas == 2
    assert clock.tick(running=20, waiting=200, finished_per_s=50, follow=False).replicas == 5
    assert clock.tick(running=20, waiting=450, finished_per_s=50, follow=False).replicas == 6


def test_a_number_is_absolute_and_never_multiplied_by_replicas():
    """kserve#5194: an absolute count with a target type that HPA multiplies by the replicas."""
    clock = make_clock(10)
    assert clock.tick(50, running=80).replicas == 10
