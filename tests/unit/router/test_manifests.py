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
