from decimal import Decimal

import pytest

from dragoman_devcluster.api.quantity import canonical, parse


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
    assert [parse(text) for text in ("1Ki", "1k", "2e3", "1.5", "-3m")] == [
        1024, 1000, 2000, Decimal("1.5"), Decimal("-0.003"),
    ]  # fmt: skip


def test_what_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse("12 Gi")
