"""The world of the runs with faults: what may be done to which pod."""

import datetime

from faults.world import staying
from kubernetes.aio.client import V1ContainerStatus, V1ObjectMeta, V1Pod, V1PodStatus


def pod(name: str, *, container: str | None = "c", ready: bool = True, leaving: bool = False) -> V1Pod:
    status = V1ContainerStatus(
        name="engine", container_id=container, ready=ready, image="", image_id="", restart_count=0
    )
    return V1Pod(
        metadata=V1ObjectMeta(
            name=name, deletion_timestamp=datetime.datetime.now(datetime.UTC) if leaving else None
        ),
        status=V1PodStatus(container_statuses=[status] if container else None),
    )


def test_pods_that_stay():
    assert staying([pod("a", container="1"), pod("b", container="2", ready=False)]) == {
        "a": ("1", True),
        "b": ("2", False),
    }


def test_a_pod_that_is_leaving_is_no_victim():
    # Scaled away, it lives on through its preStop; killed there, it is not started again.
    assert staying([pod("a", leaving=True), pod("b")]) == {"b": ("c", True)}


def test_a_pod_without_containers_yet():
    assert staying([pod("a", container=None)]) == {}
