"""What may connect to operator and routers, and what they may reach."""

from typing import Any

import pytest

NAMES = {"release-dragoman", "release-dragoman-router"}


def policies(render: Any, **values: Any) -> dict[str, Any]:
    rendered = render(router={"enabled": True}, networkPolicy=values)
    return {item["metadata"]["name"]: item["spec"] for item in rendered.all("NetworkPolicy")}


def ports(rules: list[dict[str, Any]]) -> set[Any]:
    return {port["port"] for rule in rules for port in rule["ports"]}


def test_by_default_every_client_may_connect_to_the_ports_that_serve_and_all_may_be_reached(
    render: Any,
) -> None:
    found = policies(render)
    assert found.keys() == NAMES
    assert all(spec["policyTypes"] == ["Ingress"] and "egress" not in spec for spec in found.values())
    assert ports(found["release-dragoman"]["ingress"]) == {"metrics"}
    assert ports(found["release-dragoman-router"]["ingress"]) == {"http", "admin"}
    for spec in found.values():
        open_to_all = {
            port["port"] for rule in spec["ingress"] if "from" not in rule for port in rule["ports"]
        }
        assert open_to_all == ports(spec["ingress"])


def test_egress_is_restricted_if_configured(render: Any) -> None:
    found = policies(render, restrictEgress=True, apiServerPort=16443)
    assert all(spec["policyTypes"] == ["Ingress", "Egress"] for spec in found.values())
    assert ports(found["release-dragoman"]["egress"]) == {53, 443, 16443, 8000, 9091}
    assert ports(found["release-dragoman-router"]["egress"]) == {53, 443, 16443, 8000}
    assert policies(render, ingress=False, restrictEgress=True)["release-dragoman"]["policyTypes"] == [
        "Egress"
    ]


@pytest.mark.parametrize("peers", [[], [{"ipBlock": {"cidr": "10.0.0.1/32"}}, {"podSelector": {}}]])
def test_ports_of_the_api_server_lead_to_the_configured_peers(render: Any, peers: list[Any]) -> None:
    for spec in policies(render, restrictEgress=True, httpsTo=peers).values():
        (rule,) = (rule for rule in spec["egress"] if 443 in ports([rule]))
        assert ports([rule]) == {443, 6443}
        assert rule.get("to", []) == peers


def test_policies_can_be_left_out(render: Any) -> None:
    assert policies(render, ingress=False) == {}
