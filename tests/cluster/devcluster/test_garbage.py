"""What belongs to what is deleted goes too, on the local cluster."""

import asyncio

import pytest
from kubernetes.aio.client.exceptions import NotFoundException

pytestmark = pytest.mark.cluster


def owned_map(name, owner):
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
    }
    return {"metadata": {"name": name, "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}


async def test_a_deployment_takes_everything_along(workloads, server):
    await workloads.deploy("web", server(), replicas=1)
    await workloads.all_ready("web")
    await workloads.apps.delete_namespaced_deployment("web", workloads.namespace)

    async def left():
        sets = await workloads.apps.list_namespaced_replica_set(workloads.namespace)
        pods = await workloads.core.list_namespaced_pod(workloads.namespace)
        return [*sets.items, *pods.items]

    await workloads.until(left, lambda found: not found)


async def test_one_living_owner_is_enough(workloads):
    core, namespace = workloads.core, workloads.namespace
    first = await core.create_namespaced_config_map(namespace, {"metadata": {"name": "first"}})
    second = await core.create_namespaced_config_map(namespace, {"metadata": {"name": "second"}})
    child = owned_map("child", first)
    child["metadata"]["ownerReferences"] += owned_map("child", second)["metadata"]["ownerReferences"]
    await core.create_namespaced_config_map(namespace, child)
    await core.create_namespaced_config_map(namespace, owned_map("other", first))
    await core.delete_namespaced_config_map("first", namespace)
    # When what has lost its only owner is gone, this pass of the collector is over.
    await workloads.until_gone(lambda: core.read_namespaced_config_map("other", namespace))
    await core.read_namespaced_config_map("child", namespace)
    await core.delete_namespaced_config_map("second", namespace)
    await workloads.until_gone(lambda: core.read_namespaced_config_map("child", namespace))


async def test_a_namespace_is_emptied(workloads, server):
    core = workloads.core
    await workloads.deploy("web", server(), replicas=1)
    await workloads.all_ready("web")
    scratch = (await core.create_namespace({"metadata": {"generateName": "scratch-"}})).metadata.name
    await core.create_namespaced_config_map(scratch, {"metadata": {"name": "content"}})
    await core.delete_namespace(scratch)
    await workloads.until_gone(lambda: core.read_namespace(scratch))
    with pytest.raises(NotFoundException):
        await core.read_namespaced_config_map("content", scratch)
    assert len(await asyncio.wait_for(workloads.pods("web"), 5)) == 1
