"""Quantities, times and fields of objects."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from dragoman_kube.objects import Key, condition_of, controller_of, differs, is_true, key_of, selects
from dragoman_kube.quantity import canonical, parse
from dragoman_kube.times import micro_timestamp, parse_time, timestamp


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1000m", "1"), ("0.5", "500m"), (1, "1"), (1.5, "1500m"), ("1024Mi", "1Gi"), ("512Mi", "512Mi"),
        ("2000", "2k"), ("0", "0"), ("100m", "100m"), ("1536Mi", "1536Mi"), ("0.5Gi", "512Mi"), ("bad", "bad"),
    ],
)  # fmt: skip
def test_canonical_forms(text: str | float, written: str) -> None:
    assert canonical(text) == written


def test_numbers() -> None:
    assert [parse(text) for text in ("1Ki", "1k", "2e3", "1.5", "-3m", 4)] == [
        1024, 1000, 2000, Decimal("1.5"), Decimal("-0.003"), 4,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["12 Gi", "", "Gi", "1Xi", "1.2.3"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(text)


def test_times() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert timestamp(moment) == "2026-01-02T03:04:05Z"
    assert parse_time(micro_timestamp(moment)) == moment
    assert parse_time("2026-01-02T03:04:05") == parse_time("2026-01-02T04:04:05+01:00")


def test_keys() -> None:
    assert key_of({"metadata": {"name": "node"}}) == ("", "node")
    assert [str(key) for key in (Key("n", "a"), Key("", "node"))] == ["n/a", "node"]


def test_conditions_and_controllers() -> None:
    owners = [{"uid": "1"}, {"uid": "2", "controller": True}]
    manifest = {
        "metadata": {"ownerReferences": owners},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
    }
    assert controller_of(manifest) == owners[1]
    assert controller_of({"metadata": {"ownerReferences": None}}) is None
    assert (is_true(manifest, "Ready"), is_true(manifest, "Other")) == (True, False)
    assert condition_of({}, "Ready") is None


def test_selectors() -> None:
    labels = {"app": "web", "tier": "back"}
    assert selects({}, labels)
    assert not selects(None, labels)
    assert selects({"matchLabels": {"app": "web"}}, labels)
    for operator, values, matches in [
        ("In", ["web"], True), ("NotIn", ["web"], False), ("Exists", [], True), ("DoesNotExist", [], False),
        ("Unknown", [], False),
    ]:  # fmt: skip
        expression = {"key": "app", "operator": operator, "values": values}
        assert selects({"matchExpressions": [expression]}, labels) is matches


def test_a_status_is_written_only_if_it_differs() -> None:
    manifest = {"status": {"replicas": 2, "conditions": [{"type": "A", "status": "True"}]}}
    assert not differs(manifest, {"replicas": 2, "readyReplicas": 0, "message": ""})
    assert not differs(manifest, {"conditions": [{"type": "A", "status": "True", "message": ""}]})
    assert differs(manifest, {"replicas": 0})
    assert differs({}, {"replicas": 1})
