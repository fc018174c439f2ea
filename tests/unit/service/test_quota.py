import pytest

from dragoman_protocols import errors
from dragoman_protocols.api import Usage
from dragoman_service.http.quota import Quota


def test_usage_is_bounded_by_its_limit() -> None:
    quota = Quota(10)
    with quota.reserve(10):
        quota.add(6)
    with quota.reserve(3):
        with quota.reserve(1):
            pass
        with pytest.raises(errors.QuotaError, match="9 of 10 characters are used, 2 more"), quota.reserve(2):
            pass
    with quota.reserve(4):
        pass
    assert quota.usage == Usage(6, 10)


def test_usage_without_a_limit() -> None:
    quota = Quota()
    with quota.reserve(1_000_000_000_000):
        pass
    assert quota.usage == Usage(0, None)
