"""Lists and watches one collection of the Kubernetes API, and keeps on through everything that may happen to it.

An outage changes nothing that is known: pods serve without their API server. After one, and every `resync_s`, the
collection is listed anew, which finds what the watch missed.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

import aiohttp
from kubernetes.aio import client

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
PAGE = 500
REQUEST_TIMEOUT_S = 30.0
LONGEST_WATCH_S = 60.0
"""A watch whose server fell silent without closing it is noticed after so long, and `SILENCE_S`."""
SILENCE_S = 5.0
GONE = 410


class Sink(Protocol):
    """Who is told what the collection holds."""

    def replace(self, items: list[Manifest]) -> None:
        """It holds these, and no others."""

    def put(self, item: Manifest) -> None:
        """It holds this one, as it is now."""

    def remove(self, item: Manifest) -> None:
        """It no longer holds this one."""


class WatchExpiredError(Exception):
    """The API server no longer knows the version from which a watch was to go on."""


class ListWatch:
    """One collection.

    Args:
        api: An open client.
        path: Such as `/apis/discovery.k8s.io/v1/endpointslices`.
        labels: A label selector; empty selects all.
        sink: Told what there is.
        resync_s: Seconds after which everything is listed anew.
        broken: Called when a list or a watch broke off.
    """

    def __init__(
        self,
        api: client.ApiClient,
        path: str,
        labels: str,
        sink: Sink,
        resync_s: float,
        broken: Callable[[], None],
    ) -> None:
        self._api = api
        self._path = path
        self._labels = labels
        self._sink = sink
        self._resync_s = resync_s
        self._broken = broken
        self._chance = Random()
        self.listed = asyncio.Event()

    async def run(self) -> None:
        """List and watch until cancelled."""
        pause_s, version = FIRST_PAUSE_S, ""
        list_at_s = 0.0
        loop = asyncio.get_running_loop()
        while True:
            try:
                if not version or loop.time() >= list_at_s:
                    version = await self._list()
                    list_at_s = loop.time() + self._resync_s * self._chance.uniform(0.9, 1.1)
                    self.listed.set()
                version = await self._watch(version, max(1.0, list_at_s - loop.time()))
                pause_s = FIRST_PAUSE_S
                continue
            except WatchExpiredError:
                version = ""
                continue
            except (
                aiohttp.ClientError,
                OSError,
                TimeoutError,
                ValueError,
                KeyError,
                client.ApiException,
            ) as error:
                self._broken()
                if pause_s == FIRST_PAUSE_S:
                    reason = f"{type(error).__name__} {error}".strip()[:200]
                    log.warning("%s: %s; what is known stays", self._path, reason)
            await asyncio.sleep(pause_s * self._chance.uniform(0.8, 1.2))
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _list(self) -> str:
        """List everything; the version that it has."""
        items: list[Manifest] = []
        query = [("limit", str(PAGE))]
        while True:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                response = await self._get(query)
                try:
                    content = await response.read()
                finally:
                    response.close()
            if response.status == GONE:
                items, query = [], []  # A page's token expired: take all at once.
                continue
            if response.status != 200:
                raise OSError(f"status {response.status}")
            page = json.loads(content)
            items += page.get("items") or []
            version = str(page["metadata"]["resourceVersion"])
            following = page["metadata"].get("continue")
            if not following:
                self._sink.replace(items)
                return version
            query = [("limit", str(PAGE)), ("continue", following)]

    async def _watch(self, version: str, for_s: float) -> str:
        """Watch from a version on, until the server ends it; the version then."""
        lasts_s = max(1.0, min(for_s, LONGEST_WATCH_S))
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(int(lasts_s))),
        ]
        async with asyncio.timeout(lasts_s + SILENCE_S):
            response = await self._get(query)
            try:
                if response.status == GONE:
                    raise WatchExpiredError
                if response.status != 200:
                    raise OSError(f"status {response.status}")
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if line:
                            version = self._take(json.loads(line)) or version
            finally:
                response.close()
        return version

    def _take(self, event: Manifest) -> str:
        kind, item = event["type"], event["object"]
        match kind:
            case "ADDED" | "MODIFIED":
                self._sink.put(item)
            case "DELETED":
                self._sink.remove(item)
            case "ERROR":
                if item.get("code") == GONE:
                    raise WatchExpiredError
                raise OSError(f"watch: {item.get('message', 'error')}")
        return str((item.get("metadata") or {}).get("resourceVersion") or "")

    async def _get(self, query: list[tuple[str, str]]) -> Any:
        if self._labels:
            query = [*query, ("labelSelector", self._labels)]
        request = await self._api.param_serialize(
            "GET", self._path, {}, query, {"Accept": "application/json"}, auth_settings=["BearerToken"]
        )
        # Over the client's own limit on time: how long a watch lasts is said by its query.
        response = await self._api.call_api(*request, _request_timeout=aiohttp.ClientTimeout(total=None))
        return response.response
