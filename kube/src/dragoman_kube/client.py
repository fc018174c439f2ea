"""The Kubernetes client: a few verbs over plain dictionaries, and errors of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
from kubernetes.aio import client

from dragoman_kube.errors import (
    GoneError,
    NotFoundError,
    UnavailableError,
    WriteForbiddenError,
    error_of,
)
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key, Manifest, drop_owned_fields, key_of

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
PAGE = 500
"""Objects of one page of a list."""
SILENCE_S = 5.0
"""A watch that is still open so long after its `timeoutSeconds` has lost its server."""

MAX_RETRIES = 10
"""Of a request that the server throttles, as in client-go."""
UNNAMED_S = 1.0
"""Wait before a retry if `Retry-After` is not a number of seconds."""

Query = Sequence[tuple[str, str]]


class Listing(NamedTuple):
    """A list of objects, and the resourceVersion at which it was true."""

    items: list[Manifest]
    resource_version: str


class KubeClient:
    """Requests to one API server; see `connect`. Each raises `ClusterError` if it fails.

    A request that the server throttles (429 or 5xx with `Retry-After`) was not processed: it is sent again after that
    time, as long as the limit of its time allows.

    Args:
        timeout_s: Maximum time of one request: connecting, signing in, sending and reading.
        field_manager: Owner of the fields that are written; default: chosen by the server.
        write_budget_s: Seconds for which this process may still write; 0 or less forbids it. Read before every
            write, so that a process that was suspended or disconnected cannot write after it has lost its Lease.
    """

    def __init__(
        self,
        api: client.ApiClient,
        timeout_s: float,
        field_manager: str = "",
        write_budget_s: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self._api = api
        self._timeout_s = timeout_s
        self._field_manager = field_manager
        self._write_budget_s = write_budget_s

    def fenced(self, write_budget_s: Callable[[], float]) -> KubeClient:
        """The same client, which writes only while `write_budget_s` allows it."""
        return KubeClient(self._api, self._timeout_s, self._field_manager, write_budget_s)

    async def get(self, kind: Kind, key: Key) -> Manifest | None:
        """One object; None if it does not exist."""
        try:
            return await self.request("GET", kind.path(*key), f"read {kind.name} {key}")
        except NotFoundError:
            return None

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
    ) -> Listing:
        """The objects of a kind, read in pages, without the fields that managers own; see `drop_owned_fields`.

        Without `namespace` in all namespaces.
        """
        attempted = _list_of(kind, namespace)
        selectors = _selectors(labels, fields)
        items: list[Manifest] = []
        page: Query = [("limit", str(PAGE))]
        while True:
            try:
                found = await self.request("GET", kind.path(namespace), attempted, query=[*selectors, *page])
            except GoneError:
                if not page:
                    raise
                items, page = [], []  # The page's token has expired: read everything at once.
                continue
            try:
                metadata = found["metadata"]
                # Items of a list do not repeat their kind; owner references need it.
                typed = {"apiVersion": kind.api_version, "kind": kind.name}
                for item in found["items"] or ():
                    drop_owned_fields(item)
                    items.append({**typed, **item})
                version = str(metadata["resourceVersion"])
            except (KeyError, TypeError) as error:
                raise UnavailableError(attempted, "the response is not a list") from error
            following = metadata.get("continue")
            if not following:
                return Listing(items, version)
            page = [("limit", str(PAGE)), ("continue", following)]

    async def watch(
        self,
        kind: Kind,
        namespace: str,
        resource_version: str,
        *,
        labels: str = "",
        fields: str = "",
        timeout_s: float = 60.0,
    ) -> AsyncGenerator[Manifest, None]:
        """Yield watch events (``type`` and ``object``), bookmarks among them, until the server ends the watch.

        Args:
            kind: The kind.
            namespace: Empty for all namespaces.
            resource_version: Where the watch begins.
            labels: A label selector.
            fields: A field selector.
            timeout_s: After this time the server ends the watch; a connection that stays silent is noticed
                `SILENCE_S` later.

        Raises:
            GoneError: `resource_version` has expired.
            ClusterError: The request failed, or the connection broke.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s + SILENCE_S
        selectors = _selectors(labels, fields)
        async with self._watching(
            kind, namespace, resource_version, selectors, timeout_s, deadline
        ) as response:
            rest = b""
            while True:
                async with asyncio.timeout_at(deadline):
                    chunk = await response.content.readany()
                if not chunk:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        yield _event(_watch_of(kind, namespace), line)

    @asynccontextmanager
    async def _watching(
        self,
        kind: Kind,
        namespace: str,
        resource_version: str,
        selectors: Query,
        timeout_s: float,
        deadline: float,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A watch that the server has accepted, open within the context."""
        attempted = _watch_of(kind, namespace)
        query = [
            *selectors,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(max(1, int(timeout_s)))),
        ]
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._admitted(
                    "GET", kind.path(namespace), query, {"Accept": JSON}, None, deadline
                )
            try:
                if response.status >= 400:
                    async with asyncio.timeout_at(deadline):
                        raise error_of(attempted, response.status, await response.read())
                yield response
            finally:
                _close(response)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise UnavailableError(attempted, _cause(error)) from error

    async def check_readable(self, kind: Kind, namespace: str = "", *, labels: str = "") -> None:
        """List one object and open a watch, which is closed at once.

        Raises:
            RefusedError: The kind may not be listed or watched.
            ClusterError: A request failed.
        """
        selectors = _selectors(labels, "")
        query = [*selectors, ("limit", "1")]
        found = await self.request("GET", kind.path(namespace), _list_of(kind, namespace), query=query)
        try:
            version = str(found["metadata"]["resourceVersion"])
        except (KeyError, TypeError) as error:
            raise UnavailableError(_list_of(kind, namespace), "the response is not a list") from error
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        async with self._watching(kind, namespace, version, selectors, 1.0, deadline):
            """The server has accepted the watch."""

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object in the namespace of its metadata.

        Raises:
            ConflictError: It exists.
        """
        metadata = manifest["metadata"]
        key = Key(metadata.get("namespace") or "", metadata.get("name") or metadata["generateName"])
        return await self.request(
            "POST", kind.path(key.namespace), f"create {kind.name} {key}", body=manifest, query=self._manager
        )

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object, unless it has changed since its resourceVersion.

        Raises:
            ConflictError: It has changed.
        """
        key = key_of(manifest)
        return await self.request(
            "PUT", kind.path(*key), f"replace {kind.name} {key}", body=manifest, query=self._manager
        )

    async def apply(self, kind: Kind, manifest: Manifest, subresource: str = "") -> Manifest:
        """Apply an object or its subresource server-side; fields that other managers took become ours again.

        Returns:
            The object as stored.

        Raises:
            ConflictError: The manifest has a resourceVersion, and the object has changed since.
        """
        key = key_of(manifest)
        return await self.request(
            "PATCH",
            kind.path(*key, subresource),
            f"apply {_target(kind, key, subresource)}",
            query=[*self._manager, ("force", "true")],
            body=manifest,
            content_type=APPLY,
        )

    async def merge(self, kind: Kind, key: Key, fields: Manifest, subresource: str = "") -> Manifest:
        """Change some fields of an object or of its subresource, by a JSON merge patch (RFC 7386).

        Returns:
            The object as stored.
        """
        return await self.request(
            "PATCH",
            kind.path(*key, subresource),
            f"change {_target(kind, key, subresource)}",
            query=self._manager,
            body=fields,
            content_type=MERGE,
        )

    async def delete(self, kind: Kind, key: Key, uid: str, *, grace_s: int | None = None) -> Manifest | None:
        """Delete the object of this uid, and never a successor of its name; its dependents follow.

        `grace_s` replaces the grace period of a pod.

        Returns:
            The server's response: the object while it terminates, or a Status; None if it did not exist.
        """
        options: Manifest = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            return await self.request("DELETE", kind.path(*key), f"delete {kind.name} {key}", body=options)
        except NotFoundError:
            return None

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server serves the kind; for a custom resource, whether its CRD is installed."""
        try:
            found = await self.request("GET", kind.root, f"discover {kind.plural}")
        except NotFoundError:
            return False
        return any(resource["name"] == kind.plural for resource in found.get("resources", ()))

    async def request(
        self,
        method: str,
        path: str,
        attempted: str = "",
        *,
        query: Query = (),
        body: Manifest | None = None,
        content_type: str = JSON,
    ) -> Manifest:
        """Send one request and return the JSON object of its response.

        Args:
            method: HTTP method; all but GET are fenced.
            path: Path of the URL.
            attempted: What the request does, for errors; default: method and path.
            query: Parameters of the query.
            body: JSON.
            content_type: Of the body.

        Raises:
            WriteForbiddenError: This process may not write.
        """
        attempted = attempted or f"{method} {path}"
        content = await self._content(method, path, attempted, query, body, content_type, JSON)
        try:
            parsed = json.loads(content)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise UnavailableError(attempted, "the response is not a JSON object: is this the API server?")
        return parsed

    async def text(self, path: str, attempted: str) -> str:
        """What a path answers that is not JSON, such as a pod's metrics through the API server's proxy."""
        content = await self._content("GET", path, attempted, (), None, JSON, "text/plain")
        return content.decode("utf-8", "replace")

    async def _content(
        self,
        method: str,
        path: str,
        attempted: str,
        query: Query,
        body: Manifest | None,
        content_type: str,
        accept: str,
    ) -> bytes:
        timeout_s = self._timeout_s
        if method != "GET":
            timeout_s = min(timeout_s, self._write_budget_s())
            if timeout_s <= 0:
                raise WriteForbiddenError(attempted, "this process does not hold the Lease")
        headers = {"Accept": accept, "Content-Type": content_type}
        try:
            deadline = asyncio.get_running_loop().time() + timeout_s
            async with asyncio.timeout_at(deadline):
                response = await self._admitted(method, path, query, headers, body, deadline)
                try:
                    status, content = response.status, await response.read()
                finally:
                    _close(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnavailableError(attempted, _cause(error)) from error
        if status >= 400:
            raise error_of(attempted, status, content)
        return content

    @property
    def _manager(self) -> Query:
        return [("fieldManager", self._field_manager)] if self._field_manager else []

    async def _admitted(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        body: Manifest | None,
        deadline: float,
    ) -> aiohttp.ClientResponse:
        """The first response that asks for no retry, or the last one before the deadline."""
        for _ in range(MAX_RETRIES):
            response = await self._send(method, path, query, headers, body)
            pause_s = _retry_after_s(response)
            if pause_s is None or asyncio.get_running_loop().time() + pause_s >= deadline:
                return response
            _close(response)
            await asyncio.sleep(pause_s)
            if method != "GET" and self._write_budget_s() <= 0:
                raise WriteForbiddenError(f"{method} {path}", "this process does not hold the Lease")
        return await self._send(method, path, query, headers, body)

    async def _send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: Manifest | None
    ) -> aiohttp.ClientResponse:
        request = await self._api.param_serialize(
            method, path, {}, list(query), dict(headers), body, auth_settings=["BearerToken"]
        )
        # The callers have deadlines of their own; the default of aiohttp would end long watches.
        response = await self._api.call_api(*request, _request_timeout=aiohttp.ClientTimeout(total=None))
        found: aiohttp.ClientResponse = response.response
        return found


@asynccontextmanager
async def connect(
    configuration: client.Configuration, *, timeout_s: float = 30.0, field_manager: str = ""
) -> AsyncIterator[KubeClient]:
    """A client for the cluster of `configuration`; see `KubeClient` for the arguments."""
    async with client.ApiClient(configuration) as api:
        yield KubeClient(api, timeout_s, field_manager)


def _target(kind: Kind, key: Key, subresource: str) -> str:
    target = f"{kind.name} {key}"
    return f"{subresource} of {target}" if subresource else target


def _list_of(kind: Kind, namespace: str) -> str:
    return f"list {kind.plural} in {namespace or 'all namespaces'}"


def _watch_of(kind: Kind, namespace: str) -> str:
    return f"watch {kind.plural} in {namespace or 'all namespaces'}"


def _selectors(labels: str, fields: str) -> list[tuple[str, str]]:
    selectors = [("labelSelector", labels), ("fieldSelector", fields)]
    return [(name, selector) for name, selector in selectors if selector]


def _event(attempted: str, line: bytes) -> Manifest:
    event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise UnavailableError(attempted, "the response is not a watch event")
    if event.get("type") == "ERROR":
        raise error_of(attempted, int(event["object"].get("code") or 500), json.dumps(event["object"]))
    return event


def _retry_after_s(response: aiohttp.ClientResponse) -> float | None:
    """Seconds after which the server wants a request again; None if it processed the request."""
    named = response.headers.get("Retry-After")
    if named is None or not (response.status == 429 or response.status >= 500):
        return None
    try:
        return max(0.0, float(named))
    except ValueError:
        return UNNAMED_S


def _close(response: aiohttp.ClientResponse) -> None:
    """End a response; if it has not been read to its end, close its connection without the closing messages of TLS.

    Those wait for the server, and the event loop may end earlier, with an open socket.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _cause(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()
