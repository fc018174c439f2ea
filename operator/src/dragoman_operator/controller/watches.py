"""Which kinds the operator mirrors, whose reconciliation a change enqueues, and whether the kinds may be read.

kopf watches TranslationDeployments only, and feeds them into the mirror: it runs tasks for each object, which cost most
of the time and memory when it watched the children as well, six for each TranslationDeployment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Listener
from dragoman_kube.errors import NotFoundError, RefusedError, UnavailableError
from dragoman_kube.kinds import POD, REPLICA_SET, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, key_of, labels_of
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT, Manifest

log = logging.getLogger(__name__)

MIRRORED_KINDS = (TRANSLATION_DEPLOYMENT, *CHILD_KINDS, REPLICA_SET, POD)
MAX_CHECKS = 16
"""Kinds whose permissions are checked at once."""
CHECK_RETRY_S = 1.0
"""Time after which a check that the API server did not answer is repeated."""
ADVICE = "grant the operator get, list and watch of it, as docs/how-to/install.md lists them"


def follow(mirror: Mirror, enqueue: Callable[[Key], None]) -> None:
    """Mirror all kinds; `enqueue` is called with each TranslationDeployment that a change concerns."""
    for kind in MIRRORED_KINDS:
        watched = kind is not TRANSLATION_DEPLOYMENT
        mirror.follow(kind, _enqueuing(kind, enqueue), labels=_selector(kind), watched=watched)


def _selector(kind: Kind) -> str:
    """Label selector of the objects of a kind; empty for all."""
    return "" if kind is TRANSLATION_DEPLOYMENT else LABEL_DEPLOYMENT


def _enqueuing(kind: Kind, enqueue: Callable[[Key], None]) -> Listener:
    def changed(before: Manifest | None, after: Manifest | None) -> None:
        for found in (before, after):
            if found is None:
                continue
            if (named := _deployment_of(kind, found)) is not None:
                enqueue(named)
            if kind in CHILD_KINDS:
                # Its label may name another object.
                enqueue(key_of(found))

    return changed


def _deployment_of(kind: Kind, found: Manifest) -> Key | None:
    """The TranslationDeployment that an object is, or that its label names."""
    if kind is TRANSLATION_DEPLOYMENT:
        return key_of(found)
    name = labels_of(found).get(LABEL_DEPLOYMENT)
    return Key(key_of(found).namespace, name) if name else None


def labelled(mirror: Mirror, kind: Kind) -> Iterator[tuple[Key, Manifest]]:
    """The mirrored objects of a kind, by the TranslationDeployment that they are or that their label names."""
    for found in mirror.list(kind):
        if (key := _deployment_of(kind, found)) is not None:
            yield key, found


def feed(mirror: Mirror, change: str | None, body: Manifest) -> None:
    """Store a TranslationDeployment that kopf reports.

    `change` is the type of its watch event; None if the object is from a list, which does not show deletions.
    """
    if change == "DELETED":
        mirror.remove(TRANSLATION_DEPLOYMENT, dict(body))
        return
    mirror.store(TRANSLATION_DEPLOYMENT, dict(body))
    if change is None:
        mirror.relist(TRANSLATION_DEPLOYMENT)


async def readable(kube: KubeClient, namespaces: Sequence[str]) -> list[str]:
    """The managed namespaces in which every kind may be listed and watched.

    Without `namespaces` the whole cluster must be readable. A check that the API server does not answer is repeated by
    itself.

    Raises:
        RefusedError: There is none.
    """
    slots = asyncio.Semaphore(MAX_CHECKS)
    refusals = await asyncio.gather(*(_refusal(kube, slots, each) for each in namespaces or ("",)))
    found = [each for each, refusal in zip(namespaces, refusals, strict=False) if refusal is None]
    refused = [refusal for refusal in refusals if refusal is not None]
    if refused and not found:
        raise refused[-1]
    return found


async def _refusal(kube: KubeClient, slots: asyncio.Semaphore, namespace: str) -> RefusedError | None:
    """Why a kind may not be read in a namespace."""
    checks = (_check(kube, slots, kind, namespace) for kind in MIRRORED_KINDS)
    refusal: RefusedError | None = None
    for error in await asyncio.gather(*checks, return_exceptions=True):
        if isinstance(error, RefusedError):
            reason = f"{error.reason}; {ADVICE}"
            refusal = refusal or RefusedError(error.attempted, reason, error.status, error.code)
        elif error is not None:
            raise error
    if refusal is not None and namespace:
        log.warning("namespace %s is left out: %s", namespace, refusal)
    return refusal


async def _check(kube: KubeClient, slots: asyncio.Semaphore, kind: Kind, namespace: str) -> None:
    """Check one kind until the API server answers: just after a CRD was created, it refuses watches for a moment."""
    while True:
        async with slots:
            try:
                return await kube.check_readable(kind, namespace, labels=_selector(kind))
            except NotFoundError as error:
                return log.warning("%s; it is not watched", error)
            except UnavailableError as error:
                log.warning("waiting: %s", error)
        await asyncio.sleep(CHECK_RETRY_S)
