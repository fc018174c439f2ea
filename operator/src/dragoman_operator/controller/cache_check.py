"""Finds what is in kopf's indices and no longer in the cluster.

Where a watch cannot go on, kopf lists anew, and keeps in its indices what vanished meanwhile. A pod that is gone
would count for ever, a Service that is gone would not be made anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError, RefusedError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key
from dragoman_operator.controller.cache import CACHED_KINDS, Cache, version_of
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

log = logging.getLogger(__name__)

SETTLE_S = 5.0
"""Between the first object of a new list and the check: lists of several kinds come together."""


class CacheCheck:
    """Compares the cache with lists of metadata.

    Args:
        kube: The API server.
        cache: What is compared.
        enqueue: Has an object reconciled, something of which is gone.
        namespaces: Those that are served; empty is all.
        every_s: Seconds between two checks where nothing was listed anew.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: Cache,
        enqueue: Callable[[Key], None],
        namespaces: Sequence[str],
        every_s: float,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._enqueue = enqueue
        self._namespaces = namespaces
        self._every_s = every_s
        self._relisted = asyncio.Event()

    def relisted(self) -> None:
        """Something was listed anew."""
        self._relisted.set()

    async def run(self) -> None:
        """Check after each new list and from time to time, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._relisted.wait()
            await asyncio.sleep(SETTLE_S)
            self._relisted.clear()
            await self.check()

    async def check(self) -> None:
        """List everything once; what cannot be listed is left as it is."""
        for namespace in self._namespaces or ("",):
            try:
                for kind in CACHED_KINDS:
                    await self._check(kind, namespace)
                self._cache.unknown.discard(namespace)
            except RefusedError as error:
                log.warning("%s; nothing is decided in this namespace", error)
                self._cache.unknown.add(namespace)
            except ClusterError as error:
                log.warning("the cache was not checked: %s", error)

    async def _check(self, kind: Kind, namespace: str) -> None:
        labels = "" if kind is TRANSLATION_DEPLOYMENT else LABEL_DEPLOYMENT
        listing = await self._kube.list(kind, namespace, labels=labels, metadata_only=True)
        if not listing.resource_version.isdecimal():
            return
        listed = {item["metadata"]["uid"] for item in listing.items}
        gone = [
            (key, found)
            for key, found in self._cache.entries(kind)
            if namespace in ("", key.namespace)
            and found["metadata"]["uid"] not in listed
            and version_of(found) <= int(listing.resource_version)
        ]
        self._cache.ignore(found["metadata"]["uid"] for _, found in gone)
        for key, found in gone:
            log.info("%s %s is gone, though no event said so", kind.name, found["metadata"]["name"])
            self._enqueue(key)
