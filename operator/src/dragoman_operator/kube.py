"""The only Kubernetes client of the operator: a few verbs over plain dictionaries, errors in our own tree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from kubernetes.aio import client

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_operator.credentials import configuration
from dragoman_operator.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    NotLeaderError,
    RefusedError,
    UnavailableError,
)
from dragoman_operator.observed.snapshot import EVENT, TRANSLATION_DEPLOYMENT, Kind

Manifest = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Kube:
    """The API server. Use `connect()`.

    Args:
        api: An open client.
        timeout_s: Longest wait for one request.
        write_budget_s: Seconds for which we may still write; 0 forbids it. Asked before every write, so that
            a process that was stopped, or cut off, does not act on a Lease that it lost meanwhile.
    """

    def __init__(
        self,
        api: client.ApiClient,
        timeout_s: float,
        write_budget_s: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self._api = api
        self._timeout_s = timeout_s
        self._write_budget_s = write_budget_s

    def fenced(self, write_budget_s: Callable[[], float]) -> Kube:
        """The same client, writing only while `write_budget_s` allows it."""
        return Kube(self._api, self._timeout_s, write_budget_s)

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """One object, or None where there is none.

        Raises:
            ClusterError: The API server did not answer.
        """
        try:
            return await self._request(
                "GET", _path(kind, namespace, name), f"read {kind.name} {namespace}/{name}"
            )
        except NotFoundError:
            return None

    async def select(self, kind: Kind, namespace: str | None, labels: Mapping[str, str]) -> list[Manifest]:
        """The objects that carry all of `labels`, in one namespace, or in all where it is None.

        Raises:
            ClusterError: The API server did not answer.
        """
        query = [("labelSelector", ",".join(f"{key}={value}" for key, value in labels.items()))]
        path = f"{_root(kind)}/{kind.plural}" if namespace is None else _path(kind, namespace)
        return await self._list(path, f"list {kind.plural} in {namespace or 'all namespaces'}", query)

    async def warnings(self, namespace: str, about: str, reason: str) -> list[Manifest]:
        """The events of type Warning in one namespace, of one reason, about objects of one kind.

        Raises:
            ClusterError: The API server did not answer.
        """
        wanted = f"involvedObject.kind={about},reason={reason},type=Warning"
        path = _path(EVENT, namespace)
        return await self._list(path, f"list events {reason} in {namespace}", [("fieldSelector", wanted)])

    async def _list(self, path: str, attempted: str, query: list[tuple[str, str]]) -> list[Manifest]:
        found = await self._request("GET", path, attempted, query)
        if "items" not in found:
            raise UnavailableError(attempted, "the answer is not a list")
        return [item for item in found["items"] or () if isinstance(item, dict)]

    async def apply(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Write a child server-side; fields that others took from us become ours again.

        Returns:
            The child as it is now.

        Raises:
            RefusedError: The API server said no.
            ClusterError: It did not answer.
        """
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        attempted = f"apply {kind.name} {namespace}/{name}"
        return await self._write("PATCH", _path(kind, namespace, name), attempted, manifest)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Delete the very object that was looked at; one that is gone is no error.

        Raises:
            ClusterError: The API server did not do it.
        """
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._write(
                "DELETE", _path(kind, namespace, name), f"delete {kind.name} {namespace}/{name}", body
            )
        except NotFoundError:
            return

    async def write_status(self, seen: Manifest, status: Manifest) -> None:
        """Write the status of a TranslationDeployment, unless the object changed since it was `seen`.

        Raises:
            ConflictError: It changed.
            ClusterError: The API server did not do it.
        """
        kind, metadata = TRANSLATION_DEPLOYMENT, seen["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "status": status,
        }
        path = f"{_path(kind, namespace, name)}/status"
        await self._write("PATCH", path, f"write the status of {namespace}/{name}", body)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object.

        Raises:
            ConflictError: It exists.
            ClusterError: The API server did not do it.
        """
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        attempted = f"create {kind.name} {namespace}/{name}"
        return await self._write("POST", _path(kind, namespace), attempted, manifest)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object, unless it changed since its resourceVersion.

        Raises:
            ConflictError: It changed.
            ClusterError: The API server did not do it.
        """
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        attempted = f"replace {kind.name} {namespace}/{name}"
        return await self._write("PUT", _path(kind, namespace, name), attempted, manifest)

    async def merge(self, kind: Kind, namespace: str, name: str, fields: Manifest) -> Manifest:
        """Change some fields of an object.

        Returns:
            The object as it is now.

        Raises:
            ClusterError: The API server did not do it.
        """
        attempted = f"change {kind.name} {namespace}/{name}"
        return await self._write("PATCH", _path(kind, namespace, name), attempted, fields, MERGE)

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows the kind; for ours, whether the CRD is installed.

        Raises:
            ClusterError: The API server did not answer.
        """
        try:
            found = await self._request("GET", _root(kind), f"look for {kind.plural}")
        except NotFoundError:
            return False
        return any(resource["name"] == kind.plural for resource in found.get("resources", ()))

    async def _write(
        self, method: str, path: str, attempted: str, body: Manifest, content_type: str = APPLY
    ) -> Manifest:
        budget_s = self._write_budget_s()
        if budget_s <= 0:
            raise NotLeaderError(attempted, "this operator does not hold the Lease")
        query = [("fieldManager", FIELD_MANAGER)] if method != "DELETE" else []
        if method == "PATCH" and content_type == APPLY:
            query.append(("force", "true"))
        return await self._request(
            method, path, attempted, query, body, content_type, min(budget_s, self._timeout_s)
        )

    async def _request(
        self,
        method: str,
        path: str,
        attempted: str,
        query: list[tuple[str, str]] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> Manifest:
        headers = {
            "Accept": "application/json",
            "Content-Type": content_type if method == "PATCH" else "application/json",
        }
        try:
            # One deadline over all of it: connecting, signing in and reading.
            async with asyncio.timeout(timeout_s or self._timeout_s):
                request = await self._api.param_serialize(
                    method, path, {}, query, headers, body, auth_settings=["BearerToken"]
                )
                response = await self._api.call_api(*request)
                content = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnavailableError(attempted, f"{type(error).__name__} {error}".strip()) from error
        if response.status >= 400:
            raise _refusal(attempted, response.status, content)
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise UnavailableError(attempted, "the answer is not a JSON object: is this the API server?")
        return answer


@asynccontextmanager
async def connect(timeout_s: float) -> AsyncIterator[Kube]:
    """A client for the cluster that the environment names: KUBECONFIG, ~/.kube/config, or the pod's own.

    Args:
        timeout_s: Longest wait for one request.

    Raises:
        ClusterError: No cluster is named, or its credentials cannot be read.
    """
    async with client.ApiClient(await configuration()) as api:
        yield Kube(api, timeout_s)


def _root(kind: Kind) -> str:
    return f"/{'apis' if '/' in kind.api_version else 'api'}/{kind.api_version}"


def _path(kind: Kind, namespace: str, name: str | None = None) -> str:
    collection = f"{_root(kind)}/namespaces/{namespace}/{kind.plural}"
    return collection if name is None else f"{collection}/{name}"


def _refusal(attempted: str, status: int, content: bytes) -> ClusterError:
    """The error that an HTTP status of the API server stands for.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
    """
    text = content.decode("utf-8", "replace")
    try:
        reason = str(json.loads(text).get("message") or text)
    except (ValueError, AttributeError):
        reason = text
    reason = f"{reason[:1000]} ({status})"
    match status:
        case 404:
            return NotFoundError(attempted, reason)
        case 409:
            return ConflictError(attempted, reason)
        case 408 | 429:
            return UnavailableError(attempted, reason)
        case _ if status >= 500:
            return UnavailableError(attempted, reason)
    return RefusedError(attempted, reason)
