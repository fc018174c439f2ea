"""Events as `kubectl describe` shows them: one object per message, counted when it repeats."""

from __future__ import annotations

import asyncio
import logging
import uuid
from datetime import UTC, datetime

from dragoman_devcluster.errors import LocalClusterError, NotFoundError
from dragoman_devcluster.kube.client import KubeClient
from dragoman_devcluster.kube.resources import EVENTS
from dragoman_devcluster.objects import Key, Manifest, timestamp, uid_of

logger = logging.getLogger(__name__)

REMEMBERED = 1000
"""Messages whose Event is known; older ones start a new Event when they come back."""

MESSAGE_CHARACTERS = 1024
"""What the API takes of a message."""


class EventLog:
    """Writes Events in the order in which they were recorded, while those who recorded them go on.

    A failure to write one is logged and otherwise ignored.

    Args:
        client: The API.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._queue: asyncio.Queue[Manifest] = asyncio.Queue()
        self._known: dict[tuple[str, ...], tuple[Key, int]] = {}

    def put(self, event: Manifest) -> None:
        """Have an Event written, or counted if the same was written before."""
        self._queue.put_nowait(event)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
            except LocalClusterError as error:
                logger.debug("event %s about %s: %s", event["reason"], event["involvedObject"]["name"], error)

    async def _write(self, event: Manifest) -> None:
        about = event["involvedObject"]
        identity = (
            about["uid"],
            about.get("fieldPath", ""),
            event["type"],
            event["reason"],
            event["message"],
        )
        known = self._known.pop(identity, None)
        if known is not None:
            known = await self._count(*known, event["lastTimestamp"])
        if known is None:
            created = await self._client.create(EVENTS, event)
            known = ((created["metadata"]["namespace"], created["metadata"]["name"]), 1)
        self._known[identity] = known
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]

    async def _count(self, key: Key, count: int, moment: str) -> tuple[Key, int] | None:
        try:
            await self._client.patch(EVENTS, key, {"count": count + 1, "lastTimestamp": moment})
        except NotFoundError:
            return None
        return key, count + 1


class EventRecorder:
    """Records what one component has to report.

    Args:
        log: Where Events are written.
        component: Who reports, such as ``kubelet``.
        host: The node's name, for a node's own reports.
    """

    def __init__(self, log: EventLog, component: str, host: str = "") -> None:
        self._log = log
        self._source = {"component": component, **({"host": host} if host else {})}

    def record(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False, field: str = ""
    ) -> None:
        """Report something that happened.

        Args:
            about: The object it happened to.
            reason: One CamelCase word, such as ``Started``.
            message: A sentence, at most 1 kB of it is kept.
            warning: Whether the type is ``Warning`` instead of ``Normal``.
            field: The part of the object, such as ``spec.containers{engine}``.
        """
        metadata = about["metadata"]
        moment = timestamp(datetime.now(UTC))
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace") or "",
            "uid": uid_of(about),
            **({"fieldPath": field} if field else {}),
        }
        event: Manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{uuid.uuid4().hex[:16]}",
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": involved,
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:MESSAGE_CHARACTERS],
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": self._source,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source.get("host", ""),
        }
        self._log.put(event)
