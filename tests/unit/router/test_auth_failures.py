"""Failed attempts by address, and who goes on beyond their rate."""

import pytest
from tests.support.clock import Clock

from dragoman_protocols.errors import TooManyAuthFailuresError
from dragoman_router.access import failures as module
from dragoman_router.access.failures import BURST_S, AuthFailures
from dragoman_router.access.usage import AccountUsage, Calendar

ADDRESS, OTHER = "192.0.2.1", "192.0.2.2"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def failures(clock: Clock) -> AuthFailures:
    """One a second, `BURST_S` at once."""
    return AuthFailures(1, AccountUsage(Calendar(1), clock), clock)


async def fail_until_limited(failures: AuthFailures, address: str = ADDRESS) -> int:
    """How many failed attempts were admitted."""
    for count in range(10 * BURST_S):
        if await failures.count(address) is not None:
            return count
    raise AssertionError("never limited")


async def test_attempts_are_admitted_at_their_rate(failures: AuthFailures, clock: Clock) -> None:
    assert await fail_until_limited(failures) == BURST_S
    clock.now_s += 10
    assert await fail_until_limited(failures) == 10


async def test_beyond_the_rate_a_known_key_and_a_wrong_one_get_the_same_answer(
    failures: AuthFailures,
) -> None:
    await fail_until_limited(failures)
    errors = []
    for name in ("alice", None):
        with pytest.raises(TooManyAuthFailuresError) as refused:
            failures.check(ADDRESS, name)
        errors.append((str(refused.value), refused.value.retry_after_s))
    counted = await failures.count(ADDRESS)
    assert counted is not None
    assert errors == [(str(counted), counted.retry_after_s)] * 2
    assert errors[0][1] == 1


async def test_a_key_that_was_used_from_the_address_goes_on(failures: AuthFailures) -> None:
    failures.check(ADDRESS, "alice")
    failures.check(OTHER, "bob")
    await fail_until_limited(failures)
    failures.check(ADDRESS, "alice")
    failures.check(OTHER, "carol")
    with pytest.raises(TooManyAuthFailuresError):
        failures.check(ADDRESS, "bob")


async def test_a_refused_key_is_accepted_once_the_time_is_over(failures: AuthFailures, clock: Clock) -> None:
    await fail_until_limited(failures)
    with pytest.raises(TooManyAuthFailuresError) as refused:
        failures.check(ADDRESS, "alice")
    clock.now_s += refused.value.retry_after_s
    failures.check(ADDRESS, "alice")
    await fail_until_limited(failures)
    failures.check(ADDRESS, "alice")


async def test_attempts_beyond_the_rate_do_not_prolong_it(failures: AuthFailures, clock: Clock) -> None:
    await fail_until_limited(failures)
    for _ in range(100):
        await failures.count(ADDRESS)
    clock.now_s += 1
    assert await failures.count(ADDRESS) is None


async def test_hosts_of_one_ipv6_network_are_one_client(failures: AuthFailures) -> None:
    await fail_until_limited(failures, "2001:db8::1")
    assert await failures.count("2001:db8::ffff") is not None
    assert await failures.count("2001:db8:0:1::1") is None


async def test_what_is_kept_is_bounded(failures: AuthFailures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLACES", 10)
    monkeypatch.setattr(module, "MAX_ADDRESSES", 2)
    for number in range(15):
        failures.check(ADDRESS, f"key-{number}")
    assert len(failures._places) + len(failures._earlier_places) <= 20
    for number in range(3):
        await fail_until_limited(failures, f"198.51.100.{number}")
    assert list(failures._limited) == ["198.51.100.1", "198.51.100.2"]
    await fail_until_limited(failures)
    failures.check(ADDRESS, "key-3")
