"""The local cluster of the tuning bench: operator and routers as the chart installs them, and objects under load."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, CoreV1Api

from dragoman.cluster import Cluster, connect
from dragoman.demo import OPERATOR_NAMESPACE, RELEASE, Say, helm, run
from dragoman_bench.errors import ClusterSetupError
from dragoman_bench.loads import VARIABLE, stream
from dragoman_bench.prompting import COUNTING_TEMPLATE
from dragoman_contract.http import ROUTER_PORT, TRANSLATE_PATH
from dragoman_contract.kubernetes import LABEL_COMPONENT, ROUTER_COMPONENT
from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import ClusterOptions
from dragoman_kube.config import configuration
from dragoman_operator.observed.snapshot import size_of
from dragoman_tune.client import connections, post
from dragoman_tune.closed_loop import Send
from dragoman_tune.requests import Answer, Request

CHECKOUT = Path(__file__).resolve().parents[2]
NAMESPACE = "default"
REPLICAS = 2
"""Each has a GPU of its own."""

POLL_S = 0.5
READY_S = 300.0
CACHE = "compiled"
CLAIM = {
    "metadata": {"name": CACHE},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "50Gi"}}},
}
SCRIPT = {"token_s": 0.006, "slowdown_ratio": 0.02, "load_s": 1.0}
"""Of scripted engines: sequences slow each other down a little, as on a GPU."""


@dataclass(frozen=True)
class Engines:
    """What the engine pods run.

    Args:
        model: Directory of the checkpoint, in the checkout: a pod has a /tmp of its own.
        scripted: Whether they are scripted instead of vLLM; they do not use their GPUs.
    """

    model: Path
    scripted: bool

    def manifest(self, name: str, size: int, replicas: int, tuning: Mapping[str, str]) -> dict[str, Any]:
        """A TranslationDeployment of a fixed number of replicas."""
        engine: dict[str, Any] = {"maxNumSeqs": size}
        spec: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
        if self.scripted:
            # The cache of scripted engines is maxNumSeqs × maxModelLen, unlike that of a GPU: it keeps its default.
            engine["extraArgs"] = SCRIPT
            spec["podTemplate"] = {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]}
        else:
            engine |= {"maxModelLen": 512, "maxNumBatchedTokens": 8192}
        model: dict[str, Any] = {"cache": {"persistentVolumeClaim": CACHE}}
        model |= {
            "uri": f"file://{self.model}",
            "promptFamily": "custom",
            "promptTemplate": COUNTING_TEMPLATE,
        }
        spec |= {"model": model, "engine": engine, "replicas": replicas, "tuning": dict(tuning)}
        spec |= {"languages": [{"source": "en", "targets": ["de"]}], "rollout": {"surge": "Never"}}
        metadata = {"name": name, "namespace": NAMESPACE}
        return {
            "apiVersion": "dragoman.io/v1alpha1",
            "kind": "TranslationDeployment",
            "metadata": metadata,
            "spec": spec,
        }

    def requests(self, seed: int) -> Iterator[Request]:
        """A load without end."""
        return stream(VARIABLE, self.model, None, seed)


@dataclass(frozen=True)
class Stage:
    """The cluster, once operator and routers are ready."""

    kubeconfig: Path
    routers: tuple[str, ...]
    http: aiohttp.ClientSession

    def sender(self, name: str) -> Send:
        """Sends requests to an object, by each router in turn."""
        urls = itertools.cycle([f"{url}/d/{NAMESPACE}/{name}{TRANSLATE_PATH}" for url in self.routers])

        async def send(request: Request) -> Answer:
            body = {
                "text": request.text,
                "source_lang": request.source_lang,
                "target_lang": request.target_lang,
            }
            return await post(self.http, next(urls), body)

        return send

    @asynccontextmanager
    async def deployed(self, manifest: dict[str, Any], say: Say) -> AsyncIterator[Cluster]:
        """An object with all replicas ready; it is deleted at the end, and its pods with it.

        After an error it stays: the cluster is taken down at once.
        """
        async with connect(self.kubeconfig, manifest["metadata"]["name"], NAMESPACE) as cluster:
            await cluster.apply(manifest)
            await until_ready(cluster, manifest, say)
            yield cluster
            await cluster.delete()
            while await cluster.pods():  # noqa: ASYNC110 - pods set no event
                await asyncio.sleep(POLL_S)


async def all_ready(cluster: Cluster, manifest: dict[str, Any]) -> bool:
    """Whether the pods are as many as in the manifest, with its maxNumSeqs, and ready."""
    pods = [pod for pod in await cluster.pods() if pod.metadata and not pod.metadata.deletion_timestamp]
    containers = [[{"args": each.args} for each in (pod.spec and pod.spec.containers) or ()] for pod in pods]
    sizes = [size_of({"spec": {"containers": each}}) for each in containers]
    ready = [
        any(
            each.type == "Ready" and each.status == "True"
            for each in (pod.status and pod.status.conditions) or ()
        )
        for pod in pods
    ]
    spec = manifest["spec"]
    return all(ready) and sizes == [spec["engine"]["maxNumSeqs"]] * spec["replicas"]


async def until_ready(cluster: Cluster, manifest: dict[str, Any], say: Say) -> None:
    """Wait for `all_ready`, and report what pods do meanwhile.

    Raises:
        ClusterSetupError: Not within `READY_S`; the message has the status.
    """
    began_s, reported = time.monotonic(), ""
    while not await all_ready(cluster, manifest):
        if (waited_s := time.monotonic() - began_s) > READY_S:
            message = (await cluster.status()).get("message")
            raise ClusterSetupError(
                f"{cluster.name} is not ready after {waited_s:.0f} s: {message}; see the pods' logs"
            )
        if (loading := ", ".join(await cluster.loading())) != reported and loading:
            say(loading)
            reported = loading
        await asyncio.sleep(POLL_S)
    say(f"{cluster.name} is ready after {time.monotonic() - began_s:.0f} s")


@asynccontextmanager
async def stage(directory: Path, api: str, tick_s: float) -> AsyncIterator[Stage]:
    """A local cluster with the chart in it, meanwhile; its state and logs are in the directory.

    What was compiled stays in it for the next time.
    """
    options = ClusterOptions(dir=directory, api=api, gpus=REPLICAS)
    take_down(directory)  # Of a run that was killed.
    bring_up(options)
    kubeconfig = directory / "kubeconfig"
    values = [f"--set=extraArgs={{--autoscaling-interval-s={tick_s:g}}}", "--set=router.enabled=true"]
    install = [
        "install",
        RELEASE,
        str(CHECKOUT / "charts/dragoman"),
        "--create-namespace",
        "--wait",
        "--timeout=3m",
    ]
    try:
        await asyncio.to_thread(partial(run, helm(kubeconfig, *install, *values), quiet=True))
        async with ApiClient(await configuration(kubeconfig)) as client, connections() as http:
            core: Any = CoreV1Api(client)
            await core.create_namespaced_persistent_volume_claim(NAMESPACE, CLAIM)
            selector = f"{LABEL_COMPONENT}={ROUTER_COMPONENT}"
            pods = (await core.list_namespaced_pod(OPERATOR_NAMESPACE, label_selector=selector)).items
            urls = tuple(f"http://{pod.status.pod_ip}:{ROUTER_PORT}" for pod in pods)
            yield Stage(kubeconfig, urls, http)
    finally:
        await asyncio.to_thread(take_down, options.dir)
