"""The router outside of the cluster: Ingress, HTTPRoute, and the keys that it requires then; `helm test`."""

import base64
from typing import Any

import pytest
from tests.chart.conftest import Refused

EXPOSED: dict[str, dict[str, Any]] = {
    "service": {"service": {"type": "LoadBalancer"}},
    "ingress": {"ingress": {"enabled": True}},
    "route": {"httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]}},
}


def router(render: Any, values: dict[str, Any], **others: Any) -> Any:
    return render(router={"enabled": True, **values}, **others)


@pytest.mark.parametrize("how", EXPOSED)
def test_an_exposed_router_requires_the_key_that_is_made_for_it(render: Any, how: str) -> None:
    rendered = router(render, EXPOSED[how])
    secret = rendered.named("Secret", "release-dragoman-router-keys")
    assert len(base64.b64decode(secret["data"]["default"])) == 40
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    spec = rendered.named("Deployment", "release-dragoman-router")["spec"]["template"]["spec"]
    assert "--keys-dir=/etc/dragoman/keys" in spec["containers"][0]["args"]
    assert {
        "name": "keys",
        "secret": {"secretName": "release-dragoman-router-keys", "defaultMode": 0o440},
    } in spec["volumes"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {**EXPOSED["ingress"], "allowAnonymous": True},
        {**EXPOSED["ingress"], "keysSecret": "own"},
    ],
    ids=["inside", "anonymous", "own keys"],
)
def test_no_key_is_made_otherwise(render: Any, values: dict[str, Any]) -> None:
    assert "Secret" not in router(render, values).kinds


@pytest.mark.parametrize("how", EXPOSED)
def test_an_upgrade_does_not_expose_a_router_without_keys(render_upgrade: Any, how: str) -> None:
    with pytest.raises(Refused, match=r"without API keys: set router.keysSecret, router.oidc, or"):
        router(render_upgrade, EXPOSED[how])


@pytest.mark.parametrize(
    "values", [{"keysSecret": "own"}, {"allowAnonymous": True}], ids=["own keys", "anonymous"]
)
def test_an_upgrade_exposes_a_router_with_keys_or_on_request(
    render_upgrade: Any, values: dict[str, Any]
) -> None:
    rendered = router(render_upgrade, {**EXPOSED["ingress"], **values})
    rendered.one("Ingress")
    assert "Secret" not in rendered.kinds


def test_ingress_leads_every_host_to_the_router(render: Any) -> None:
    rendered = router(
        render,
        {
            "ingress": {
                "enabled": True,
                "className": "nginx",
                "hosts": ["a.example", "b.example"],
                "tlsSecret": "certificate",
                "annotations": {"a": "b"},
            }
        },
    )
    ingress = rendered.one("Ingress")
    assert ingress["metadata"]["annotations"] == {"a": "b"}
    backend = {"service": {"name": "release-dragoman-router", "port": {"name": "http"}}}
    paths = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    assert ingress["spec"] == {
        "ingressClassName": "nginx",
        "tls": [{"secretName": "certificate", "hosts": ["a.example", "b.example"]}],
        "rules": [{"host": "a.example", "http": paths}, {"host": "b.example", "http": paths}],
    }


def test_ingress_without_hosts_takes_every_host(render: Any) -> None:
    (rule,) = router(render, EXPOSED["ingress"]).one("Ingress")["spec"]["rules"]
    assert list(rule) == ["http"]


def test_http_route_leads_to_the_router(render: Any) -> None:
    values = {
        "enabled": True,
        "parentRefs": [{"name": "public", "namespace": "gateways"}],
        "hostnames": ["a.example"],
    }
    assert router(render, {"httpRoute": values}).one("HTTPRoute")["spec"] == {
        "parentRefs": [{"name": "public", "namespace": "gateways"}],
        "hostnames": ["a.example"],
        "rules": [
            {
                "timeouts": {"request": "600s"},
                "backendRefs": [{"name": "release-dragoman-router", "port": 80}],
            }
        ],
    }


def test_http_route_without_a_gateway_is_refused(refusal: Any) -> None:
    reason = refusal(router={"enabled": True, "httpRoute": {"enabled": True}})
    assert "set router.httpRoute.parentRefs" in reason


def test_test_pod_reads_objects_as_the_router_and_has_its_keys(render: Any) -> None:
    rendered = router(render, EXPOSED["ingress"], watchNamespaces=["a", "b"])
    pod = rendered.one("Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["serviceAccountName"] == "release-dragoman-router"
    (container,) = pod["spec"]["containers"]
    assert container["args"] == [
        "check",
        "--url=http://release-dragoman-router.dragoman-system:80",
        "--namespaces=a,b",
        "--keys-dir=/etc/dragoman/keys",
    ]
    assert pod["spec"]["volumes"][0]["secret"]["secretName"] == "release-dragoman-router-keys"


def test_common_labels_are_on_every_object_and_pod(render: Any) -> None:
    rendered = router(render, EXPOSED["ingress"], replicas=2, commonLabels={"team": "translation"})
    for item in rendered.objects:
        if item["kind"] != "CustomResourceDefinition":
            assert item["metadata"]["labels"]["team"] == "translation", item["kind"]
    for item in rendered.all("Deployment"):
        assert item["spec"]["template"]["metadata"]["labels"]["team"] == "translation"
        assert "team" not in item["spec"]["selector"]["matchLabels"]


def test_notes_have_the_routers_address_and_how_to_read_its_key(notes: Any) -> None:
    printed = notes(
        router={"enabled": True, "ingress": {"enabled": True, "hosts": ["a.example"], "tlsSecret": "c"}}
    )
    assert "http://release-dragoman-router.dragoman-system:80" in printed
    assert "https://a.example" in printed
    assert "kubectl get secret --namespace dragoman-system release-dragoman-router-keys" in printed
    assert "helm test release --namespace dragoman-system --logs" in printed


def test_notes_warn_of_an_exposed_router_without_keys(notes: Any) -> None:
    printed = notes(router={"enabled": True, "service": {"type": "LoadBalancer"}, "allowAnonymous": True})
    assert "WARNING: it is reached from outside of the cluster and requires no API key" in printed
