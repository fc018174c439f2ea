"""What the demo does in a cluster: apply a TranslationDeployment, follow it, reach its Service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME, STARTUP_PATH, TRANSLATE_PATH
from dragoman_contract.kubernetes import (
    GROUP,
    LABEL_COMPONENT,
    LABEL_DEPLOYMENT,
    LABEL_NAME,
    LOCAL_ADDRESS,
    PLURAL,
    VERSION,
)
from dragoman_kube.config import configuration

FIELD_MANAGER = "dragoman-demo"


class RefusedForLoad(RuntimeError):
    """The service is overloaded: retry later."""


class Cluster:
    """One Kubernetes cluster, seen through a kubeconfig. Use `connect()`."""

    def __init__(self, api: client.ApiClient, http: aiohttp.ClientSession) -> None:
        self._api = api
        self._http = http
        self._objects = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self._urls: dict[tuple[str, str], str | None] = {}

    async def api_kind(self) -> str:
        """`embedded` where the API is the local cluster's own, which its version shows."""
        version = await client.VersionApi(self._api).get_code()
        return "embedded" if version.git_version.endswith("+dragoman") else "kube-apiserver"

    async def has_operator(self) -> bool:
        """Whether the chart is installed, under any name; the CRD alone may be left from an earlier one."""
        labels = f"{LABEL_NAME}=dragoman,{LABEL_COMPONENT}=operator"
        found = await client.AppsV1Api(self._api).list_deployment_for_all_namespaces(label_selector=labels)
        return bool(found.items)

    async def apply(self, manifest: dict[str, Any], namespace: str) -> None:
        """Apply a TranslationDeployment server-side.

        Raises:
            client.ApiException: The API refused it; its body has the reason.
        """
        await self._objects.patch_namespaced_custom_object(
            GROUP,
            VERSION,
            namespace,
            PLURAL,
            manifest["metadata"]["name"],
            manifest,
            field_manager=FIELD_MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
        )

    async def delete(self, name: str, namespace: str) -> None:
        """Delete a TranslationDeployment; a missing one is no error."""
        try:
            await self._objects.delete_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)
        except client.ApiException as error:
            if error.status != 404:
                raise

    async def status(self, name: str, namespace: str) -> dict[str, Any]:
        """The object's status; empty before the operator has seen it."""
        found: Any = await self._objects.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)
        status: dict[str, Any] = found.get("status", {})
        return status

    async def pods(self, name: str, namespace: str) -> list[client.V1Pod]:
        """The engine pods of one TranslationDeployment."""
        found = await self._core.list_namespaced_pod(namespace, label_selector=f"{LABEL_DEPLOYMENT}={name}")
        return found.items

    async def loading(self, name: str, namespace: str) -> list[str]:
        """The startup phase of each pod that is not ready yet; empty where pods cannot be reached."""
        phases = []
        for pod in await self.pods(name, namespace):
            if pod.metadata is None or pod.status is None or pod.status.pod_ip is None:
                continue
            url = f"http://{pod.status.pod_ip}:{ENGINE_PORT}{STARTUP_PATH}"
            try:
                async with self._http.get(url, timeout=aiohttp.ClientTimeout(total=1)) as response:
                    start = await response.json()
            except (aiohttp.ClientError, TimeoutError, ValueError):
                continue
            share = f" {start['progress']:.0%}" if start.get("progress") is not None else ""
            phases.append(f"{pod.metadata.name}: {start['phase']}{share}")
        return phases

    async def local_url(self, name: str, namespace: str) -> str | None:
        """Where this machine reaches the Service, which the local cluster publishes; None elsewhere."""
        if (namespace, name) not in self._urls:
            service = await self._core.read_namespaced_service(name, namespace)
            annotations = (service.metadata and service.metadata.annotations) or {}
            address = annotations.get(LOCAL_ADDRESS)
            self._urls[namespace, name] = f"http://{address}:{ENGINE_PORT}" if address else None
        return self._urls[namespace, name]

    async def translate(self, name: str, namespace: str, request: dict[str, Any]) -> str:
        """Send one native request through the Service and return the translation.

        Outside the local cluster the API server's proxy leads to it, so that no port has to be forwarded.

        Raises:
            RefusedForLoad: The service has too much to do.
            RuntimeError: The service answered with another error; the message has it.
        """
        if url := await self.local_url(name, namespace):
            async with self._http.post(url + TRANSLATE_PATH, json=request) as response:
                status, body = response.status, await response.read()
        else:
            path = f"/api/v1/namespaces/{namespace}/services/{name}:{ENGINE_PORT_NAME}/proxy{TRANSLATE_PATH}"
            headers = {"Content-Type": "application/json"}
            proxied = await self._api.param_serialize(
                "POST", path, header_params=headers, body=request, auth_settings=["BearerToken"]
            )
            answer = await self._api.call_api(*proxied)
            status, body = answer.status, await answer.read()
        if status != 200:
            refusal = RefusedForLoad if is_for_load(status, body) else RuntimeError
            raise refusal(f"{status}: {body.decode('utf-8', 'replace')[:500]}")
        translation: str = json.loads(body)["translation"]
        return translation


def is_for_load(status: int, body: bytes) -> bool:
    """Whether an error means overload, and nothing worse."""
    if status != 503:
        return status == 429
    try:
        return bool(json.loads(body)["error"]["code"] == "overloaded")
    except (ValueError, LookupError, TypeError):
        return False


def session() -> aiohttp.ClientSession:
    """A client that connects anew for each request: a Service spreads connections over its pods, not requests."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))


@asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncIterator[Cluster]:
    """Open a cluster through the current context of `kubeconfig`."""
    async with client.ApiClient(await configuration(kubeconfig)) as api, session() as http:
        yield Cluster(api, http)
