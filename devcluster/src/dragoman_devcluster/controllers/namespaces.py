"""Namespaces: creates their default service accounts, and empties those that are being deleted."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dragoman_devcluster.controllers.controller import discover, work_queue
from dragoman_kube.errors import ConflictError, NotFoundError
from dragoman_kube.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, Manifest, is_deleting, key_of

EMPTYING_S = 0.5
"""Interval between attempts to empty a namespace that is being deleted."""


class NamespaceController:
    """Reconciles namespaces."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.queue = work_queue("namespace")

    def start(self) -> None:
        """Follow namespaces and service accounts."""
        self._mirror.follow(NAMESPACE, lambda _, new: self.queue.add(key_of(new)) if new else None)
        self._mirror.follow(SERVICE_ACCOUNT, self._account_changed)

    async def reconcile(self, key: Key) -> float | None:
        """Create the service account of one namespace, or continue its deletion."""
        namespace = self._mirror.get(NAMESPACE, key)
        if namespace is None:
            return None
        name = key[1]
        if not is_deleting(namespace):
            if self._mirror.get(SERVICE_ACCOUNT, Key(name, "default")) is None:
                await self._create_account(name)
            return None
        if not (namespace.get("spec") or {}).get("finalizers"):
            return None
        if await self._empty(name):
            return EMPTYING_S
        body = {**namespace, "spec": {"finalizers": []}}
        with suppress(NotFoundError):
            await self._mirror.client.request("PUT", NAMESPACE.path("", name, "finalize"), body=body)
        return None

    async def _create_account(self, namespace: str) -> None:
        metadata = {"name": "default", "namespace": namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        with suppress(ConflictError):
            await self._mirror.create(SERVICE_ACCOUNT, account)

    async def _empty(self, namespace: str) -> bool:
        """Delete everything in the namespace; whether anything was still there."""
        kinds = [kind for kind in await discover(self._mirror.client) if kind.namespaced]
        left = await asyncio.gather(*(self._delete_all(kind, namespace) for kind in kinds))
        return any(left)

    async def _delete_all(self, kind: Kind, namespace: str) -> bool:
        items = (await self._mirror.client.list(kind, namespace)).items
        for item in items:
            if not is_deleting(item):
                await self._mirror.delete(kind, item)
        return bool(items)

    def _account_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        if new is None and old is not None:
            self.queue.add(Key("", key_of(old).namespace))
