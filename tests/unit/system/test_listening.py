"""Listeners of pods: on both families, also where only one exists."""

import errno
import socket
from collections.abc import Iterator

import pytest

from dragoman_operator.settings import Settings as OperatorSettings
from dragoman_router.settings import Settings as RouterSettings
from dragoman_service.fetch.__main__ import Settings as FetchSettings
from dragoman_service.settings import Settings as PodSettings
from dragoman_system.listening import ANY_HOST, bound_socket


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with bound_socket(ANY_HOST, 0) as made:
        made.listen()
        yield made


@pytest.mark.parametrize("address", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_any_host_accepts_both_families(listening: socket.socket, address: str) -> None:
    with socket.create_connection((address, listening.getsockname()[1]), timeout=5):
        pass


@pytest.mark.parametrize("number", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_any_host_is_ipv4_on_a_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    class WithoutIPv6(socket.socket):
        def bind(self, address: object) -> None:
            if self.family == socket.AF_INET6:
                raise OSError(number, "no IPv6")
            super().bind(address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", WithoutIPv6)
    with bound_socket(ANY_HOST, 0) as made:
        assert made.family == socket.AF_INET
        assert made.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", ANY_HOST])
def test_a_used_port_is_said(host: str) -> None:
    with bound_socket(host, 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on {host} port {port}: Address already in use"):
            bound_socket(host, port)


@pytest.mark.parametrize("settings", [OperatorSettings, RouterSettings, PodSettings, FetchSettings])
def test_every_listener_of_a_pod_is_on_both_families(settings: type) -> None:
    field = settings.model_fields["host"]  # type: ignore[attr-defined]
    assert field.get_default(call_default_factory=True) == ANY_HOST
