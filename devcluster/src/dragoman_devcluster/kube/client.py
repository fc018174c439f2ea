"""Requests to the Kubernetes API with plain dictionaries, on the package `kubernetes.aio`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient

from dragoman_devcluster.errors import ApiError, ApiUnreachableError, ConflictError, GoneError, NotFoundError
from dragoman_devcluster.kube.resources import Resource
from dragoman_devcluster.objects import Key, Manifest

MERGE_PATCH = "application/merge-patch+json"

REQUEST_TIMEOUT_S = 30.0
WATCH_S = 300
"""How long one watch lasts before it is renewed; the API server may end it earlier."""

_ERRORS = {404: NotFoundError, 409: ConflictError, 410: GoneError}


class KubeClient:
    """One connection pool to one API server.

    Args:
        api: A client of the package `kubernetes.aio` that knows the address and the credentials.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @classmethod
    async def from_kubeconfig(cls, path: Path) -> KubeClient:
        """Connect as the current context of this kubeconfig file says."""
        return cls(await config.new_client_from_config(config_file=str(path), persist_config=False))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Manifest:
        """Send one request and return the JSON answer.

        Raises:
            ApiError: The API refused; NotFoundError, ConflictError and GoneError for 404, 409 and 410.
            ApiUnreachableError: There was no answer.
        """
        response = await self._send(method, path, query, body, content_type, REQUEST_TIMEOUT_S)
        try:
            text = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachableError(f"{method} {path}: {error!r}") from error
        if response.status >= 400:
            raise error_from(response.status, text)
        return json.loads(text) if text else {}

    async def list(self, resource: Resource, namespace: str = "") -> Manifest:
        """The list object: ``items`` and the ``metadata.resourceVersion`` to watch from."""
        return await self.request("GET", resource.path(namespace))

    async def get(self, resource: Resource, key: Key) -> Manifest:
        """One object as it is now."""
        return await self.request("GET", resource.path(*key))

    async def create(self, resource: Resource, body: Manifest) -> Manifest:
        """Create an object in the namespace that its metadata names."""
        return await self.request("POST", resource.path(body["metadata"].get("namespace", "")), body=body)

    async def patch(self, resource: Resource, key: Key, patch: Manifest, subresource: str = "") -> Manifest:
        """Change an object by a JSON merge patch (RFC 7386)."""
        path = resource.path(*key, subresource)
        return await self.request("PATCH", path, body=patch, content_type=MERGE_PATCH)

    async def delete(self, resource: Resource, key: Key, options: Manifest) -> Manifest:
        """Delete an object; `options` are the fields of ``DeleteOptions``."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return await self.request("DELETE", resource.path(*key), body=body)

    async def watch(self, resource: Resource, resource_version: str) -> AsyncIterator[Manifest]:
        """Yield watch events (``type`` and ``object``) until the server ends the stream.

        Raises:
            GoneError: `resource_version` is too old.
            ApiError: The API refused otherwise.
            ApiUnreachableError: The connection broke.
        """
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_TIMEOUT_S)
        response = await self._send("GET", resource.path(), query, None, "application/json", timeout)
        try:
            if response.status >= 400:
                raise error_from(response.status, await response.read())
            while line := await response.response.content.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise error_from(event["object"].get("code", 500), json.dumps(event["object"]))
                yield event
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiUnreachableError(f"watch of {resource.plural}: {error!r}") from error
        finally:
            response.response.close()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout: float | aiohttp.ClientTimeout,
    ) -> Any:
        request = await self._api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            return await self._api.call_api(*request, _request_timeout=timeout)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachableError(f"{method} {path}: {error!r}") from error


def error_from(status: int, body: str | bytes) -> ApiError:
    """The error that an answer stands for.

    Args:
        status: HTTP status code, 400 or above.
        body: The answer; a ``Status`` object in JSON where the API server wrote it.
    """
    try:
        answer = json.loads(body)
        reason, message = str(answer.get("reason", "")), str(answer.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = "", body.decode(errors="replace") if isinstance(body, bytes) else body
    return _ERRORS.get(status, ApiError)(status, reason, message)
