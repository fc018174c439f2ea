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
    """One TranslationDeployment in a Kubernetes cluster, by way of a kubeconfig. Use `connect()`."""

    def __init__(self, api: client.ApiClient, http: aiohttp.ClientSession, name: str, namespace: str) -> None:
        self._api, self._http = api, http
        self.name, self._namespace = name, namespace
        self._objects = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self._object = (GROUP, VERSION, namespace, PLURAL, name)
        self._url: str | None = None

    async def api_kind(self) -> str:
        """`embedded` where the API is the local cluster's own, which its version shows."""
        version = await client.VersionApi(self._api).get_code()
        return "embedded" if version.git_version.endswith("+dragoman") else "kube-apiserver"

    async def has_operator(self) -> bool:
        """Whether the chart is installed, under any name; the CRD alone may be left from an earlier one."""
        labels = f"{LABEL_NAME}=dragoman,{LABEL_COMPONENT}=operator"
        found = await client.AppsV1Api(self._api).list_deployment_for_all_namespaces(label_selector=labels)
        return bool(found.items)

    async def apply(self, manifest: dict[str, Any]) -> None:
        """Apply the TranslationDeployment server-side.

        Raises:
            client.ApiException: The API refused it; its body has the reason.
        """
        await self._objects.patch_namespaced_custom_object(
            *self._object,
            manifest,
            field_manager=FIELD_MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
        )

    async def delete(self) -> None:
        """Delete the TranslationDeployment; a missing one is no error."""
        try:
            await self._objects.delete_namespaced_custom_object(*self._object)
        except client.ApiException as error:
            if error.status != 404:
                raise

    async def status(self) -> dict[str, Any]:
        """The object's status; without conditions before the operator has reconciled it."""
        found: Any = await self._objects.get_namespaced_custom_object(*self._object)
        status: dict[str, Any] = found.get("status", {})
        return status

    async def pods(self) -> list[client.V1Pod]:
        """Its engine pods."""
        selector = f"{LABEL_DEPLOYMENT}={self.name}"
        found: Any = await self._core.list_namespaced_pod(self._namespace, label_selector=selector)
        pods: list[client.V1Pod] = found.items
        return pods

    async def loading(self) -> list[str]:
        """The startup phase of each pod that is not ready yet; empty where pods cannot be reached."""
        phases = []
        for pod in await self.pods():
            if pod.metadata is None or pod.status is None or pod.status.pod_ip is None:
                continue
            address = pod.status.pod_ip
            host = f"[{address}]" if ":" in address else address
            url = f"http://{host}:{ENGINE_PORT}{STARTUP_PATH}"
            try:
                async with self._http.get(url, timeout=aiohttp.ClientTimeout(total=1)) as response:
                    start = await response.json()
            except (aiohttp.ClientError, TimeoutError, ValueError):
                continue
            share = f" {start['progress']:.0%}" if start.get("progress") is not None else ""
            phases.append(f"{pod.metadata.name}: {start['phase']}{share}")
        return phases

    async def local_url(self) -> str | None:
        """Where this machine reaches the Service, which the local cluster publishes; None elsewhere."""
        if self._url is None:
            service = await self._core.read_namespaced_service(self.name, self._namespace)
            annotations = (service.metadata and service.metadata.annotations) or {}
            address = annotations.get(LOCAL_ADDRESS)
            self._url = f"http://{address}:{ENGINE_PORT}" if address else ""
        return self._url or None

    async def translate(self, request: dict[str, Any]) -> str:
        """Send one native request through the Service and return the translation.

        Outside the local cluster the API server's proxy leads to it, so that no port has to be forwarded.

        Raises:
            RefusedForLoad: The service has too much to do.
            RuntimeError: The service answered with another error; the message has it.
        """
        if url := await self.local_url():
            async with self._http.post(url + TRANSLATE_PATH, json=request) as response:
                status, body = response.status, await response.read()
        else:
            service = f"/api/v1/namespaces/{self._namespace}/services/{self.name}"
            path = f"{service}:{ENGINE_PORT_NAME}/proxy{TRANSLATE_PATH}"
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


@asynccontextmanager
async def connect(kubeconfig: Path, name: str, namespace: str) -> AsyncIterator[Cluster]:
    """Open a cluster through the current context of `kubeconfig`, for one TranslationDeployment.

    Each request has a connection of its own: a Service spreads connections over its pods, not requests.
    """
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with (
        client.ApiClient(await configuration(kubeconfig)) as api,
        aiohttp.ClientSession(connector=connector) as http,
    ):
        yield Cluster(api, http, name, namespace)
