"""Checks permissions before the start: kopf retries a refused list for ever, and calls no handler until then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import NotFoundError, RefusedError
from dragoman_kube.kinds import Kind
from dragoman_operator.controller.cache import CACHED_KINDS, label_of

log = logging.getLogger(__name__)

ADVICE = "grant the operator get, list and watch of it, as docs/install.md lists them"


async def readable(kube: KubeClient, namespaces: Sequence[str]) -> list[str]:
    """The managed namespaces in which every kind may be listed and watched.

    Without `namespaces` the whole cluster must be readable.

    Raises:
        RefusedError: There is none.
        ClusterError: The API server did not answer.
    """
    found: list[str] = []
    refusal: RefusedError | None = None
    for namespace in namespaces or ("",):
        try:
            await asyncio.gather(*(_watch_once(kube, kind, namespace) for kind in CACHED_KINDS))
        except RefusedError as error:
            refusal = RefusedError(error.attempted, f"{error.reason}; {ADVICE}", error.status, error.code)
            if namespace:
                log.warning("namespace %s is left out: %s", namespace, refusal)
        else:
            found.append(namespace)
    if refusal is not None and not found:
        raise refusal
    return [namespace for namespace in found if namespace]


async def _watch_once(kube: KubeClient, kind: Kind, namespace: str) -> None:
    labels = label_of(kind)
    attempted = f"list {kind.plural} in {namespace or 'all namespaces'}"
    query = [("limit", "1"), ("labelSelector", labels)]
    try:
        found = await kube.request("GET", kind.path(namespace), attempted, query=query)
        version = str(found["metadata"]["resourceVersion"])
        async with aclosing(kube.watch(kind, namespace, version, labels=labels, timeout_s=1)) as events:
            async for _ in events:
                return
    except NotFoundError as error:
        log.warning("%s; it is not watched", error)
