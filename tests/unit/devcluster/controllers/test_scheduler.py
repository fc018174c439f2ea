"""Whether a pod fits on the node."""

import pytest

from dragoman_devcluster.controllers.scheduler import place, requested_devices, waits_for_node

GPU = "nvidia.com/gpu"


def make_pod(*counts, phase="Running", **spec):
    containers = [{"resources": {"limits": {GPU: str(count), "cpu": "4"}}} for count in counts]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}, "status": {"phase": phase}}


def test_fits():
    assert place(make_pod(1), [make_pod(1)], {GPU: 2}) == ""
    assert place(make_pod(0), [], {}) == ""


@pytest.mark.parametrize("devices", [{}, {GPU: 0}, {GPU: 1}])
def test_missing_resource_is_named(devices):
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    assert place(make_pod(1), [make_pod(1)], devices) == message


def test_request_above_the_node_is_not_helped_by_preemption():
    assert "1 Preemption is not helpful" in place(make_pod(9), [], {GPU: 2})
    assert "Preemption" not in place(make_pod(2), [make_pod(1)], {GPU: 2})


def test_ended_pods_hold_nothing():
    ended = [make_pod(1, phase="Succeeded"), make_pod(1, phase="Failed")]
    assert place(make_pod(1), ended, {GPU: 1}) == ""


def test_containers_add_up():
    assert requested_devices(make_pod(1, 2)) == {GPU: 3}
    assert place(make_pod(1, 2), [], {GPU: 2})


def test_pods_that_wait_for_a_node():
    assert waits_for_node(make_pod())
    assert not waits_for_node(make_pod(nodeName="local"))
    assert not waits_for_node(make_pod(schedulingGates=[{"name": "hold"}]))
