"""What other sizes of a deployment would cost."""

import pytest

from dragoman_simulate.errors import SimulateError
from dragoman_simulate.whatif import duration_s, predicted, size_of, sizes, steady, table


def manifest(**autoscaling):
    spec = {"replicas": 2, "engine": {"maxNumSeqs": 64}}
    status = {"desiredReplicas": 3, "scaling": {"timeToReadySeconds": 40}}
    if autoscaling:
        spec["autoscaling"] = autoscaling
    return {"metadata": {"name": "demo"}, "spec": spec, "status": status}


def test_a_size_is_read_from_spec_and_status():
    size = size_of(manifest(minReplicas=1, maxReplicas=6, targetQueueTime="1m"), 1000)
    assert (size.replicas, size.is_autoscaled) == (3, True)
    limits = size.limits
    assert (limits.minimum, limits.maximum, limits.max_num_seqs) == (1, 6, 64)
    assert (limits.target_wait_s, limits.start_up_s, limits.kv_cache_tokens) == (60, 40, 1000)


def test_a_size_without_autoscaling_is_fixed():
    size = size_of(manifest(), 1000)
    assert (size.replicas, size.is_autoscaled, size.limits.maximum) == (3, False, 3)
    assert size_of(manifest(mode="HPA", maxReplicas=9), 1000).is_autoscaled is False


def test_a_deployment_without_replicas_is_refused():
    stopped = manifest()
    stopped["status"]["desiredReplicas"] = stopped["spec"]["replicas"] = 0
    with pytest.raises(SimulateError, match="demo has no replicas"):
        size_of(stopped, 1000)


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2), ("5m", 300), ("1h", 3600), (None, None)])
def test_durations(text, seconds):
    assert duration_s(text) == seconds


def test_the_sizes_of_an_autoscaled_deployment():
    now = size_of(manifest(minReplicas=1, maxReplicas=6), 1000)
    assert [size.title for size in sizes(now, None, None)] == [
        "as it is", "3 replicas, not autoscaled", "2 replicas, not autoscaled", "maxNumSeqs 32", "maxNumSeqs 128",
        "start-up 20 s",
    ]  # fmt: skip
    assert [size.title for size in sizes(now, 48, 5)][-2:] == ["maxNumSeqs 48", "start-up 5 s"]


def test_the_sizes_of_a_fixed_deployment_have_no_start_up():
    titles = [size.title for size in sizes(size_of(manifest(), 1000), None, None)]
    assert titles == ["as it is", "2 replicas", "maxNumSeqs 32", "maxNumSeqs 128"]


def test_one_replica_less_costs_latency(build):
    now = size_of(manifest(), build.speed.kv_cache_tokens)
    capacity = 64 / (build.speed.request_s(64) + 85 / build.speed.tokens_per_s(64))
    trace = build.trace([2.3 * capacity] * 120)
    as_it_is, less = [predicted(size, trace, build.speed, 0.6) for size in sizes(now, None, None)[:2]]
    assert as_it_is.over_target_share == 0
    assert less.over_target_share > 0.5
    assert less.latency_p95_s > as_it_is.latency_p95_s + 5
    assert (as_it_is.replicas_mean, less.replicas_mean) == (3, 2)
    assert "| 2 replicas " in table([as_it_is, less])


def test_a_load_without_a_trace_is_an_hour_or_as_many_requests_as_can_be_replayed():
    assert steady(10, 90, 85).duration_s == 3600
    assert steady(10, 90, 85).counts.mean() == pytest.approx(10, rel=0.05)
    assert steady(1000, 90, 85).duration_s == 200
