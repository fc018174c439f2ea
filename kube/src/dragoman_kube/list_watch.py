"""List-watch of one collection of the Kubernetes API, which retries after every failure.

In an outage the known objects are kept: pods serve without their API server. Every `resync_s`, and after the
resourceVersion has expired, the collection is listed again, which finds changes that the watch has missed.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing, suppress

from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Collection
from dragoman_kube.errors import ClusterError, GoneError, NotFoundError, RefusedError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Manifest
from dragoman_kube.work_queue import Backoff

log = logging.getLogger(__name__)

MAX_WATCH_S = 60.0
"""Maximum time of one watch; it also bounds how long a connection without a server goes unnoticed."""
BACKOFF = Backoff(0.2, 10.0)
RESYNC_S = 300.0
SETTLE_S = 5.0
"""Delay of a list that `ListWatch.relist` requests: requests usually come in groups."""


class ListWatch:
    """Keeps a collection current.

    Args:
        namespace: Empty for all namespaces.
        labels: A label selector; empty selects all.
        fields: A field selector; empty selects all.
        resync_s: Seconds until everything is listed again.
        watched: False for a kind whose changes another client reports: it is only listed, first after `resync_s`.
        broken: Called when a list or a watch fails.
        optional: Whether a kind that the server does not serve counts as listed, without objects.

    Attributes:
        listed: Set once the objects are known.
        refused: Whether the last request was refused: the known objects may be outdated.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: Kind,
        collection: Collection,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        resync_s: float = RESYNC_S,
        watched: bool = True,
        broken: Callable[[], None] = lambda: None,
        optional: bool = False,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._client = client
        self._kind = kind
        self._collection = collection
        self.namespace = namespace
        self._labels = labels
        self._fields = fields
        self._resync_s = resync_s
        self._watched = watched
        self._broken = broken
        self._optional = optional
        self._backoff = backoff
        self._version = ""
        """Where the next watch begins; empty: the objects are listed before."""
        self._list_at_s = 0.0
        self._hastened = asyncio.Event()
        self.listed = asyncio.Event()
        self.refused = False

    def relist(self) -> None:
        """List in `SETTLE_S` a kind that is not watched."""
        self._list_at_s = min(self._list_at_s, self._now_s() + SETTLE_S)
        self._hastened.set()

    async def run(self) -> None:
        """List and watch until cancelled."""
        failures = 0
        if not self._watched:
            self._list_at_s = self._now_s() + self._resync_s
            self.listed.set()
        while True:
            try:
                if self._is_due():
                    await self._list()
                await (self._watch() if self._watched else self._wait())
                failures = 0
            except GoneError:
                self._version = ""
                failures += 1
                if failures > 1:
                    await asyncio.sleep(self._delay_s(failures - 1))
            except (ClusterError, KeyError, ValueError) as error:
                failures += 1
                self._failed(error, first=failures == 1)
                await asyncio.sleep(self._delay_s(failures))

    def _is_due(self) -> bool:
        return (self._watched and not self._version) or self._now_s() >= self._list_at_s

    async def _list(self) -> None:
        items, version = await self._client.list(
            self._kind, self.namespace, labels=self._labels, fields=self._fields
        )
        self._collection.replace(items, version, self.namespace)
        self._version = version
        self._list_at_s = self._now_s() + self._resync_s * random.uniform(0.9, 1.1)
        self.refused = False
        self.listed.set()

    async def _watch(self) -> None:
        events = self._client.watch(
            self._kind,
            self.namespace,
            self._version,
            labels=self._labels,
            fields=self._fields,
            timeout_s=max(1.0, min(self._list_at_s - self._now_s(), MAX_WATCH_S)),
        )
        async with aclosing(events):
            async for event in events:
                self._take(event)

    async def _wait(self) -> None:
        """Wait until the next list is due, or is due earlier than it was."""
        self._hastened.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._list_at_s):
                await self._hastened.wait()

    def _failed(self, error: Exception, *, first: bool) -> None:
        self._broken()
        if isinstance(error, RefusedError):
            # The next list shows whether the kind may be read again.
            self.refused, self._version = True, ""
        missing = self._optional and isinstance(error, NotFoundError)
        if missing:
            self.listed.set()
        if first:
            level = logging.DEBUG if missing else logging.WARNING
            log.log(level, "%s: %s; the known objects are kept", self._kind.plural, str(error)[:300])

    def _take(self, event: Manifest) -> None:
        manifest = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._collection.put(manifest)
            case "DELETED":
                self._collection.remove(manifest)
        self._version = str(manifest["metadata"]["resourceVersion"])

    def _delay_s(self, failures: int) -> float:
        return self._backoff.delay_s(failures) * random.uniform(0.8, 1.2)

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()
