"""Objects of the Kubernetes API, read."""

from typing import Any

import pytest

from dragoman_router.errors import ClusterError
from dragoman_router.fleet.manifests import deployment, owner_of, replicas_of_slices


def td(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "n", "name": "d", "annotations": annotations}, "spec": spec}


def test_a_deployment() -> None:
    found = deployment(
        td(
            {"dragoman.io/weight": "5"},
            languages=[{"source": "en", "targets": ["de"]}],
            engine={"maxNumSeqs": 16},
        )
    )
    assert (found.key, found.name, found.weight, found.max_in_flight) == ("n/d", "d", 5, 64)
    assert found.languages[0].targets == ("de",)


@pytest.mark.parametrize("message", ["", "many", "-1", "1001", "1.5"])
def test_a_weight_that_is_none_is_the_usual_one(message: str) -> None:
    assert deployment(td({"dragoman.io/weight": message})).weight == 100


def test_languages_that_cannot_be_read_are_an_error() -> None:
    with pytest.raises(ClusterError, match="n/d"):
        deployment(td(languages=[{"source": "??"}]))


def test_slices() -> None:
    endpoint = {"addresses": ["10.0.0.1"], "targetRef": {"name": "p1", "uid": "u1"}}
    found = replicas_of_slices(
        [
            {
                "metadata": {},
                "ports": [{"name": "metrics", "port": 1}, {"name": "http", "port": 8000}],
                "endpoints": [
                    endpoint,
                    {"addresses": ["10.0.0.2"], "conditions": {"ready": False, "terminating": True}},
                ],
            },
            {"metadata": {}, "ports": None, "endpoints": None},
        ]
    )
    assert [(each.name, each.address, each.ready, each.terminating) for each in found] == [
        ("p1", "10.0.0.1:8000", True, False),
        ("10.0.0.2", "10.0.0.2:8000", False, True),
    ]


def test_what_belongs_to_whom() -> None:
    labels = {"dragoman.io/deployment": "d"}
    assert owner_of({"metadata": {"namespace": "n", "name": "d-x", "labels": labels}}) == "n/d"
    assert owner_of({"metadata": {"namespace": "n", "name": "other"}}) is None


def pod_in(family: str | None, address: str, uid: str = "u1", **conditions: bool) -> dict[str, Any]:
    endpoint = {"addresses": [address], "conditions": conditions, "targetRef": {"name": uid, "uid": uid}}
    return {
        "metadata": {},
        "addressType": family,
        "ports": [{"name": "http", "port": 8000}],
        "endpoints": [endpoint],
    }


V4, V6 = "10.0.0.5:8000", "[fd00::5]:8000"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([pod_in("IPv4", "10.0.0.5"), pod_in("IPv6", "fd00::5")], [(V4, True, False)]),
        ([pod_in("FQDN", "10.0.0.5"), pod_in("IPv6", "fd00::5")], [(V4, True, False)]),
        ([pod_in("IPv6", "fd00::5")], [(V6, True, False)]),
        ([pod_in("IPv4", "10.0.0.5", ready=False), pod_in("IPv6", "fd00::5")], [(V4, False, False)]),
        ([pod_in("IPv4", "10.0.0.5"), pod_in("IPv6", "fd00::5", terminating=True)], [(V4, True, True)]),
        ([pod_in("IPv4", "10.0.0.5"), pod_in("IPv4", "10.0.0.5")], [(V4, True, False)]),
        (
            [pod_in("IPv4", "10.0.0.5"), pod_in("IPv6", "fd00::6", "u2")],
            [(V4, True, False), ("[fd00::6]:8000", True, False)],
        ),
        # A later pod with the address of an earlier one.
        (
            [pod_in("IPv4", "10.0.0.5", terminating=True), pod_in("IPv4", "10.0.0.5", "u2")],
            [(V4, True, False), (V4, True, True)],
        ),
    ],
)
def test_a_pod_is_one_replica_in_slices_of_both_families(
    slices: list[dict[str, Any]], expected: list[tuple[str, bool, bool]], turned: bool
) -> None:
    found = replicas_of_slices(reversed(slices) if turned else slices)
    assert sorted((each.address, each.ready, each.terminating) for each in found) == sorted(expected)
