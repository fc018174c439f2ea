"""The local node as a whole: GPUs, the pods' credentials, and that nothing outlives it."""

import asyncio
import os
import signal
from typing import Any

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import CoreV1Api, RbacAuthorizationV1Api

from dragoman_devcluster.cluster import LocalCluster
from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.state import born

pytestmark = pytest.mark.cluster

SLEEP = {"name": "main", "image": "none", "command": ["python", "-S", "-c", "import time; time.sleep(300)"]}


async def until(read, holds, timeout_s=30.0):
    """Read again and again until what is read holds."""
    async with asyncio.timeout(timeout_s):
        while True:
            if holds(found := await read()):
                return found
            await asyncio.sleep(0.05)


def pids(directory):
    """Processes that were started with the directory among their arguments or their environment."""
    mark, found = str(directory).encode(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                with (
                    open(f"/proc/{entry.name}/cmdline", "rb") as line,
                    open(f"/proc/{entry.name}/environ", "rb") as env,
                ):
                    mine = mark in line.read() + env.read()
            except OSError:
                continue
            if mine and born(int(entry.name)) is not None:
                found.append(int(entry.name))
    return found


async def test_gpus_are_counted_and_assigned(tmp_path, api_kind):
    async with (
        LocalCluster(ClusterOptions(dir=tmp_path, api=api_kind, gpus=2)) as cluster,
        await cluster.client() as api,
    ):
        core: Any = CoreV1Api(api)
        show = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(300)"
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        for name in ("a", "b", "c"):
            container = {**SLEEP, "command": ["python", "-S", "-c", show], "resources": limits}
            spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
            body = {"metadata": {"name": name}, "spec": spec}
            await until(lambda: core.list_namespaced_service_account("default"), lambda found: found.items)
            await core.create_namespaced_pod("default", body)
        pod = await until(
            lambda: core.read_namespaced_pod("c", "default"), lambda found: found.status.conditions
        )
        [condition] = pod.status.conditions
        assert (condition.type, condition.reason) == ("PodScheduled", "Unschedulable")
        assert condition.message == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."

        async def devices():
            logs = [tmp_path / "logs" / "default" / name / "main.log" for name in ("a", "b")]
            return {log.read_text().strip() for log in logs if log.exists()}

        await until(devices, lambda found: found == {"0", "1"})
        await core.delete_namespaced_pod("a", "default")
        await until(
            lambda: core.read_namespaced_pod("c", "default"), lambda found: found.status.phase == "Running"
        )
        node = await core.read_node("local")
        assert node.status.capacity["nvidia.com/gpu"] == "2"


async def test_a_killed_supervisor_leaves_no_process(tmp_path, api_kind):
    supervisor = await asyncio.to_thread(bring_up, ClusterOptions(dir=tmp_path, api=api_kind, gpus=0))
    try:
        kubeconfig = str(tmp_path / "kubeconfig")
        async with await config.new_client_from_config(config_file=kubeconfig, persist_config=False) as api:
            core: Any = CoreV1Api(api)
            await until(lambda: core.list_namespaced_service_account("default"), lambda found: found.items)
            sleep = "import time; time.sleep(300)"
            nested = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', '{sleep}'])"
            mark = [{"name": "MARK", "value": str(tmp_path)}]
            container = {**SLEEP, "command": ["python", "-S", "-c", nested], "env": mark}
            body = {"metadata": {"name": "deep"}, "spec": {"containers": [container]}}
            await core.create_namespaced_pod("default", body)
            await until(
                lambda: core.read_namespaced_pod("deep", "default"),
                lambda found: found.status.phase == "Running",
            )
        assert pids(tmp_path)
        supervisor.send(signal.SIGKILL)

        async def left():
            return pids(tmp_path)

        await until(left, lambda found: not found, timeout_s=10)
    finally:
        await asyncio.to_thread(take_down, tmp_path)


async def test_pods_reach_the_api_as_their_service_account(workloads, cluster):
    core, namespace = workloads.core, workloads.namespace
    await core.create_namespaced_service_account(namespace, {"metadata": {"name": "reader"}})
    rbac: Any = RbacAuthorizationV1Api(workloads.api)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    await rbac.create_namespaced_role(namespace, {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    await rbac.create_namespaced_role_binding(namespace, binding)
    await core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "open"}, "data": {"word": "sesame"}}
    )
    source = """
import os
from kubernetes import client, config
config.load_kube_config()
core, namespace = client.CoreV1Api(), os.environ["NAMESPACE"]
print(core.read_namespaced_config_map("open", namespace).data["word"])
try:
    core.list_namespaced_secret(namespace)
    print("secrets too")
except client.ApiException as error:
    print(error.status)
"""
    env = [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    container = {"name": "main", "image": "none", "command": ["python", "-c", source], "env": env}
    await workloads.run("client", container, serviceAccountName="reader", restartPolicy="Never")
    ended = ("Succeeded", "Failed")
    await workloads.until(lambda: workloads.pod("client"), lambda found: found.status.phase in ended)
    lines = (cluster.dir / "logs" / namespace / "client" / "main.log").read_text().split("\n")
    assert lines[0] == "sesame"
    if cluster.api == "kube-apiserver":
        assert lines[1] == "403"
