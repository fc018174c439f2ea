"""Namespaces: gives each its default service account, and empties those that are being deleted."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dragoman_devcluster.errors import ConflictError, NotFoundError
from dragoman_devcluster.kube.discovery import discover
from dragoman_devcluster.kube.mirror import Mirror
from dragoman_devcluster.kube.queue import Reconciler
from dragoman_devcluster.kube.resources import NAMESPACES, SERVICE_ACCOUNTS, Resource
from dragoman_devcluster.objects import Key, Manifest, is_deleting, key_of

EMPTYING_S = 0.5
"""How often a namespace that is being deleted is looked at until nothing is left in it."""


class NamespaceController:
    """Looks after namespaces.

    Args:
        mirror: The cluster's objects.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.queue = Reconciler("namespace", self.reconcile)

    def start(self) -> None:
        """Hear of namespaces, and of service accounts that go missing."""
        self._mirror.follow(NAMESPACES, lambda _, new: self.queue.enqueue(key_of(new)) if new else None)
        self._mirror.follow(SERVICE_ACCOUNTS, self._account_changed)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one namespace a step further."""
        namespace = self._mirror.get(NAMESPACES, key)
        if namespace is None:
            return None
        name = key[1]
        if not is_deleting(namespace):
            if self._mirror.get(SERVICE_ACCOUNTS, (name, "default")) is None:
                await self._create_account(name)
            return None
        if not (namespace.get("spec") or {}).get("finalizers"):
            return None
        if await self._empty(name):
            return EMPTYING_S
        body = {**namespace, "spec": {"finalizers": []}}
        with suppress(NotFoundError):
            await self._mirror.client.request("PUT", NAMESPACES.path("", name, "finalize"), body=body)
        return None

    async def _create_account(self, namespace: str) -> None:
        metadata = {"name": "default", "namespace": namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        with suppress(ConflictError):
            await self._mirror.create(SERVICE_ACCOUNTS, account)

    async def _empty(self, namespace: str) -> bool:
        """Delete everything in the namespace; whether anything was still there."""
        resources = [resource for resource in await discover(self._mirror.client) if resource.namespaced]
        left = await asyncio.gather(*(self._delete_all(resource, namespace) for resource in resources))
        return any(left)

    async def _delete_all(self, resource: Resource, namespace: str) -> bool:
        items = (await self._mirror.client.list(resource, namespace)).get("items") or ()
        for item in items:
            if not is_deleting(item):
                await self._mirror.delete(resource, item)
        return bool(items)

    def _account_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        if new is None and old is not None:
            self.queue.enqueue(("", key_of(old)[0]))
