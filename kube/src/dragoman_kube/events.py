"""Events as `kubectl describe` shows them: one object per message, which counts up when it repeats."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError, ConflictError, NotFoundError, RefusedError
from dragoman_kube.kinds import EVENT
from dragoman_kube.objects import Key, Manifest, key_of, uid_of
from dragoman_kube.times import timestamp

log = logging.getLogger(__name__)

MAX_COUNTS = 1000
"""Events whose count is stored. The count of any other begins at two, as in client-go."""
MAX_MESSAGE_CHARACTERS = 1024
"""The API's limit."""


class EventRecorder:
    """Reports what one component does to objects.

    Args:
        component: The component, such as ``kubelet``.
        host: The node, for a component of a node.
    """

    def __init__(self, writer: EventWriter, component: str, instance: str = "", host: str = "") -> None:
        self._writer = writer
        self._component = component
        self._instance = instance
        self._host = host

    def record(
        self,
        about: Mapping[str, Any],
        reason: str,
        message: str,
        *,
        warning: bool = False,
        field_path: str = "",
        now: datetime | None = None,
    ) -> None:
        """Enqueue an event; `EventWriter.run` writes it.

        Args:
            about: The object it concerns.
            reason: One CamelCase word, such as ``Started``.
            message: A sentence; the first `MAX_MESSAGE_CHARACTERS` are kept.
            warning: Whether its type is ``Warning`` instead of ``Normal``.
            field_path: The part of the object, such as ``spec.containers{engine}``.
            now: When it happened; default: now.
        """
        kind = "Warning" if warning else "Normal"
        message = message[:MAX_MESSAGE_CHARACTERS]
        metadata = about["metadata"]
        identity = "\n".join((uid_of(about), field_path, kind, reason, message))
        moment = timestamp(now or datetime.now(UTC))
        event: Manifest = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {
                "name": f"{metadata['name']}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}",
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace") or "",
                "uid": uid_of(about),
                "resourceVersion": metadata.get("resourceVersion") or "",
                "fieldPath": field_path,
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": self._component, "host": self._host},
            "reportingComponent": self._component,
            "reportingInstance": self._instance or self._host,
        }
        self._writer.put(event)


class EventWriter:
    """Writes events in the order in which they were recorded, in a task of its own."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._queue: asyncio.Queue[Manifest] = asyncio.Queue()
        self._counts: OrderedDict[Key, int] = OrderedDict()

    def put(self, event: Manifest) -> None:
        """Enqueue an event."""
        self._queue.put_nowait(event)

    async def run(self) -> None:
        """Write until cancelled. An event that cannot be written is logged and dropped."""
        while True:
            event = await self._queue.get()
            try:
                await self.write(event)
            except ClusterError as error:
                level = logging.WARNING if isinstance(error, RefusedError) else logging.INFO
                log.log(level, "%s", error)

    async def write(self, event: Manifest) -> None:
        """Create an event, or count up the one that has its name.

        Raises:
            ClusterError: The request failed.
        """
        key, again = key_of(event), {"lastTimestamp": event["lastTimestamp"]}
        count = self._counts.pop(key, 0) + 1
        try:
            if count == 1:
                await self._client.create(EVENT, event)
            else:
                await self._client.merge(EVENT, key, {"count": count, **again})
        except ConflictError:  # An earlier process has created it.
            count = 2
            await self._client.merge(EVENT, key, {"count": count, **again})
        except NotFoundError:  # It has expired.
            count = 1
            await self._client.create(EVENT, event)
        self._counts[key] = count
        if len(self._counts) > MAX_COUNTS:
            self._counts.popitem(last=False)
