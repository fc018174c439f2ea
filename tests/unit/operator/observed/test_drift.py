"""What counts as drift, and what Kubernetes does to every object without anyone's fault."""

from typing import Any

import pytest

from dragoman_kube.quantity import parse
from dragoman_operator.api.fields import seconds
from dragoman_operator.observed.drift import APPLIED, is_superset, signed

SAME: dict[str, tuple[Any, Any]] = {
    "defaults filled in": ({"a": 1, "protocol": "TCP"}, {"a": 1}),
    "empty map dropped": ({}, {"emptyDir": {}}),
    "empty list dropped": ({}, {"egress": []}),
    "empty text dropped": ({"name": "A"}, {"name": "A", "value": ""}),
    "quantity rewritten": (
        {"limits": {"cpu": "500m", "memory": "1Gi"}},
        {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
    ),
    "number as text": ({"limits": {"nvidia.com/gpu": "1"}}, {"limits": {"nvidia.com/gpu": 1}}),
    "size limit rewritten": ({"sizeLimit": "1Gi"}, {"sizeLimit": "1024Mi"}),
    "more limits": ({"limits": {"cpu": "1", "memory": "1Gi"}}, {"limits": {"cpu": "1"}}),
    "keyed list with a foreign item": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"env": [{"name": "B", "value": "2"}]},
    ),
    "keyed list in another order": ([{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    "ports of one number": (
        [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
        [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    ),
    "annotation added": ({"annotations": {"ours": "1", "theirs": "2"}}, {"annotations": {"ours": "1"}}),
}

DIFFERENT: dict[str, tuple[Any, Any]] = {
    "value edited": ({"replicas": 5}, {"replicas": 2}),
    "zero edited": ({"maxSurge": 1}, {"maxSurge": 0}),
    "zero dropped": ({}, {"maxSurge": 0}),
    "false dropped": ({}, {"automount": False}),
    "field removed": ({}, {"replicas": 2}),
    "argument edited": ({"args": ["serve", "--n", "2"]}, {"args": ["serve", "--n", "1"]}),
    "argument added": ({"args": ["serve", "--x"]}, {"args": ["serve"]}),
    "item of a keyed list removed": ({"env": []}, {"env": [{"name": "A"}]}),
    "item of a keyed list edited": ([{"name": "A", "value": "2"}], [{"name": "A", "value": "1"}]),
    "rule added to an atomic list": ({"egress": [{"ports": []}, {}]}, {"egress": [{"ports": []}]}),
    "all rules removed": ({}, {"ingress": [{"ports": [{"port": 8000}]}]}),
    "quantity edited": ({"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}),
    "quantity removed": ({"limits": {}}, {"limits": {"cpu": "1"}}),
    "limits removed": ({}, {"limits": {"cpu": "1"}}),
    "label edited": ({"labels": {"a": "x"}}, {"labels": {"a": "b"}}),
    "group replaced by a value": ({"spec": "x"}, {"spec": {"a": 1}}),
    "list replaced by a value": ({"args": "serve"}, {"args": ["serve"]}),
}


@pytest.mark.parametrize(("observed", "wanted"), SAME.values(), ids=SAME)
def test_no_drift(observed: Any, wanted: Any) -> None:
    assert is_superset(observed, wanted)


@pytest.mark.parametrize(("observed", "wanted"), DIFFERENT.values(), ids=DIFFERENT)
def test_drift(observed: Any, wanted: Any) -> None:
    assert not is_superset(observed, wanted)


def test_signature_follows_every_field() -> None:
    manifest: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"a": 1}}
    without = {"metadata": {"name": "x"}, "spec": {}}
    assert signed(manifest) == signed(manifest)
    assert (
        signed(manifest)["metadata"]["annotations"][APPLIED]
        != signed(without)["metadata"]["annotations"][APPLIED]
    )
    assert "annotations" not in manifest["metadata"]


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("12Gi", 12 * 2**30),
        ("512Mi", 2**29),
        ("1.5Gi", 3 * 2**29),
        ("2k", 2000),
        ("1E", 10**18),
        (7, 7),
        ("0", 0),
    ],
)
def test_amounts(quantity: str | int, value: int) -> None:
    assert parse(quantity) == value


@pytest.mark.parametrize("quantity", ["", "Gi", "1GiB", "many"])
def test_what_is_no_amount(quantity: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(quantity)


@pytest.mark.parametrize(("duration", "value"), [("60s", 60), ("2m", 120), ("1h30m", 5400), ("1h0m1s", 3601)])
def test_seconds(duration: str, value: int) -> None:
    assert seconds(duration) == value


def test_two_items_of_one_name_are_drift() -> None:
    # A renumbered port of a Service: the API merges by number, and both are then called http.
    ours = {"name": "http", "port": 8000}
    assert not is_superset([{"name": "http", "port": 81}, ours], [ours])
