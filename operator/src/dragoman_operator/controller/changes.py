"""Carries out the planned changes of children, and remembers what the API server made of them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.kinds import SECRET, SERVICE, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, as_applied, controller_of, uid_of
from dragoman_operator.observed.drift import Applied
from dragoman_operator.observed.snapshot import Manifest
from dragoman_operator.resources.children import with_address
from dragoman_operator.resources.plan import Change, is_in_sync

log = logging.getLogger(__name__)

SECRET_BYTES = 32


class Changes:
    """Writes children. What it remembers is lost in a restart, which costs a few more writes.

    Attributes:
        applied: The last applied manifests that webhooks changed.
        unlabelled: Children that exist without our label, so that the mirror does not have them.
        start_caches: The Secrets of start caches as far as they are known: the operator has no right to read them. One
            without an owner was in the way of a creation.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.applied: dict[Key, dict[Kind, Applied]] = {}
        self.unlabelled: dict[Key, set[Kind]] = {}
        self.start_caches: dict[Key, Manifest] = {}

    def forget(self, key: Key) -> None:
        """The object was deleted."""
        self.applied.pop(key, None)
        self.unlabelled.pop(key, None)
        self.start_caches.pop(key, None)

    async def make(self, key: Key, change: Change, found: Manifest | None) -> str | None:
        """Make one change; a refusal of the API server is returned, so that the other changes are still made.

        Args:
            key: The TranslationDeployment.
            change: The change.
            found: The child as observed; without one it is created. An apply would take over an object of another
                owner that has its name.

        Raises:
            ConflictError: The child exists; the next reconciliation reads it.
            ClusterError: The API server failed; retry later.
        """
        kind, verb = change.kind, "deleted"
        if kind is SECRET:
            await self._create_start_cache(key, change.manifest or {})
            return None
        try:
            if change.manifest is None:
                if found is not None:
                    await self._mirror.delete(kind, dict(found))
            elif found is None:
                verb = "created"
                self._remember(key, change.manifest, await self._mirror.create(kind, change.manifest), kind)
            else:
                verb = await self._apply(key, kind, found, change)
        except ConflictError:
            if found is None:
                self.unlabelled.setdefault(key, set()).add(kind)
            raise
        except RefusedError as error:
            log.warning("%s", error, extra={"key": str(key)})
            return str(error)
        log.info("%s %s: %s", verb, kind.name, change.cause, extra={"key": str(key)})
        return None

    async def _apply(self, key: Key, kind: Kind, found: Manifest, change: Change) -> str:
        verb, made, manifest, forced = "applied", None, change.manifest or {}, change.forced
        if as_applied(found, FIELD_MANAGER) is not None:
            # The mirror has no fields in it.
            live = await self._mirror.client.get(kind, key)
            if live is not None and (entries := as_applied(live, FIELD_MANAGER)) is not None:
                version = live["metadata"]["resourceVersion"]
                fields = {"metadata": {"resourceVersion": version, "managedFields": entries}}
                await self._mirror.merge(kind, key, fields)
        try:
            made = await self._mirror.apply(kind, manifest)
        except RefusedError:
            if forced is None:
                raise
        if forced is not None and not (made and is_in_sync(made, manifest)):
            verb, made = "forced", await self._mirror.merge(kind, key, forced)
        self._remember(key, manifest, made, kind)
        return verb

    def _remember(self, key: Key, manifest: Mapping[str, object], made: Manifest | None, kind: Kind) -> None:
        """Remember whether a webhook changed what was written."""
        applied = self.applied.setdefault(key, {})
        applied.pop(kind, None)
        if made and not is_in_sync(made, manifest):
            applied[kind] = Applied(manifest, made)

    def has_start_cache(self, key: Key) -> bool:
        """Whether the Secret of the start cache was created for the present Service, or its creation was refused."""
        service, known = self._mirror.get(SERVICE, key), self.start_caches.get(key)
        owner = controller_of(known) if known else None
        return service is not None and owner is not None and owner["uid"] == uid_of(service)

    async def _create_start_cache(self, key: Key, manifest: Manifest) -> None:
        """Create the Secret of the start cache for the Service as it is now.

        Without it pods start by themselves, so a failure is no obstacle. One that exists is that of the Service's
        predecessor until the garbage collector has removed it, or that of another owner, or this one: the operator
        cannot read it, and tries again as long as the plan says so.
        """
        service = self._mirror.get(SERVICE, key)
        if service is None or service["spec"].get("clusterIP", "None") in ("", "None"):
            return
        complete = with_address(manifest, service, secrets.token_hex(SECRET_BYTES))
        try:
            await self._mirror.client.create(SECRET, complete)
        except ConflictError:
            log.debug("the Secret of the start cache exists", extra={"key": str(key)})
            self.start_caches.setdefault(key, {"metadata": {}})
            return
        except RefusedError as error:
            log.warning("pods start without the cache of a ready one: %s", error, extra={"key": str(key)})
        self.start_caches[key] = {"metadata": complete["metadata"]}
