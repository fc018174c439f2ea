"""kubectl, as a person uses it, against every API server there is."""

import json
import shutil
from typing import Any

import pytest

from .conftest import PATH, Server

pytestmark = pytest.mark.skipif(shutil.which("kubectl", path=PATH) is None, reason="no kubectl")

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: main, image: 'web:1', ports: [{containerPort: 80}], env: [{name: A, value: "1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""


@pytest.fixture
def kubectl(server: Server, namespace: str) -> Any:
    """Runs kubectl in the test's namespace."""
    return lambda *arguments, text=None: server.run("kubectl", "-n", namespace, *arguments, text=text)


def fields(kubectl: Any, path: str, *what: str) -> str:
    return str(kubectl("get", *what, "-o", f"jsonpath={path}"))


def test_apply_changes_what_changed(kubectl: Any) -> None:
    assert "deployment.apps/web created" in kubectl("apply", "-f", "-", text=WEB)
    assert "deployment.apps/web unchanged" in kubectl("apply", "-f", "-", text=WEB)
    changed = WEB.replace("web:1", "web:2").replace(', env: [{name: A, value: "1"}]', "")
    assert "deployment.apps/web configured" in kubectl("apply", "-f", "-", text=changed)
    assert fields(kubectl, "{.spec.template.spec.containers[0].image}", "deploy", "web") == "web:2"
    assert fields(kubectl, "{.spec.template.spec.containers[0].env}", "deploy", "web") == ""
    diff = kubectl("diff", "-f", "-", text=changed)
    assert diff == ""


def test_server_side_apply(kubectl: Any) -> None:
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", text=WEB)
    kubectl("scale", "deploy/web", "--replicas=5")
    with pytest.raises(
        AssertionError, match='conflict with "kubectl" with subresource "scale" using apps/v1'
    ):
        kubectl("apply", "--server-side", "-f", "-", text=WEB)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=WEB)
    assert fields(kubectl, "{.spec.replicas}", "deploy", "web") == "2"


def test_get_prints_tables(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", text=WEB)
    header, deployment = (line.split() for line in kubectl("get", "deploy").splitlines())
    assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert deployment[:4] == ["web", "0/2", "0", "0"]
    header, service = (line.split() for line in kubectl("get", "svc").splitlines())
    assert header[:3] == ["NAME", "TYPE", "CLUSTER-IP"]
    assert (service[:2], service[-2]) == (["web", "ClusterIP"], "80/TCP")
    assert {line.split()[0] for line in kubectl("get", "all").splitlines() if "/" in line} == {
        "service/web", "deployment.apps/web",
    }  # fmt: skip


def test_describe(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", text=WEB)
    output = kubectl("describe", "deploy", "web")
    assert "Replicas:               2 desired | 0 updated | 0 total | 0 available | 0 unavailable" in output
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in output
    kubectl("run", "one", "--image=i")
    assert "Status:           Pending" in kubectl("describe", "pod", "one")
    assert "Port:                     http  80/TCP" in kubectl("describe", "svc", "web")


@pytest.mark.parametrize(
    ("kind", "patch", "image"),
    [
        (
            "strategic",
            '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:9"}]}}}}',
            "web:9 web:1",
        ),
        (
            "json",
            '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:9"}]',
            "web:9 web:1",
        ),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"other","image":"o:1"}]}}}}', "o:1"),
    ],
)
def test_patch(kubectl: Any, kind: str, patch: str, image: str) -> None:
    two = WEB.replace("      containers:\n", "      containers:\n        - {name: main, image: 'web:1'}\n", 1)
    two = two.replace("- {name: main, image: 'web:1', ports", "- {name: side, image: 'web:1', ports")
    kubectl("apply", "-f", "-", text=two)
    kubectl("patch", "deploy", "web", f"--type={kind}", "-p", patch)
    assert fields(kubectl, "{.spec.template.spec.containers[*].image}", "deploy", "web") == image


def test_labels_annotations_and_rollout_restart(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", text=WEB)
    kubectl("label", "deploy", "web", "tier=front")
    kubectl("annotate", "deploy", "web", "note=x")
    kubectl("rollout", "restart", "deploy/web")
    kubectl("set", "image", "deploy/web", "main=web:3")
    assert fields(kubectl, "{.metadata.labels.tier} {.metadata.generation}", "deploy", "web") == "front 4"


def test_edit(server: Server, kubectl: Any, monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    kubectl("apply", "-f", "-", text=WEB)
    output = server.run(
        "env", "KUBE_EDITOR=sed -i s/web:1/web:4/", "kubectl", "-n", namespace, "edit", "deploy/web"
    )
    assert "deployment.apps/web edited" in output
    assert fields(kubectl, "{.spec.template.spec.containers[0].image}", "deploy", "web") == "web:4"


def test_create_wait_and_delete(server: Server, kubectl: Any) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "serviceaccount", "robot")
    assert fields(kubectl, "{.data.a}", "secret", "s") == "Yg=="
    kubectl("wait", "configmap/c", "--for=jsonpath={.data.a}=b", "--timeout=10s")
    assert 'configmap "c" deleted' in kubectl("delete", "configmap", "c")
    refused = server.attempt("kubectl", "get", "configmap", "c")
    assert refused.stderr == 'Error from server (NotFound): configmaps "c" not found\n'


def test_unknown_fields_are_refused_before_anything_is_written(server: Server, namespace: str) -> None:
    refused = server.attempt(
        "kubectl", "-n", namespace, "apply", "-f", "-", text=WEB.replace("replicas:", "replica:")
    )
    assert 'strict decoding error: unknown field "spec.replica"' in refused.stderr


def test_events(kubectl: Any, namespace: str) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": namespace, "apiVersion": "v1"}
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": about, "type": "Normal",
        "reason": "Started", "message": "it runs", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    }  # fmt: skip
    kubectl("create", "-f", "-", text=json.dumps(event))
    line = kubectl("get", "events").splitlines()[1].split()
    assert line[1:] == ["Normal", "Started", "pod/p", "it", "runs"]
    assert "it runs" in kubectl("events", "--for", "pod/p")


class TestCustomResources:
    def test_short_names_columns_scale_and_explain(self, server: Server, kubectl: Any, widgets: str) -> None:
        metadata = {"name": "w"}
        spec = {"color": "red", "replicas": 1}
        one = json.dumps(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
        )
        kubectl("apply", "-f", "-", text=one)
        assert [line.split() for line in kubectl("get", "wd").splitlines()] == [
            ["NAME", "SIZE", "READY"],
            ["w", "2"],
        ]
        kubectl("scale", "widget/w", "--replicas=3")
        assert fields(kubectl, "{.spec.replicas}", "widget", "w") == "3"
        assert "size\t<integer>" in kubectl("explain", "widget.spec")
        assert "Color:" in kubectl("describe", "widget", "w")
        kubectl(
            "patch", "widget", "w", "--type=merge", "--subresource=status", "-p", '{"status":{"replicas":3}}'
        )
        kubectl("wait", "widget/w", "--for=jsonpath={.status.replicas}=3", "--timeout=10s")
        kubectl("delete", "widget", "--all")

    def test_every_fault_of_a_bad_object_is_listed(
        self, server: Server, namespace: str, widgets: str
    ) -> None:
        bad = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":"R","size":0}}'
        refused = server.attempt("kubectl", "-n", namespace, "apply", "-f", "-", text=bad)
        first, *causes = refused.stderr.splitlines()
        assert first == 'The Widget "w" is invalid: '
        assert sorted(cause.split(":")[0] for cause in causes) == ["* spec.color", "* spec.size"]


def test_logs(server: Server, namespace: str, kubectl: Any) -> None:
    if server.api != "embedded":
        pytest.skip("a kube-apiserver reads logs from the node's kubelet")
    kubectl("run", "one", "--image=i")
    log = server.dir / "logs" / namespace / "one" / "one.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\nsecond\n")
    assert kubectl("logs", "one") == "first\nsecond\n"
    assert kubectl("logs", "one", "--tail=1") == "second\n"
    kubectl(
        "patch",
        "pod",
        "one",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"phase":"Succeeded"}}',
    )
    assert kubectl("logs", "-f", "one") == "first\nsecond\n"
