"""The router's part of the chart."""

import json
from typing import Any

import pytest

from dragoman_contract.http import (
    LIVE_PATH,
    READY_PATH,
    ROUTER_ADMIN_PORT,
    ROUTER_ADMIN_PORT_NAME,
    ROUTER_PORT,
)
from dragoman_contract.kubernetes import ENGINE_COMPONENT, ROUTER_COMPONENT
from dragoman_router.settings import Settings

REASONS = {
    ("dragoman.io", "translationdeployments"): "which pairs are served, by whom",
    ("discovery.k8s.io", "endpointslices"): "where, and whether ready or leaving",
}


@pytest.fixture
def router(render: Any) -> Any:
    """The router's objects with these values under `router`, by kind and name."""

    def made(values: dict[str, Any] | None = None, **others: Any) -> dict[tuple[str, str], dict[str, Any]]:
        rendered = render(router={"enabled": True, **(values or {})}, **others)
        return {
            (item["kind"], item["metadata"]["name"]): item
            for item in rendered.objects
            if item["metadata"]["name"].startswith("release-dragoman-router")
        }

    return made


def pod(objects: Any) -> Any:
    return objects["Deployment", "release-dragoman-router"]["spec"]["template"]["spec"]


def container(objects: Any) -> Any:
    (only,) = pod(objects)["containers"]
    return only


def settings(objects: Any) -> Settings:
    command, *arguments = container(objects)["args"]
    assert command == "router"
    return Settings(_cli_parse_args=arguments)


def test_it_is_off_by_default(render: Any) -> None:
    names = [item["metadata"]["name"] for item in render().objects]
    assert not [name for name in names if "router" in name]


def test_default_arguments_are_the_routers_own_defaults(router: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("DRAGOMAN_ROUTER_ROUTER_ID", "me")
    defaults = Settings(_cli_parse_args=False).model_dump()
    assert settings(router({"replicas": 1})).model_dump() == defaults


def test_every_value_reaches_the_setting_it_names(router: Any) -> None:
    found = settings(
        router(
            {
                "keysSecret": "keys",
                "tlsSecret": "tls",
                "bounds": {
                    "queuedRequests": 7,
                    "queuedBytes": 100_000_000,
                    "queueSeconds": 9,
                    "bodyBytes": 2048,
                    "fileBytes": 4096,
                    "memoryBytes": 500_000_000,
                    "requestTimeoutSeconds": 11,
                    "authFailuresPerS": 0.5,
                    "connections": 2_000_000,
                },
                "drain": {"lameDuckSeconds": 3, "timeoutSeconds": 4},
                "glossaries": {"common": True},
                "trustedProxies": ["10.244.0.0/16", "192.0.2.1"],
                "page": False,
                "extraArgs": ["--anonymous-requests-per-s=5"],
            },
            watchNamespaces=["a", "b"],
            logLevel="debug",
        )
    )
    assert found.namespaces == ("a", "b")
    assert (found.max_queued_requests, found.max_queued_bytes, found.max_queue_s) == (7, 100_000_000, 9)
    assert (found.max_body_bytes, found.max_memory_bytes, found.request_timeout_s) == (2048, 500_000_000, 11)
    assert (found.max_file_bytes, found.auth_failures_per_s) == (4096, 0.5)
    assert found.common_glossaries
    assert not found.page
    assert found.max_connections == 2_000_000
    assert found.trusted_proxies == ("10.244.0.0/16", "192.0.2.1/32")
    assert (found.lame_duck_s, found.drain_timeout_s, found.anonymous_requests_per_s) == (3, 4, 5)
    assert (found.log_level, str(found.keys_dir)) == ("debug", "/etc/dragoman/keys")
    assert (str(found.tls_cert), str(found.tls_key)) == (
        "/etc/dragoman/tls/tls.crt",
        "/etc/dragoman/tls/tls.key",
    )


def test_tokens(router: Any) -> None:
    values = {
        "issuer": "https://login.example.org/realms/main",
        "audience": ["translations", "mail"],
        "nameClaim": "email",
        "limitsClaim": "groups",
        "limits": {"*": {"characterLimit": 5_000_000}, "staff": {"requestsPerS": 0.5, "fleet": True}},
    }
    found = settings(router({"oidc": values, "auditLog": True}))
    assert found.audit_log
    assert (found.oidc_issuer, found.oidc_audience) == (values["issuer"], ("translations", "mail"))
    assert (found.oidc_name_claim, found.oidc_limits_claim) == ("email", "groups")
    assert found.oidc_limits["*"].character_limit == 5_000_000
    assert found.oidc_limits["staff"].requests_per_s == 0.5
    assert [found.oidc_limits[each].fleet for each in ("*", "staff")] == [False, True]
    assert found.keys_dir is None


def test_secrets_are_mounted_at_the_paths_of_the_arguments(router: Any) -> None:
    objects = router({"keysSecret": "keys", "tlsSecret": "tls"})
    volumes = {
        volume["name"]: volume.get("secret", {}).get("secretName") for volume in pod(objects)["volumes"]
    }
    mounts = {mount["name"]: mount["mountPath"] for mount in container(objects)["volumeMounts"]}
    assert volumes == {"tmp": None, "keys": "keys", "tls": "tls"}
    assert mounts == {"tmp": "/tmp", "keys": "/etc/dragoman/keys", "tls": "/etc/dragoman/tls"}


def test_the_grace_covers_the_whole_drain(router: Any) -> None:
    objects = router({"drain": {"lameDuckSeconds": 7, "timeoutSeconds": 100}})
    assert pod(objects)["terminationGracePeriodSeconds"] > 107


def test_the_memory_limit_covers_the_bounds(router: Any) -> None:
    """Measured: 83 MiB at the start, 33 KB for an idle connection with TLS, 1.8 bytes for each of request bodies."""
    limit = container(router())["resources"]["limits"]["memory"]
    settings = Settings.model_construct()
    needed = 83 * 2**20 + 33_000 * settings.max_connections + 1.8 * settings.max_memory_bytes
    assert limit == "1Gi"
    assert needed < 0.9 * 2**30


def test_ports_and_probes(router: Any) -> None:
    objects = router()
    ports = {port["name"]: port["containerPort"] for port in container(objects)["ports"]}
    assert ports == {"http": ROUTER_PORT, ROUTER_ADMIN_PORT_NAME: ROUTER_ADMIN_PORT}
    probes = {
        probe: container(objects)[probe]["httpGet"] for probe in container(objects) if probe.endswith("Probe")
    }
    assert probes == {
        "startupProbe": {"path": LIVE_PATH, "port": "admin"},
        "livenessProbe": {"path": LIVE_PATH, "port": "admin"},
        "readinessProbe": {"path": READY_PATH, "port": "admin"},
    }
    admin = objects["Service", "release-dragoman-router-admin"]["spec"]
    assert (admin["clusterIP"], admin["publishNotReadyAddresses"]) == ("None", True)


@pytest.mark.parametrize(
    ("values", "keeps"),
    [
        ({}, False),
        ({"replicas": 1}, True),
        ({"state": {"url": "redis://redis"}}, True),
        ({"state": {"existingSecret": "redis"}}, True),
        ({"replicas": 1, "glossaries": {"enabled": False}}, False),
    ],
    ids=str,
)
def test_several_routers_keep_glossaries_only_in_shared_state(
    router: Any, values: dict[str, Any], keeps: bool
) -> None:
    assert settings(router(values)).keep_glossaries is keeps


def test_it_may_read_two_kinds_everywhere_and_write_none(router: Any) -> None:
    rules = router()["ClusterRole", "release-dragoman-router"]["rules"]
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {key: {"list", "watch"} for key in REASONS}
    narrow = router(watchNamespaces=["a"])
    assert ("ClusterRole", "release-dragoman-router") not in narrow
    assert narrow["Role", "release-dragoman-router"]["metadata"]["namespace"] == "a"


def test_the_state_url_is_in_no_argument(router: Any) -> None:
    plain = router(
        {"state": {"url": "valkey://valkey:6379/0"}, "keysSecret": "keys", "usage": {"firstDay": 15}}
    )
    name = "DRAGOMAN_ROUTER_STATE_URL"
    assert container(plain)["env"] == [{"name": name, "value": "valkey://valkey:6379/0"}]
    assert settings(plain).state_prefix == "dragoman-system/release:"
    assert settings(plain).quota_reset_day == 15
    secret = router({"state": {"url": "redis://other", "existingSecret": "redis", "prefix": "mine:"}})
    source = {"secretKeyRef": {"name": "redis", "key": "url"}}
    assert container(secret)["env"] == [{"name": name, "valueFrom": source}]
    assert settings(secret).state_prefix == "mine:"
    assert "env" not in container(router())


def test_it_may_reach_the_state_where_there_is_a_policy(router: Any) -> None:
    peers = [{"podSelector": {"matchLabels": {"app": "redis"}}}]
    objects = router({"state": {"peers": peers}}, networkPolicy={"restrictEgress": True})
    assert {"to": peers} in objects["NetworkPolicy", "release-dragoman-router"]["spec"]["egress"]


def test_it_runs_restricted(router: Any) -> None:
    objects = router()
    assert pod(objects)["securityContext"]["runAsNonRoot"] is True
    assert container(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod(objects)["enableServiceLinks"] is False


def test_selectors_find_routers_alone(router: Any, render: Any) -> None:
    objects = router(networkPolicy={"restrictEgress": True})
    labels = objects["Deployment", "release-dragoman-router"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == ROUTER_COMPONENT
    selectors = [
        objects["Deployment", "release-dragoman-router"]["spec"]["selector"]["matchLabels"],
        objects["PodDisruptionBudget", "release-dragoman-router"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy", "release-dragoman-router"]["spec"]["podSelector"]["matchLabels"],
        objects["Service", "release-dragoman-router"]["spec"]["selector"],
        objects["Service", "release-dragoman-router-admin"]["spec"]["selector"],
    ]
    assert all(selector == selectors[0] for selector in selectors)
    operator = render().one("Deployment")["spec"]["selector"]["matchLabels"]
    assert operator != selectors[0]
    egress = json.dumps(objects["NetworkPolicy", "release-dragoman-router"]["spec"]["egress"])
    assert f'"app.kubernetes.io/component": "{ENGINE_COMPONENT}"' in egress


def test_one_router_has_no_budget_that_would_block_a_drain(router: Any) -> None:
    assert ("PodDisruptionBudget", "release-dragoman-router") not in router({"replicas": 1})


@pytest.mark.parametrize(
    "values",
    [
        {"replica": 1},
        {"keysSecret": "No_Name"},
        {"usage": {"firstDay": 31}},
        {"oidc": {"issuer": "login.example.org", "audience": ["a"]}},
        {"enabled": True, "oidc": {"issuer": "https://login.example.org"}},
        {"oidc": {"limits": {"a": {"requestPerS": 1}}}},
        {"state": {"url": "redis://user:password@redis"}},
        {"state": {"url": "http://redis"}},
        {"bounds": {"queuedRequests": -1}},
        {"service": {"type": "Other"}},
    ],
)
def test_wrong_values_are_refused(refusal: Any, values: dict[str, Any]) -> None:
    assert "router" in refusal(router=values)
