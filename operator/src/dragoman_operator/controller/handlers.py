"""kopf watches the TranslationDeployments; every change enqueues a key.

The handler is `kopf.on.event` instead of create, update and resume, which store progress in annotations
and finalizers of the object. A reconciliation compares all objects, so the event needs no details; nothing is written
to the object, and a restart loses nothing. tests/unit/operator/test_kopf_limits.py tests the assumptions about kopf.

kopf retries a refused list for ever, and calls no handler until then; so permissions are checked before its start.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import kopf

from dragoman_contract.kubernetes import GROUP
from dragoman_kube.client import KubeClient
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError, NotFoundError, RefusedError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key, uid_of
from dragoman_operator.controller.cache import CACHED_KINDS, Cache, label_of
from dragoman_operator.errors import OperatorError
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest

log = logging.getLogger(__name__)

BACKOFF_S = 5.0
"""Seconds between attempts of one request, without an end: in an outage the operator exits when it loses its Lease."""
LIST_TIMEOUT_S = 60.0
FINALIZER = f"{GROUP}/never-set"
"""kopf removes its finalizer from every object without a handler for deletion. The default finalizer is shared by all
kopf operators, and others may need it on our objects."""


def registry(
    cache: Cache,
    enqueue: Callable[[Key], None],
    relisted: Callable[[], None],
    start: Callable[[], Awaitable[None]],
    stop: Callable[[], Awaitable[None]],
) -> kopf.OperatorRegistry:
    """An index of TranslationDeployments; every change enqueues a key.

    It is not one of kopf's: those wake the tasks of all objects for each object of the first list, so that the time
    grows with the square of their number.

    Args:
        cache: Is bound to the index.
        enqueue: Enqueues a key.
        relisted: Called for each object from a list; a list does not show deletions.
        start: Called before kopf lists anything; its exceptions end kopf.
        stop: Called when all watches have ended.
    """
    handlers = kopf.OperatorRegistry()

    objects: dict[Key, list[Manifest]] = {}
    cache.bind({TRANSLATION_DEPLOYMENT.plural: objects})

    @kopf.on.startup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def startup(**_: Any) -> None:
        try:
            await start()
        except (OperatorError, ClusterError) as error:
            raise kopf.PermanentError(str(error)) from error

    @kopf.on.cleanup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def cleanup(**_: Any) -> None:
        await stop()

    async def changed(
        type: str | None, namespace: str | None, name: str, uid: str, body: kopf.Body, **_: Any
    ) -> None:
        key = Key(namespace or "", name)
        # kopf handles objects of one name side by side: the deletion of one may follow the creation of the next.
        bodies = [found for found in objects.pop(key, ()) if uid_of(found) != uid]
        if type == "DELETED":
            cache.forget(TRANSLATION_DEPLOYMENT, key, uid)
        else:
            metadata = {field: value for field, value in body["metadata"].items() if field != "managedFields"}
            bodies.append({**body, "metadata": metadata})
        if bodies:
            objects[key] = bodies
        if type is None:
            relisted()
        enqueue(key)

    group, _, version = TRANSLATION_DEPLOYMENT.api_version.rpartition("/")
    kopf.on.event(group, version, TRANSLATION_DEPLOYMENT.plural, registry=handlers)(changed)
    kopf.on.login(registry=handlers)(login)
    return handlers


class NoDiffs(kopf.DiffBaseStorage):
    """No former states to compare with: kopf would copy every object of every event, and no handler takes a diff."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing."""

    def store(self, **_: Any) -> None:
        """Nothing."""


def settings() -> kopf.OperatorSettings:
    """kopf without peering, events, finalizers, and watches of namespaces and CRDs."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.persistence.finalizer = FINALIZER
    chosen.persistence.diffbase_storage = NoDiffs()
    chosen.networking.error_backoffs = itertools.repeat(BACKOFF_S)
    chosen.networking.request_timeout = LIST_TIMEOUT_S
    return chosen


async def login(**_: Any) -> kopf.ConnectionInfo:
    """Cluster and credentials, as of our own client; kopf calls this again when they are refused."""
    loaded = await configuration()
    token = loaded.api_key.get("BearerToken", "").partition(" ")[2]
    return kopf.ConnectionInfo(
        server=loaded.host,
        ca_path=loaded.ssl_ca_cert,
        insecure=not loaded.verify_ssl,
        scheme="Bearer" if token else None,
        token=token or None,
        certificate_path=loaded.cert_file,
        private_key_path=loaded.key_file,
        proxy_url=loaded.proxy,
    )


ADVICE = "grant the operator get, list and watch of it, as docs/how-to/install.md lists them"


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
