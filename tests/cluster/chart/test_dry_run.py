"""What the chart renders, over a matrix of values, against the schemas of the API server: a dry run of each object with
strict validation. A kube-apiserver has the schemas of its OpenAPI and its own rules, the embedded API those of the
package `kubernetes`."""

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parents[3] / "charts/dragoman"
BIN = Path(sys.executable).parent
PEERS = [{"namespaceSelector": {"matchLabels": {"team": "a"}}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]
SHA = f"sha256:{'0' * 64}"

EXPOSURES: list[dict[str, Any]] = [
    {},
    {"service": {"type": "LoadBalancer", "annotations": {"a": "b"}}},
    {"ingress": {"enabled": True, "className": "nginx", "hosts": ["a.example"], "tlsSecret": "tls"}},
    {"ingress": {"enabled": True}, "tlsSecret": "tls"},
    {"httpRoute": {"enabled": True, "parentRefs": [{"name": "g"}], "hostnames": ["a.example"]}},
]
OIDC = {
    "issuer": "https://login.example.org",
    "audience": ["translations"],
    "limitsClaim": "groups",
    "limits": {"*": {"characterLimit": 5_000_000}},
}
KEYS: list[dict[str, Any]] = [
    {},
    {"keysSecret": "keys", "oidc": OIDC, "auditLog": True},
    {"allowAnonymous": True},
]
NETWORKS: list[dict[str, Any]] = [
    {},
    {"networkPolicy": {"ingress": False}},
    {
        "networkPolicy": {
            "restrictEgress": True,
            "httpsTo": PEERS,
            "metricsFrom": PEERS,
            "egress": [{"to": PEERS}],
        },
        "router": {"clientsFrom": PEERS, "state": {"existingSecret": "redis", "peers": PEERS}},
    },
]
SCOPES: list[dict[str, Any]] = [{}, {"watchNamespaces": ["team-a", "team-b"]}]
SOURCES: list[dict[str, Any]] = [
    {},
    {"prometheus": {"url": "http://prometheus:9090", "tokenSecret": {"name": "prometheus"}}},
    {"keda": {"enabled": True}, "prometheus": {"readSecrets": True}, "rbac": {"patchPods": True}},
    {"monitoring": {"enabled": True, "labels": {"release": "prometheus"}}},
]
ADDED: dict[str, Any] = {
    "extraEnv": [{"name": "A", "value": "1"}, {"name": "NO_PROXY", "value": "*"}],
    "extraVolumes": [{"name": "more", "emptyDir": {"sizeLimit": "1Mi"}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
}
SIZES: list[dict[str, Any]] = [
    {},
    {
        "replicas": 3,
        "image": {"digest": SHA},
        "commonLabels": {"team": "translation"},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "system-cluster-critical",
        "serviceAccount": {"annotations": {"a": "b"}},
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        **ADDED,
        "podSecurityContext": None,
        "caBundle": {"configMap": "company-ca"},
        "proxy": {"https": "http://proxy:3128", "noProxy": [".example.org"]},
        "router": {
            **ADDED,
            "priorityClassName": "system-cluster-critical",
            "service": {
                "nodePort": 30080,
                "loadBalancerClass": "example.org/lb",
                "loadBalancerSourceRanges": ["198.51.100.0/24"],
                "externalTrafficPolicy": "Local",
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": ["IPv4"],
                "type": "LoadBalancer",
            },
        },
    },
    {
        "crds": {"install": False},
        "serviceAccount": {"create": False, "name": "mine"},
        "rbac": {"create": False, "userRoles": False},
        "router": {"replicas": 1, "state": {"url": "redis://redis:6379/0"}, "nodeSelector": {"a": "b"}},
        "metrics": {"service": False},
    },
]

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


def merged(*groups: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for group in groups:
        for name, value in group.items():
            both = isinstance(value, dict) and isinstance(result.get(name), dict)
            result[name] = merged(result[name], value) if both else value
    return result


def matrix() -> Iterator[dict[str, Any]]:
    """Every combination of exposure, keys and policies; the others alternate beside them, each with each of them."""
    for number, (exposure, keys, network) in enumerate(product(EXPOSURES, KEYS, NETWORKS)):
        others = SCOPES[number % 2], SOURCES[number % 4], SIZES[(number + number // 3) % 3]
        yield merged({"router": {"enabled": True, **exposure, **keys}}, network, *others)


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    command = [str(BIN / "helm"), "template", "release", str(CHART), "--namespace", "system", "--values", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{values}: {done.stderr}"
    return [item for item in yaml.load_all(done.stdout, yaml.CSafeLoader) if item]


@cache
def everything() -> dict[str, dict[str, Any]]:
    """The different objects of the matrix, by their text."""
    return {yaml.safe_dump(item): item for values in matrix() for item in rendered(values)}


def kubectl(fresh: Any, *arguments: str, text: str = "") -> str:
    command = [str(BIN / "kubectl"), "--kubeconfig", str(fresh.kubeconfig), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def served(fresh: Any) -> set[tuple[str, str]]:
    """apiVersion and kind of everything that the API has."""
    rows = [row.split() for row in kubectl(fresh, "api-resources", "--no-headers").splitlines()]
    return {(row[-3], row[-1]) for row in rows}


def test_the_api_server_accepts_all_that_the_chart_renders(fresh: Any, api_kind: str) -> None:
    texts = everything()
    kinds = served(fresh)
    own = {text for text, item in texts.items() if (item["apiVersion"], item["kind"]) in kinds}
    others = {item["kind"] for text, item in texts.items() if text not in own}
    built_in = {"Ingress"} if api_kind == "embedded" else set()
    assert others == {"HTTPRoute", "PodMonitor", "PrometheusRule"} | built_in
    for namespace in ("system", "team-a", "team-b"):
        fresh.make_namespace(namespace)
    # A pod's account has to exist.
    fresh.core.create_namespaced_service_account("system", {"metadata": {"name": "release-dragoman-router"}})
    options = ["--server-side", "--dry-run=server", "--validate=strict"]
    accepted = kubectl(fresh, "apply", *options, "--filename", "-", text="---\n".join(sorted(own)))
    assert len(accepted.splitlines()) == len(own)
    assert {item["kind"] for text, item in texts.items() if text in own} >= {
        *("Deployment", "Service", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Pod"),
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CustomResourceDefinition"),
    }
