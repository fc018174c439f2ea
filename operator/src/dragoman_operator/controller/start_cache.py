"""The Secret by which the pods of a TranslationDeployment recognise each other, and the address where they meet.

It is created once and never read: the operator needs no right to read Secrets. With a Secret of another origin in its
place, or none, pods start without the cache of a ready one.
"""

from __future__ import annotations

import logging
import secrets

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.kinds import SECRET, SERVICE
from dragoman_kube.objects import Key
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.controller.cache import Cache
from dragoman_operator.resources.children import start_cache

log = logging.getLogger(__name__)

SECRET_BYTES = 32


class StartCacheSecrets:
    """Creates the Secrets, each once in the life of this process."""

    def __init__(self, kube: KubeClient, cache: Cache) -> None:
        self._kube = kube
        self._cache = cache
        self._created: dict[Key, str] = {}

    async def ensure(self, td: TranslationDeployment) -> None:
        """Create the Secret before pods refer to it, unless it exists; without it they start by themselves.

        Raises:
            ClusterError: The API server failed; retry later.
        """
        key = Key(td.namespace, td.name)
        service = self._cache.get(SERVICE, key) or {}
        address = (service.get("spec") or {}).get("clusterIP")
        if self._created.get(key) == td.uid or not address or address == "None":
            return
        try:
            await self._kube.create(SECRET, start_cache(td, address, secrets.token_hex(SECRET_BYTES)))
        except ConflictError:
            log.debug("the Secret of the start cache exists", extra={"key": str(key)})
        except RefusedError as error:
            log.warning("pods start without the cache of a ready one: %s", error, extra={"key": str(key)})
        self._created[key] = td.uid

    def forget(self, key: Key) -> None:
        """The object was deleted."""
        self._created.pop(key, None)
