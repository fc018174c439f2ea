"""Helm installs, upgrades, rolls back and uninstalls a chart on every API server there is."""

import shutil
from pathlib import Path

import pytest

from .conftest import PATH, Server

pytestmark = pytest.mark.skipif(shutil.which("helm", path=PATH) is None, reason="no helm")

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: 0
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      serviceAccountName: "{{ .Release.Name }}"
      containers: [{name: main, image: "x:{{ .Values.tag | default 1 }}"}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Release.Name }}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""


def test_the_life_of_a_release(server: Server, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "all.yaml").write_text(MANIFEST)
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/r"

    def image() -> str:
        return str(server.call("GET", path)["spec"]["template"]["spec"]["containers"][0]["image"])

    def helm(*arguments: str) -> str:
        return server.run("helm", "-n", namespace, *arguments)

    assert "STATUS: deployed" in helm("install", "r", str(tmp_path))
    assert image() == "x:1"
    helm("upgrade", "r", str(tmp_path), "--set", "tag=2")
    assert image() == "x:2"
    helm("rollback", "r", "1")
    assert image() == "x:1"
    assert "REVISION: 3" in helm("status", "r")
    helm("uninstall", "r")
    server.refused(404, "GET", path)
