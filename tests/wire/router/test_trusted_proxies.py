"""The client's address behind a proxy: in rates, the audit log, and what replicas get."""

import io
import json
from typing import Any

import pytest

from dragoman_router.http.audit import AuditLog
from dragoman_system.listening import ANY_HOST

PROXIES = ("127.0.0.0/8", "10.0.0.0/8")


@pytest.fixture
def serving(start_router: Any, start_upstream: Any) -> Any:
    async def start(**options: Any) -> Any:
        router = await start_router(audit_log=True, **options)
        router.state.audit = AuditLog(io.BytesIO())
        router.upstream = await start_upstream()
        router.serve("a", router.upstream.replica())
        return router

    return start


async def client_in_audit_log(router: Any, *forwarded: str) -> str:
    """The client of a request with these X-Forwarded-For headers."""
    await router.translate(headers=[("X-Forwarded-For", each) for each in forwarded])
    stream = router.state.audit._stream
    await router.state.audit.flush()
    found: str = json.loads(stream.getvalue().splitlines()[-1])["client"]
    return found


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ((), "127.0.0.1"),
        (("203.0.113.9",), "203.0.113.9"),
        (("198.51.100.1, 203.0.113.9",), "203.0.113.9"),
        (("198.51.100.1", "203.0.113.9, 10.1.2.3"), "203.0.113.9"),
        (("203.0.113.9:4711",), "203.0.113.9"),
        (("[2001:db8::1]:4711",), "2001:db8::1"),
        (("10.1.1.1, 10.2.2.2",), "10.1.1.1"),
        (("x" * 20_000,), "x" * 64),
    ],
)
async def test_the_rightmost_address_that_is_no_proxy_is_the_clients(
    serving: Any, forwarded: tuple[str, ...], client: str
) -> None:
    router = await serving(trusted_proxies=PROXIES)
    assert await client_in_audit_log(router, *forwarded) == client


@pytest.mark.parametrize("proxies", [(), ("10.0.0.0/8",)])
async def test_a_header_of_anyone_else_is_not_believed(serving: Any, proxies: tuple[str, ...]) -> None:
    router = await serving(trusted_proxies=proxies)
    assert await client_in_audit_log(router, "203.0.113.9") == "127.0.0.1"


async def test_rates_are_those_of_each_client(serving: Any) -> None:
    router = await serving(trusted_proxies=PROXIES, anonymous_requests_per_s=0.001)
    statuses = [
        (await router.translate(headers={"X-Forwarded-For": client}))[0]
        for client in ("203.0.113.1", "203.0.113.2", "203.0.113.1", "2001:db8::1", "2001:db8::2")
    ]
    assert statuses == [200, 200, 429, 200, 429]


async def test_replicas_see_every_hop_in_its_order(serving: Any) -> None:
    router = await serving(trusted_proxies=PROXIES)
    await client_in_audit_log(router, "198.51.100.1", "203.0.113.9, 10.1.2.3")
    (received,) = router.upstream.received
    assert received.headers["x-forwarded-for"] == "198.51.100.1, 203.0.113.9, 10.1.2.3, 127.0.0.1"


@pytest.mark.parametrize("proxies", [(), PROXIES])
async def test_a_listener_for_both_families_knows_clients_of_ipv4_by_their_address(
    serving: Any, proxies: tuple[str, ...]
) -> None:
    router = await serving(trusted_proxies=proxies, host=ANY_HOST)
    expected = "203.0.113.9" if proxies else "127.0.0.1"
    assert await client_in_audit_log(router, "203.0.113.9") == expected
