from typing import Any

import pytest

from dragoman.reach import NoServiceError, local_url, only_router, proxy_url


def service(name: str = "dragoman-router", **port: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "dragoman-system"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, **port}]},
    }


def headless() -> dict[str, Any]:
    return {"metadata": {"name": "dragoman-router-admin"}, "spec": {"clusterIP": "None", "ports": []}}


def test_the_service_for_clients_is_chosen() -> None:
    assert only_router([headless(), service()])["metadata"]["name"] == "dragoman-router"


@pytest.mark.parametrize(
    ("services", "reason"), [([headless()], "no router"), ([service(), service("b")], "several")]
)
def test_a_router_is_not_guessed(services: list[Any], reason: str) -> None:
    with pytest.raises(NoServiceError, match=reason):
        only_router(services)


def test_the_api_server_leads_to_it() -> None:
    path = "/api/v1/namespaces/dragoman-system/services"
    assert proxy_url(service(), "https://api:6443/") == f"https://api:6443{path}/dragoman-router:http/proxy"
    tls = service(appProtocol="https")
    assert proxy_url(tls, "https://api:6443") == f"https://api:6443{path}/https:dragoman-router:http/proxy"


def test_the_local_cluster_has_an_address_for_it() -> None:
    assert local_url(service()) is None
    local = service()
    local["metadata"]["annotations"] = {"dragoman.io/local-address": "127.9.0.1"}
    assert local_url(local) == "http://127.9.0.1:80"
