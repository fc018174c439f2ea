"""Clients by address."""

import pytest

from dragoman_router.access.addresses import MAX_CHARS, client_of


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_ipv6_client_is_its_network(address: str, client: str) -> None:
    assert client_of(address) == client


def test_what_is_no_address_is_cut() -> None:
    assert client_of("x" * 40_000) == "x" * MAX_CHARS
