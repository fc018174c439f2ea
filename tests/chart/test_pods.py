"""What values add to the pods of operator, routers and `helm test`, and what a platform may choose."""

from typing import Any

import pytest

from dragoman_devcluster.node.command import expand
from dragoman_router.settings import Settings as RouterSettings

BOTH = pytest.mark.parametrize("component", ["operator", "router"])


def pods(rendered: Any) -> dict[str, dict[str, Any]]:
    """Specs of the pods by component."""
    found = {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item for item in rendered.all("Deployment")
    }
    specs = {component: item["spec"]["template"]["spec"] for component, item in found.items()}
    return specs | {"test": rendered.one("Pod")["spec"]}


def with_values(
    render: Any, component: str, common: dict[str, Any] | None = None, **values: Any
) -> dict[str, Any]:
    """The pod of a component, with values for it and such for the whole release."""
    router = {"enabled": True, **(values if component == "router" else {})}
    own = values if component == "operator" else {}
    return pods(render(router=router, **own, **(common or {})))[component]


def variables(spec: dict[str, Any]) -> dict[str, str]:
    """Variables of the container with a value, as a kubelet sets them."""
    found = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    names = [each["name"] for each in spec["containers"][0].get("env", [])]
    assert len(set(names)) == len(names)
    for each in spec["containers"][0].get("env", []):
        if "value" in each:
            found[each["name"]] = expand(each["value"], found)
    return found


def test_users_and_groups_can_be_left_to_the_platform(render: Any) -> None:
    for spec in pods(render(podSecurityContext=None, router={"enabled": True})).values():
        restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert spec["securityContext"] == restricted
    for spec in pods(render(podSecurityContext={"runAsUser": 1000660001}, router={"enabled": True})).values():
        found = spec["securityContext"]
        assert (found["runAsUser"], found["runAsGroup"], found["fsGroup"]) == (1000660001, 65532, 65532)
    for spec in pods(render(podSecurityContext={"fsGroup": None}, router={"enabled": True})).values():
        assert "fsGroup" not in spec["securityContext"]


def test_engine_pods_leave_users_and_groups_to_the_platform_with_the_others(render: Any) -> None:
    def platform_users(**values: Any) -> str:
        arguments: list[str] = render(**values).container["args"]
        return next(each for each in arguments if each.startswith("--platform-users"))

    assert platform_users() == "--platform-users=false"
    assert platform_users(podSecurityContext={"runAsUser": 1000660001}) == "--platform-users=false"
    assert platform_users(podSecurityContext=None) == "--platform-users=true"


def test_pull_secrets_for_all_images_reach_all_pods(render: Any) -> None:
    values = {"global": {"imagePullSecrets": ["a", {"name": "b"}]}, "router": {"enabled": True}}
    found = render(imagePullSecrets=[{"name": "b"}, {"name": "c"}], **values)
    assert len(pods(found)) == 3
    for spec in pods(found).values():
        assert spec["imagePullSecrets"] == [{"name": name} for name in "abc"]
    (operator,) = found.named("Deployment", "release-dragoman")["spec"]["template"]["spec"]["containers"]
    assert "--image-pull-secrets=a,b" in operator["args"]
    assert not any("imagePullSecrets" in spec for spec in pods(render(router={"enabled": True})).values())


@BOTH
def test_variables_volumes_and_mounts(render: Any, component: str) -> None:
    values: dict[str, Any] = {
        "extraEnv": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    }
    before, after = with_values(render, component), with_values(render, component, **values)
    assert variables(after) == variables(before) | {"A": "1", "B": "12"}
    assert after["volumes"] == [*before["volumes"], *values["extraVolumes"]]
    mounts = before["containers"][0]["volumeMounts"]
    assert after["containers"][0]["volumeMounts"] == [*mounts, *values["extraVolumeMounts"]]


@BOTH
def test_a_bundle_of_authorities_is_trusted(render: Any, component: str) -> None:
    spec = with_values(render, component, {"caBundle": {"configMap": "company", "key": "bundle.pem"}})
    (volume,) = [each for each in spec["volumes"] if "configMap" in each]
    assert volume["configMap"] == {"name": "company", "items": [{"key": "bundle.pem", "path": "ca.crt"}]}
    (mount,) = [each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]]
    assert variables(spec)["SSL_CERT_FILE"] == f"{mount['mountPath']}/ca.crt"


@BOTH
def test_proxies_are_not_for_the_cluster(render: Any, component: str) -> None:
    proxy = {"https": "http://user:p$$w$(A)@proxy:3128", "noProxy": [".example.org"]}
    found = variables(with_values(render, component, {"proxy": proxy}))
    assert found["HTTPS_PROXY"] == proxy["https"]
    assert "HTTP_PROXY" not in found
    assert found["NO_PROXY"].split(",") == [
        *(".example.org", "localhost", "127.0.0.1", ".svc", ".cluster.local", "10.0.0.1")
    ]
    replaced = with_values(render, component, {"proxy": proxy}, extraEnv=[{"name": "NO_PROXY", "value": "*"}])
    assert variables(replaced)["NO_PROXY"] == "*"


def test_values_with_dollar_signs_arrive_as_written(render: Any) -> None:
    text = "$$a$(HOME)"
    operator = with_values(
        render, "operator", prometheus={"url": f"http://p/{text}", "headers": {"X-Scope-OrgID": text}}
    )
    arguments = [expand(each, {"HOME": "/"}) for each in operator["containers"][0]["args"]]
    assert f"--prometheus-url=http://p/{text}" in arguments
    assert f'--prometheus-headers={{"X-Scope-OrgID":"{text}"}}' in arguments
    oidc = {
        "issuer": f"https://i/{text}",
        "audience": [text],
        "nameClaim": text,
        "limits": {text: {"burstS": 1}},
    }
    state = {"url": f"redis://r/{text}", "prefix": text}
    router = with_values(render, "router", oidc=oidc, state=state)
    arguments = [expand(each, {"HOME": "/"}) for each in router["containers"][0]["args"]]
    assert {f"--oidc-issuer={oidc['issuer']}", f"--oidc-audience={text}", f"--state-prefix={text}"} < set(
        arguments
    )
    assert f'--oidc-limits={{"{text}":{{"burstS":1}}}}' in arguments
    assert variables(router)["DRAGOMAN_ROUTER_STATE_URL"] == state["url"]


@BOTH
def test_scheduling(render: Any, component: str) -> None:
    spread = [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ]
    spec = with_values(
        render, component, replicas=1, topologySpreadConstraints=spread, priorityClassName="high"
    )
    assert spec["topologySpreadConstraints"] == spread
    assert spec["priorityClassName"] == "high"
    (default,) = with_values(render, component, replicas=2)["topologySpreadConstraints"]
    assert default["topologyKey"] == "kubernetes.io/hostname"
    assert "topologySpreadConstraints" not in with_values(render, component, replicas=1)


@pytest.mark.parametrize("registry", ["registry.example.org/mt", "localhost:5000/"])
def test_a_registry_is_that_of_all_images(render: Any, registry: str) -> None:
    rendered = render(
        **{"global": {"imageRegistry": registry, "of-another-chart": 1}}, router={"enabled": True}
    )
    prefix = registry.rstrip("/") + "/dragoman-"
    specs = pods(rendered)
    images = [spec["containers"][0]["image"] for spec in specs.values()]
    images += [
        each.partition("=")[2] for each in specs["operator"]["containers"][0]["args"] if "-image=" in each
    ]
    assert len(images) == 5
    assert all(image.startswith(prefix) for image in images)


def test_flags_need_no_value(render: Any) -> None:
    flags = ["--no-page", "--common-glossaries", "--router-id=", "--anonymous-requests-per-s=5"]
    command, *arguments = with_values(render, "router", extraArgs=flags)["containers"][0]["args"]
    assert (command, arguments[-4:]) == ("router", flags)
    found = RouterSettings(_cli_parse_args=[each for each in arguments if each != "--router-id="])
    assert (found.page, found.common_glossaries) == (False, True)


SERVICE: dict[str, Any] = {
    "nodePort": 30080,
    "loadBalancerClass": "example.org/lb",
    "loadBalancerIP": "192.0.2.1",
    "loadBalancerSourceRanges": ["198.51.100.0/24"],
    "externalTrafficPolicy": "Local",
    "ipFamilyPolicy": "RequireDualStack",
    "ipFamilies": ["IPv6", "IPv4"],
}


def test_fields_of_the_routers_service(render: Any) -> None:
    service = {"type": "LoadBalancer", **SERVICE}
    made = render(router={"enabled": True, "service": service}).named("Service", "release-dragoman-router")[
        "spec"
    ]
    assert {name: made.get(name) for name in SERVICE if name != "nodePort"} == {
        name: value for name, value in SERVICE.items() if name != "nodePort"
    }
    assert made["ports"][0]["nodePort"] == 30080
    families = {"type", "selector", "ports", "ipFamilyPolicy", "ipFamilies"}
    for kind, more in (("ClusterIP", set()), ("NodePort", {"externalTrafficPolicy"})):
        values = {"enabled": True, "service": {"type": kind, **SERVICE}}
        found = render(router=values).named("Service", "release-dragoman-router")["spec"]
        assert found.keys() == families | more
        assert ("nodePort" in found["ports"][0]) == (kind == "NodePort")
    plain = render(router={"enabled": True}).named("Service", "release-dragoman-router")["spec"]
    assert plain.keys() == {"type", "selector", "ports"}
    assert "nodePort" not in plain["ports"][0]


def test_another_pod_of_helm_test_has_another_name(render: Any) -> None:
    """A pod cannot be changed: `kubectl apply` of a changed one of the same name fails."""

    def name(**values: Any) -> str:
        found: str = render(router={"enabled": True, **values}).one("Pod")["metadata"]["name"]
        return found

    names = [
        name(),
        name(image={"tag": "2"}),
        name(tlsSecret="tls"),
        name(tolerations=[{"operator": "Exists"}]),
    ]
    assert len(set(names)) == len(names)
    assert name() == name(replicas=3) == names[0]
    assert "Pod" not in render(router={"enabled": True, "test": False}).kinds
