"""Observe, plan, apply, one status write: everything from scratch, nothing remembered in between."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dragoman_operator.api.v1alpha1 import parse
from dragoman_operator.core.manifests import Images
from dragoman_operator.core.manifests.metadata import MANAGED_BY, selector
from dragoman_operator.core.observed import (
    CHILD_KINDS,
    EVENT,
    POD,
    TRANSLATION_DEPLOYMENT,
    Kind,
    Observed,
)
from dragoman_operator.core.plan import Change, plan, settled
from dragoman_operator.core.status import Transition, status_of, status_of_bad_spec, transitions
from dragoman_operator.errors import ConflictError, RefusedError, SpecError
from dragoman_operator.kube import Kube

log = logging.getLogger(__name__)

SOON_S = 2.0
"""Until the next look where something is on its way out that sends no event of ours."""
REFUSED_S = 30.0
"""Until the next look where the API server said no: a quota may grow, a policy may change."""
TOLD_LIMIT = 1000
"""Events whose count is remembered."""


class Key(NamedTuple):
    """One TranslationDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Reconciler:
    """Brings one TranslationDeployment's children and status in line with its spec.

    Args:
        kube: The API server.
        images: Engine images where a spec names none.
        resync_s: Until the next look where nothing happens.
        identity: Who we are, in events.
        now: The time.
    """

    def __init__(
        self,
        kube: Kube,
        images: Images,
        resync_s: float,
        identity: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = kube
        self._images = images
        self._resync_s = resync_s
        self._identity = identity
        self._now = now
        self._told: OrderedDict[str, int] = OrderedDict()

    async def __call__(self, key: Key) -> float | None:
        """Look at one object and do what is due.

        Returns:
            Seconds until the next look, or None where the object is gone.

        Raises:
            ClusterError: The API server failed; look again later.
        """
        body = await self._kube.get(TRANSLATION_DEPLOYMENT, key.namespace, key.name)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return None
        observed = await self._observe(key)
        old: dict[str, Any] = body.get("status") or {}
        pause_s = self._resync_s
        try:
            td = parse(body)
            planned = plan(td, self._images, observed)
        except SpecError as error:
            generation = body["metadata"].get("generation", 1)
            new = status_of_bad_spec(generation, str(error), observed, old)
        else:
            refusals = [refusal for change in planned.changes if (refusal := await self._make(change, key))]
            new = status_of(td, observed, planned, old, tuple(refusals))
            if planned.waiting:
                pause_s = min(pause_s, SOON_S)
            elif refusals or planned.obstacles:
                pause_s = min(pause_s, REFUSED_S)
        if new != old:
            await self._kube.write_status(body, new)
            for transition in transitions(old, new):
                await self._tell(body, transition)
        return pause_s

    async def _observe(self, key: Key) -> Observed:
        children, pods = await asyncio.gather(
            asyncio.gather(*(self._kube.get(kind, key.namespace, key.name) for kind in CHILD_KINDS)),
            self._kube.select(POD, key.namespace, selector(key.name)),
        )
        found = zip(CHILD_KINDS, children, strict=True)
        return Observed(
            now=self._now(),
            children={kind: child for kind, child in found if child is not None},
            pods=tuple(pods),
        )

    async def _make(self, change: Change, key: Key) -> str | None:
        """Carry out one change; the API server's refusal is returned, since other changes may still be made."""
        kind, verb = change.kind, "deleted"
        try:
            if change.manifest is None:
                await self._kube.delete(kind, key.namespace, key.name, change.uid or "")
            else:
                verb = await self._apply(kind, change.manifest, change.forced)
        except RefusedError as error:
            log.warning("%s", error, extra={"key": str(key)})
            return str(error)
        log.info("%s %s: %s", verb, kind.name, change.cause, extra={"key": str(key)})
        return None

    async def _apply(self, kind: Kind, manifest: dict[str, Any], forced: dict[str, Any] | None) -> str:
        try:
            if settled(await self._kube.apply(kind, manifest), manifest) or forced is None:
                return "applied"
        except RefusedError:
            if forced is None:
                raise
        metadata = manifest["metadata"]
        await self._kube.merge(kind, metadata["namespace"], metadata["name"], forced)
        return "forced"

    async def _tell(self, body: dict[str, Any], transition: Transition) -> None:
        """Post an event; the same one again counts up instead. Its refusal stops nothing."""
        event = event_of(body, transition, self._now(), self._identity)
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        # Lost in a restart, as in client-go: the count then begins at two.
        count = self._told.pop(name, 1) + 1
        try:
            try:
                await self._kube.create(EVENT, event)
                count = 1
            except ConflictError:
                again = {"count": count, "lastTimestamp": event["lastTimestamp"]}
                await self._kube.merge(EVENT, namespace, name, again)
        except RefusedError as error:
            log.warning("%s", error)
        self._told[name] = count
        if len(self._told) > TOLD_LIMIT:
            self._told.popitem(last=False)


def event_of(body: dict[str, Any], transition: Transition, now: datetime, identity: str) -> dict[str, Any]:
    """The event for a transition; equal transitions of one object have equal names.

    Args:
        body: The TranslationDeployment.
        transition: What changed.
        now: When.
        identity: Which operator saw it.
    Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
    """
    metadata = body["metadata"]
    said = f"{metadata['uid']} {transition.reason} {transition.message}"
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {
            "name": f"{metadata['name']}.{hashlib.sha256(said.encode()).hexdigest()[:16]}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": body["apiVersion"],
            "kind": body["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "type": "Warning" if transition.warning else "Normal",
        "reason": transition.reason,
        "message": transition.message[:1024],
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "source": {"component": MANAGED_BY},
        "reportingComponent": MANAGED_BY,
        "reportingInstance": identity,
    }
