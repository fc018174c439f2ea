"""TranslationDeployments to reconcile, and what became of them, from watches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dragoman_contract.kubernetes import API_VERSION, KIND, LABEL_DEPLOYMENT, PLURAL
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    NETWORK_POLICY,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, Manifest, uid_of
from dragoman_kube.objects import key_of as kube_key_of

NAMESPACE = "bench"
TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)
CHILD_KINDS = (SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET, DEPLOYMENT)
"""Children of each object that `manifest` makes."""
WRITERS = 16
"""Objects that are created at once: more than a kube-apiserver on two cores can serve."""


def key_of(number: int) -> Key:
    """Namespace and name of an object."""
    return Key(NAMESPACE, f"td-{number}")


def manifest(number: int) -> dict[str, Any]:
    """An object; every second one is scaled by load. Its pods need a GPU, so that a local cluster starts none."""
    spec: dict[str, Any] = {
        "model": {"uri": "hf://Qwen/Qwen3-1.7B", "promptFamily": "chatml-generic"},
        "languages": [{"source": "en", "targets": ["de", "fr"]}],
        "engine": {"device": "cuda", "maxNumSeqs": 32},
        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "16Gi"}},
        "replicas": 1,
    }
    if number % 2:
        spec["autoscaling"] = {"minReplicas": 1, "maxReplicas": 3}
    namespace, name = key_of(number)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }


async def create_all(kube: KubeClient, count: int) -> None:
    """Create the objects 0 to `count` as fast as the API server takes them."""
    numbers = iter(range(count))

    async def write() -> None:
        for number in numbers:
            await kube.create(TRANSLATION_DEPLOYMENT, manifest(number))

    await asyncio.gather(*(write() for _ in range(WRITERS)))


class Observed:
    """The objects and their children, as watches report them."""

    def __init__(self, kube: KubeClient) -> None:
        self._mirror = Mirror(kube, [NAMESPACE], resync_s=24 * 3600)
        self._changed = asyncio.Event()
        self.changed_at = time.time()
        """Time of the last change, Unix seconds."""

    def _note(self, _before: Manifest | None, _after: Manifest | None) -> None:
        self.changed_at = time.time()
        self._changed.set()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Watch within the context."""
        for kind in (TRANSLATION_DEPLOYMENT, *CHILD_KINDS):
            labels = "" if kind is TRANSLATION_DEPLOYMENT else LABEL_DEPLOYMENT
            self._mirror.follow(kind, self._note, labels=labels)
        try:
            await self._mirror.synced()
            yield
        finally:
            await self._mirror.aclose()

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """One object."""
        return self._mirror.get(kind, key)

    def children(self) -> int:
        """Number of children."""
        return sum(len(self._mirror.list(kind)) for kind in CHILD_KINDS)

    def uids(self) -> dict[tuple[str, Key], str]:
        """The uid of every child."""
        return {
            (kind.name, kube_key_of(found)): uid_of(found)
            for kind in CHILD_KINDS
            for found in self._mirror.list(kind)
        }

    async def until(self, holds: Callable[[], bool], timeout_s: float) -> float:
        """Wait; the time when it held, Unix seconds.

        Raises:
            TimeoutError: It did not hold in time.
        """
        async with asyncio.timeout(timeout_s):
            while not holds():
                self._changed.clear()
                await self._changed.wait()
        return time.time()

    async def until_quiet(self, quiet_s: float, timeout_s: float) -> None:
        """Wait until nothing has changed for `quiet_s`.

        Raises:
            TimeoutError: Something kept changing.
        """
        async with asyncio.timeout(timeout_s):
            with suppress(TimeoutError):
                while True:
                    self._changed.clear()
                    await asyncio.wait_for(self._changed.wait(), quiet_s)
