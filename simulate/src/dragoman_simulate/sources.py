"""Reads what pods have measured: metrics of a file or an address, or of a deployment's pods in a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from dragoman_contract.http import ENGINE_PORT, METRICS_PATH
from dragoman_contract.kubernetes import API_VERSION, KIND, LABEL_DEPLOYMENT, LOCAL_ADDRESS, PLURAL
from dragoman_kube.client import KubeClient, connect
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import POD, SERVICE, Kind
from dragoman_kube.objects import Key
from dragoman_simulate.errors import MetricsPageError, SimulateError

TIMEOUT_S = 10.0
TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)


class Deployed(NamedTuple):
    """A TranslationDeployment, and the metrics page of each ready pod by its name."""

    manifest: Mapping[str, Any]
    pages: Mapping[str, str]


def page(place: str) -> str:
    """The metrics page at a URL or in a file.

    Raises:
        MetricsPageError: It cannot be read.
    """
    if place.startswith(("http://", "https://")):
        return asyncio.run(_fetched(place))
    try:
        return Path(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MetricsPageError(f"{place}: cannot be read: {error}") from error


async def _fetched(url: str) -> str:
    url = url.rstrip("/")
    url = url if url.endswith(METRICS_PATH) else url + METRICS_PATH
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session,
            session.get(url) as response,
        ):
            if response.status != 200:
                raise MetricsPageError(f"{url} answers with status {response.status}")
            return await response.text()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise MetricsPageError(f"{url}: cannot be read: {type(error).__name__} {error}") from error


def deployed(name: str, kubeconfig: Path | None, context: str | None) -> Deployed:
    """The TranslationDeployment `[NAMESPACE/]NAME` and what its pods have measured.

    Raises:
        SimulateError: It does not exist, has no ready pod, or the cluster does not answer.
    """
    try:
        return asyncio.run(_deployed(name, kubeconfig, context))
    except ClusterError as error:
        raise SimulateError(str(error)) from error


async def _deployed(name: str, kubeconfig: Path | None, context: str | None) -> Deployed:
    namespace, _, name = name.rpartition("/")
    key = Key(namespace or "default", name)
    async with connect(await configuration(kubeconfig, context), timeout_s=TIMEOUT_S) as cluster:
        manifest = await cluster.get(TRANSLATION_DEPLOYMENT, key)
        if manifest is None:
            raise SimulateError(f"no TranslationDeployment {key}; dragoman status lists all")
        service = await cluster.get(SERVICE, key) or {"metadata": {}}
        is_local = LOCAL_ADDRESS in (service["metadata"].get("annotations") or {})
        pods = await cluster.list(POD, key.namespace, labels=f"{LABEL_DEPLOYMENT}={name}")
        ready = [pod for pod in pods.items if _is_ready(pod)]
        if not ready:
            raise SimulateError(f"{key} has no ready pod: nothing is measured")
        pages = await asyncio.gather(*(_page(cluster, pod, is_local) for pod in ready))
    names = [pod["metadata"]["name"] for pod in ready]
    return Deployed(manifest, dict(zip(names, pages, strict=True)))


async def _page(cluster: KubeClient, pod: Mapping[str, Any], is_local: bool) -> str:
    """A pod's page: at its address where this machine is the cluster, else through the API server's proxy."""
    if is_local:
        return await _fetched(f"http://{pod['status']['podIP']}:{ENGINE_PORT}")
    metadata = pod["metadata"]
    proxy = f"{metadata['name']}:{ENGINE_PORT}/proxy{METRICS_PATH}"
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{proxy}"
    return await cluster.text(path, f"read the metrics of pod {metadata['namespace']}/{metadata['name']}")


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
