"""Who may act: reading and writing the Lease, without trusting anyone's clock but our own.

A candidate never compares the times in a Lease with its own time. It watches whether the Lease changes, and
takes it once it has stayed the same for its whole duration.

Source: https://pkg.go.dev/k8s.io/client-go/tools/leaderelection, which does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dragoman_kube.kinds import LEASE
from dragoman_kube.times import micro_timestamp
from dragoman_operator.observed.snapshot import Manifest

LONGEST_LEASE_S = 600
"""Maximum of the setting `lease_duration_s`: a longer one in a Lease is no operator's."""


@dataclass(frozen=True)
class Sighting:
    """A Lease, and when we first saw it as it is."""

    version: str
    """Its resourceVersion."""
    since: float
    """Seconds of our monotonic clock."""


def sight(lease: Manifest, before: Sighting | None, now: float) -> Sighting:
    """Record the Lease as read now; `since` stays while nothing changes in it.

    Args:
        lease: The Lease as the API server returned it.
        before: The sighting before this one.
        now: Seconds of our monotonic clock.
    """
    version = lease["metadata"]["resourceVersion"]
    return before if before is not None and before.version == version else Sighting(version, now)


def may_claim(lease: Manifest, sighting: Sighting, identity: str, now: float) -> bool:
    """Whether `identity` may write itself into the Lease: it holds it, no one does, or the holder is silent."""
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity")
    duration_s = min(max(0, _whole(spec.get("leaseDurationSeconds"))), LONGEST_LEASE_S)
    return holder in (None, "", identity) or now - sighting.since >= duration_s


def claimed(
    lease: Manifest | None, name: str, namespace: str, identity: str, duration_s: float, now: datetime
) -> dict[str, Any]:
    """The Lease with `identity` as its holder.

    Args:
        lease: The Lease as it is; None where there is none. Its resourceVersion is kept, so that the write
            fails if another operator was faster.
        name: Its name.
        namespace: Its namespace.
        identity: The holder to write; empty releases it.
        duration_s: How long it holds without a renewal.
        now: The time to write, for people.
    """
    old: Mapping[str, Any] = (lease or {}).get("spec") or {}
    stamp = micro_timestamp(now)
    same = old.get("holderIdentity") == identity
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.name,
        "metadata": dict(lease["metadata"]) if lease else {"name": name, "namespace": namespace},
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
    """A number of a Lease that others may have written; 0 where it is none."""
    return value if isinstance(value, int) else 0
