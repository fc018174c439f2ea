"""Which pods a Service reaches, and where its local address leads."""

import pytest

from dragoman_devcluster.controllers.endpoints import (
    endpoint_slice,
    endpoint_slices,
    endpoints_of,
    local_address,
    routes,
)


def make_service(target="http", selector=True, **spec):
    ports = [{"name": "web", "port": 80, "targetPort": target, "protocol": "TCP"}]
    metadata = {"name": "s", "namespace": "default", "uid": "s", "labels": {"part": "x"}}
    chosen = {"selector": {"app": "web"}} if selector else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": ports, **chosen, **spec},
    }


def make_pod(name="p", *, ip="127.64.0.1", ready=True, deleting=False, phase="Running", port=8000, app="web"):
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    containers = [{"name": "main", "ports": [{"name": "http", "containerPort": port}]}]
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": phase, "conditions": conditions, **({"podIP": ip} if ip else {})}
    return {"metadata": metadata, "spec": {"containers": containers, "nodeName": "local"}, "status": status}


def states(pods, **service):
    found = endpoints_of(make_service(**service), pods)
    return [(endpoint.ready, endpoint.serving, endpoint.terminating) for endpoint in found]


def test_ready_serving_and_terminating():
    assert states([make_pod()]) == [(True, True, False)]
    assert states([make_pod(ready=False)]) == [(False, False, False)]
    assert states([make_pod(deleting=True)]) == [(False, True, True)]
    assert states([make_pod(ready=False)], publishNotReadyAddresses=True) == [(True, True, False)]


def test_pods_that_are_no_endpoints():
    others = [make_pod(ip=""), make_pod(phase="Succeeded"), make_pod(phase="Failed"), make_pod(app="other")]
    assert states(others) == []
    assert states([make_pod()], selector=False) == []


@pytest.mark.parametrize(("target", "ports"), [("http", (("web", 8000),)), (9, (("web", 9),)), ("other", ())])
def test_ports_by_name_or_number(target, ports):
    [endpoint] = endpoints_of(make_service(target), [make_pod()])
    assert endpoint.ports == ports


def test_a_slice_lists_pods_by_name():
    service, pods = make_service(), [make_pod("b"), make_pod("a", ip="127.64.0.2")]
    found = endpoint_slice(service, endpoints_of(service, pods))
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "s"
    assert found["ports"] == [{"name": "web", "port": 8000, "protocol": "TCP"}]
    assert [item["targetRef"]["name"] for item in found["endpoints"]] == ["a", "b"]


def test_pods_with_other_ports_are_left_out():
    service = make_service()
    found = endpoint_slice(service, endpoints_of(service, [make_pod("a"), make_pod("b", port=9000)]))
    assert [item["targetRef"]["name"] for item in found["endpoints"]] == ["a"]


def test_a_service_without_pods_has_an_empty_slice():
    assert endpoint_slice(make_service(), [])["endpoints"] == []


def test_routes_lead_to_ready_endpoints_only():
    service = make_service()
    pods = [make_pod("a"), make_pod("b", ip="127.64.0.2", ready=False)]
    table = routes(service, "127.96.0.1", endpoints_of(service, pods))
    assert table == {("127.96.0.1", 80): [("127.64.0.1", 8000)]}


def test_routes_are_for_tcp():
    service = make_service(ports=[{"port": 53, "protocol": "UDP"}])
    assert routes(service, "127.96.0.1", []) == {}


@pytest.mark.parametrize(
    ("cluster_ip", "address"),
    [("127.96.0.5", "127.96.0.5"), ("10.130.4.9", "127.130.4.9"), ("None", ""), ("", "")],
)
def test_local_addresses(cluster_ip, address):
    assert local_address(cluster_ip) == address


@pytest.mark.parametrize(
    ("families", "types"),
    [
        ({}, ["FQDN"]),
        ({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}, ["FQDN"]),
        ({"ipFamilyPolicy": "PreferDualStack"}, ["FQDN", "IPv6"]),
        ({"ipFamilyPolicy": "RequireDualStack"}, ["FQDN", "IPv6"]),
        ({"ipFamilies": ["IPv6"]}, ["FQDN", "IPv6"]),
    ],
)
def test_a_service_with_ipv6_has_a_slice_of_it(families, types):
    service = make_service(**families)
    found = endpoint_slices(service, endpoints_of(service, [make_pod()]))
    assert [each["addressType"] for each in found] == types
    assert len({each["metadata"]["name"] for each in found}) == len(types)
    pods = {each["endpoints"][0]["targetRef"]["uid"]: each["endpoints"][0]["addresses"] for each in found}
    assert pods == {"p": ["fd00::7f40:1"] if "IPv6" in types else ["127.64.0.1"]}
