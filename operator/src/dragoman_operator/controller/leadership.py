"""Leader election by a Lease: one of several operators acts, and exits if it loses the Lease."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from dragoman_kube.client import KubeClient
from dragoman_kube.config import ServiceAccount
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import LEASE
from dragoman_kube.objects import Key
from dragoman_kube.times import micro_timestamp
from dragoman_operator.observed.snapshot import Manifest
from dragoman_operator.settings import Settings

log = logging.getLogger(__name__)


FAILED_RATIO = 0.25
"""Of the time between renewals: the time to the next one after one that failed."""


def exit_process(reason: str) -> NoReturn:
    """Exit at once, as client-go does: a cleanup would take time in which another operator may lead."""
    log.error("no longer leading: %s; exiting", reason)
    os._exit(1)


class Leadership:
    """Acquires, renews and releases one Lease.

    Three times prevent two leaders: a holder stops acting `lease_renew_deadline_s` after the start of its last
    successful renewal; its last writes end at `lease_duration_s`; another operator acquires the Lease after it has
    observed it unchanged for `lease_duration_s`.

    After the deadline leadership is lost, even if the Lease is still ours, because writes were refused since. The
    process exits; the next one lists all objects again.

    The Lease is owned by the operator's ServiceAccount, if that is in the same namespace: `helm uninstall` deletes
    account and roles while the operator stops, so that it cannot release the Lease. The garbage collector then deletes
    it; without account and roles its holder cannot write either.

    Args:
        account: The operator's ServiceAccount, if it has one.
        lost: Called with the reason when leadership is lost; does not return.
    """

    def __init__(
        self,
        kube: KubeClient,
        settings: Settings,
        namespace: str,
        account: ServiceAccount | None = None,
        clock: Callable[[], float] = time.monotonic,
        lost: Callable[[str], NoReturn] = exit_process,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._namespace = namespace
        self._account = account if account and account.namespace == namespace else None
        self._clock = clock
        self._lost = lost
        self._deadline = float("-inf")
        self._observed: ObservedLease | None = None
        self._acquired = False
        self._holder = ""
        self.contacted = False
        """Whether the API server has answered a request for the Lease."""

    def holds(self) -> bool:
        """Whether we may act."""
        return self._clock() < self._deadline

    def write_budget_s(self) -> float:
        """Maximum time of a write that starts now; 0 before the Lease is acquired.

        After the deadline of an acquired Lease, leadership is lost.
        """
        if not self._acquired:
            return 0.0
        if not self.holds():
            self._lost(self._late())
        margin_s = self._settings.lease_duration_s - self._settings.lease_renew_deadline_s
        return self._deadline + margin_s - self._clock()

    async def acquire(self) -> None:
        """Wait until the Lease is ours."""
        while True:
            if await self._attempt():
                self._acquired = True
                log.info("leading as %s", self._settings.identity)
                return
            await asyncio.sleep(self._settings.lease_retry_s / 2)

    async def renew_forever(self) -> NoReturn:
        """Renew the Lease until it is lost."""
        renewed = True
        while True:
            await asyncio.sleep(self._settings.lease_retry_s * (1 if renewed else FAILED_RATIO))
            if self.holds():
                renewed = await self._attempt()
                if not renewed and self._holder:
                    self._lost(f"{self._holder} holds the Lease")
            if not self.holds():
                self._lost(self._late())

    def _late(self) -> str:
        return f"the Lease was not renewed for {self._settings.lease_renew_deadline_s:g} s"

    async def _attempt(self) -> bool:
        """Try once to acquire or renew the Lease; False if another operator holds it or the server does not answer."""
        began, leading = self._clock(), self.holds()
        timeout_s = self._settings.lease_renew_deadline_s / 2
        self._holder = ""
        name, identity = self._settings.lease_name, self._settings.identity
        try:
            async with asyncio.timeout(min(timeout_s, self._deadline - began) if leading else timeout_s):
                lease = await self._kube.get(LEASE, Key(self._namespace, name))
                self.contacted = True
                if lease is not None:
                    self._observed = observed_lease(lease, self._observed, self._clock())
                    if not may_claim(lease, self._observed, identity, self._clock()):
                        self._holder = str((lease.get("spec") or {}).get("holderIdentity"))
                        return False
                ours = claimed(
                    lease,
                    name,
                    self._namespace,
                    identity,
                    self._settings.lease_duration_s,
                    datetime.now(UTC),
                    self._account,
                )
                await (self._kube.replace if lease else self._kube.create)(LEASE, ours)
        except (ClusterError, TimeoutError) as error:
            log.warning("the Lease was not renewed: %s", str(error) or "no answer in time")
            return False
        if leading and not self.holds():
            log.warning("the Lease was renewed after its deadline")
            return False
        self._deadline = began + self._settings.lease_renew_deadline_s
        return True

    async def release(self) -> None:
        """Release the Lease, so that the next operator does not wait until it expires; the last write."""
        self._acquired, self._deadline = False, float("-inf")
        name = self._settings.lease_name
        with suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(2):
                lease = await self._kube.get(LEASE, Key(self._namespace, name))
                if lease and (lease.get("spec") or {}).get("holderIdentity") == self._settings.identity:
                    empty = claimed(lease, name, self._namespace, "", 1, datetime.now(UTC))
                    await self._kube.replace(LEASE, empty)


MAX_LEASE_S = 600
"""Maximum of the setting `lease_duration_s`; a longer one in a Lease was not written by an operator."""


@dataclass(frozen=True)
class ObservedLease:
    """A version of the Lease, and when we first observed it.

    A candidate never compares the times in a Lease with its own clock. It acquires a Lease that has not changed for
    its duration.

    Source: https://pkg.go.dev/k8s.io/client-go/tools/leaderelection, which does the same.
    """

    version: str
    """Its resourceVersion."""
    since: float
    """Seconds of our monotonic clock."""


def observed_lease(lease: Manifest, before: ObservedLease | None, now: float) -> ObservedLease:
    """The observation of the Lease as read now; `since` stays while its version does."""
    version = lease["metadata"]["resourceVersion"]
    return before if before is not None and before.version == version else ObservedLease(version, now)


def may_claim(lease: Manifest, observed: ObservedLease, identity: str, now: float) -> bool:
    """Whether `identity` may acquire the Lease: it holds it, it is released, or its holder stopped renewing it."""
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity")
    duration_s = min(max(0, _whole(spec.get("leaseDurationSeconds"))), MAX_LEASE_S)
    return holder in (None, "", identity) or now - observed.since >= duration_s


def claimed(
    lease: Manifest | None,
    name: str,
    namespace: str,
    identity: str,
    duration_s: float,
    now: datetime,
    account: ServiceAccount | None = None,
) -> dict[str, Any]:
    """The Lease with `identity` as its holder, and `account` as its owner.

    The resourceVersion is kept, so that the write fails if another operator was faster. An empty `identity` releases
    the Lease.
    """
    old: Mapping[str, Any] = (lease or {}).get("spec") or {}
    stamp = micro_timestamp(now)
    same = old.get("holderIdentity") == identity
    metadata = dict(lease["metadata"]) if lease else {"name": name, "namespace": namespace}
    if account is not None:
        owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": account.name, "uid": account.uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.name,
        "metadata": metadata,
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": max(1, round(duration_s)),
            "acquireTime": old.get("acquireTime", stamp) if same else stamp,
            "renewTime": stamp,
            "leaseTransitions": max(0, _whole(old.get("leaseTransitions")))
            + (0 if same or lease is None else 1),
        },
    }


def _whole(value: Any) -> int:
    """A number of a Lease, which any client may have written; 0 if it is not a number."""
    return value if isinstance(value, int) else 0
