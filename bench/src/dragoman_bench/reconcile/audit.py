"""The operator's API calls, from the audit log of a kube-apiserver."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

LEASES = "leases"


class Call(NamedTuple):
    """One request that the API server has received.

    Attributes:
        at: When, Unix seconds.
        verb: Of RBAC, such as ``patch``.
        resource: With its subresource, such as ``translationdeployments/status``; the path of a request that is about
            none.
    """

    at: float
    verb: str
    resource: str
    status: int


def policy(user: str) -> dict[str, object]:
    """An audit policy that logs each request of one user once, without bodies.

    Source: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/#audit-policy
    """
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    }


def calls(lines: Iterable[str], since: float, until: float) -> Iterator[Call]:
    """The requests that were received from `since` until `until`, Unix seconds.

    A last line that is not written to its end is ignored. A watch is logged when it ends.
    """
    for line in lines:
        if not line.endswith("\n"):
            return
        event = json.loads(line)
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if since <= at < until:
            about = event.get("objectRef") or {}
            parts = [about["resource"], about.get("subresource")] if about else [event["requestURI"]]
            resource = "/".join(part for part in parts if part)
            yield Call(at, event["verb"], resource, event.get("responseStatus", {}).get("code", 0))


def counts(found: Iterable[Call]) -> dict[str, int]:
    """Number of calls by verb and resource, the most frequent first; refused ones have their status."""
    named = Counter(
        f"{call.verb} {call.resource}{f' ({call.status})' if call.status >= 400 else ''}" for call in found
    )
    return dict(named.most_common())


def without_leases(found: Iterable[Call]) -> list[Call]:
    """The calls that depend on the number of objects: not those of leader election."""
    return [call for call in found if call.resource != LEASES]
