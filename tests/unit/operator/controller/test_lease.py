"""Which operator may acquire the Lease; clocks of other machines are not compared."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman_kube.config import ServiceAccount
from dragoman_operator.controller.leadership import ObservedLease, claimed, may_claim, observed_lease

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def lease(holder: str | None = "other", version: str = "1", **spec: Any) -> dict[str, Any]:
    fields = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:00:00.000000Z",
    }
    return {"metadata": {"name": "x", "namespace": "y", "resourceVersion": version}, "spec": fields | spec}


def test_lease_that_is_not_renewed_is_acquired_after_its_duration() -> None:
    observed = observed_lease(lease(), None, 100.0)
    assert not may_claim(lease(), observed_lease(lease(), observed, 114.9), "me", 114.9)
    assert may_claim(lease(), observed_lease(lease(), observed, 115.0), "me", 115.0)


def test_renewal_restarts_the_wait() -> None:
    observed = observed_lease(lease(version="2"), ObservedLease("1", 100.0), 110.0)
    assert not may_claim(lease(version="2"), observed, "me", 120.0)


def test_old_renew_time_alone_is_no_reason() -> None:
    # The holder's clock may be years behind ours.
    assert not may_claim(lease(), observed_lease(lease(), None, 100.0), "me", 100.0)


@pytest.mark.parametrize("holder", ["", None, "me"])
def test_released_or_own_lease_is_acquired_at_once(holder: str | None) -> None:
    assert may_claim(lease(holder), ObservedLease("1", 100.0), "me", 100.0)


def test_first_claim() -> None:
    ours = claimed(None, "x", "y", "me", 15.0, NOW)
    assert ours["metadata"] == {"name": "x", "namespace": "y"}
    assert ours["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.000678Z",
        "renewTime": "2026-01-02T03:04:05.000678Z",
        "leaseTransitions": 0,
    }


def test_renewal_keeps_the_time_of_acquiring() -> None:
    ours = claimed(lease("me", acquireTime="before", leaseTransitions=4), "x", "y", "me", 15.0, NOW)
    assert (ours["spec"]["acquireTime"], ours["spec"]["leaseTransitions"]) == ("before", 4)
    assert ours["metadata"]["resourceVersion"] == "1"


def test_succession_counts() -> None:
    ours = claimed(lease("other", acquireTime="before", leaseTransitions=4), "x", "y", "me", 15.0, NOW)
    assert ours["spec"]["leaseTransitions"] == 5
    assert ours["spec"]["acquireTime"] != "before"


def test_account_owns_the_lease() -> None:
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "operator", "uid": "1"}
    account = ServiceAccount("y", "operator", "1")
    for before in (None, lease("me"), lease("other")):
        ours = claimed(before, "x", "y", "me", 15.0, NOW, account)
        assert ours["metadata"]["ownerReferences"] == [owner]
    owned = lease("me")
    owned["metadata"]["ownerReferences"] = [owner]
    assert claimed(owned, "x", "y", "", 1, NOW)["metadata"]["ownerReferences"] == [owner]
