"""How the command line reaches a service in a cluster: at its address, or through the API server's proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from kubernetes.aio import client

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME
from dragoman_contract.kubernetes import (
    LABEL_COMPONENT,
    LABEL_PART_OF,
    LOCAL_ADDRESS,
    PART_OF,
    ROUTER_COMPONENT,
)
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.kinds import SERVICE
from dragoman_kube.objects import Key

CONNECT_TIMEOUT_S = 10.0


class NoServiceError(Exception):
    """The cluster has no Service to translate with, or several; the message says what to do."""


class Reached(NamedTuple):
    """A Service.

    Args:
        url: Its address for this machine.
        client: Arguments of `httpx.AsyncClient` for that address.
    """

    url: str
    client: Mapping[str, Any]


async def find(kubeconfig: Path | None, context: str | None, deployment: str) -> Reached:
    """The router's Service, or that of a TranslationDeployment.

    Args:
        kubeconfig: None: as kubectl finds it.
        context: None: the current one.
        deployment: `NAMESPACE/NAME` or `NAME` of a TranslationDeployment; empty: the router.

    Raises:
        NoServiceError: There is no such Service, or there are several.
        ClusterError: The cluster does not answer.
    """
    loaded = await configuration(kubeconfig, context)
    async with connect(loaded, timeout_s=CONNECT_TIMEOUT_S) as cluster:
        if deployment:
            namespace, _, name = deployment.rpartition("/")
            key = Key(namespace or "default", name)
            found: Mapping[str, Any] | None = await cluster.get(SERVICE, key)
            if found is None:
                raise NoServiceError(f"no Service {key}; dragoman status lists the TranslationDeployments")
        else:
            labels = f"{LABEL_PART_OF}={PART_OF},{LABEL_COMPONENT}={ROUTER_COMPONENT}"
            found = only_router((await cluster.list(SERVICE, labels=labels)).items)
    if local := local_url(found):
        return Reached(local, {})
    return Reached(proxy_url(found, str(loaded.host)), {"auth": _Bearer(loaded), "verify": _tls(loaded)})


def only_router(services: list[Any]) -> Mapping[str, Any]:
    """The router's Service for clients among all with its labels.

    Raises:
        NoServiceError: There is none, or there are several.
    """
    # The headless one is for the operator and Prometheus.
    found = [service for service in services if service["spec"].get("clusterIP") != "None"]
    if len(found) == 1:
        only: Mapping[str, Any] = found[0]
        return only
    if not found:
        raise NoServiceError(
            "no router is installed (chart value router.enabled); name a TranslationDeployment with "
            "--deployment NAMESPACE/NAME"
        )
    names = ", ".join(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found)
    raise NoServiceError(f"several routers are installed ({names}); choose one by its --url")


def local_url(service: Mapping[str, Any]) -> str | None:
    """The address of a Service of the devcluster on this machine; None elsewhere."""
    local = (service["metadata"].get("annotations") or {}).get(LOCAL_ADDRESS)
    return f"http://{local}:{_port(service).get('port', ENGINE_PORT)}" if local else None


def proxy_url(service: Mapping[str, Any], api: str) -> str:
    """The address of a Service through the API server at `api`.

    Source: https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/
    """
    metadata, port = service["metadata"], _port(service)
    scheme = "https:" if port.get("appProtocol") == "https" else ""
    name = f"{scheme}{metadata['name']}:{port.get('name', '')}"
    return f"{api.rstrip('/')}/api/v1/namespaces/{metadata['namespace']}/services/{name}/proxy"


def _port(service: Mapping[str, Any]) -> Mapping[str, Any]:
    ports: list[dict[str, Any]] = service["spec"].get("ports") or [{}]
    return next((port for port in ports if port.get("name") == ENGINE_PORT_NAME), ports[0])


class _Bearer(httpx.Auth):
    """The kubeconfig's token, read again when it has expired."""

    def __init__(self, loaded: client.Configuration) -> None:
        self._loaded = loaded

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """See `httpx.Auth`."""
        if token := await self._loaded.get_api_key_with_prefix("BearerToken"):
            request.headers["Authorization"] = token
        yield request


def _tls(loaded: client.Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
    if loaded.cert_file:
        context.load_cert_chain(loaded.cert_file, loaded.key_file)
    if not loaded.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
