import pytest

HIGHLY_AVAILABLE = {"replicas": 3, "priorityClassName": "system-cluster-critical"}
NAMESPACED = {"watchNamespaces": ["team-a", "team-b"], "rbac": {"userRoles": False}}
MONITORED = {
    "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    "router": {"enabled": True},
}
ISOLATED = {"networkPolicy": {"restrictEgress": True, "metricsFrom": [{"namespaceSelector": {}}]}}
EVERYTHING = {**HIGHLY_AVAILABLE, **NAMESPACED, **MONITORED, **ISOLATED}
BYO = {
    "crds": {"install": False},
    "rbac": {"create": False},
    "serviceAccount": {"create": False, "name": "mine"},
}


@pytest.mark.parametrize(
    "values",
    [{}, HIGHLY_AVAILABLE, NAMESPACED, MONITORED, ISOLATED, EVERYTHING, BYO],
    ids=["default", "ha", "namespaced", "monitored", "isolated", "everything", "bring-your-own"],
)
def test_strict_lint_finds_nothing(lint, values):
    assert "0 chart(s) failed" in lint(**values)


def test_a_kubernetes_without_stable_cel_is_refused(refusal):
    assert "incompatible with Kubernetes v1.28.0" in refusal("--kube-version", "1.28.0")
