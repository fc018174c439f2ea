"""A small kopf operator in a process of its own, on every API server there is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Server, until

OPERATOR = """
import kopf
from kubernetes import client, config


@kopf.on.startup()
def configure(settings, **_):
    config.load_kube_config()
    settings.persistence.finalizer = "example.com/kopf"


@kopf.on.create("widgets")
@kopf.on.update("widgets")
def mirror(spec, name, namespace, body, patch, **_):
    child = {"metadata": {"name": name}, "data": {"color": spec["color"]}}
    kopf.adopt(child)
    api = client.CoreV1Api()
    try:
        api.create_namespaced_config_map(namespace, child)
    except client.exceptions.ApiException as taken:
        if taken.status != 409:
            raise
        api.patch_namespaced_config_map(name, namespace, {"data": child["data"]})
    patch.status["replicas"] = spec.get("replicas", 1)
    kopf.info(body, reason="Mirrored", message="as " + spec["color"])


@kopf.on.delete("widgets")
def forget(name, namespace, **_):
    client.CoreV1Api().delete_namespaced_config_map(name, namespace)
"""


@pytest.fixture
def operator(
    server: Server, namespace: str, widgets: str, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    script, log = tmp_path / "operator.py", tmp_path / "operator.log"
    script.write_text(OPERATOR)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(script)],
            env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
            stdout=output,
            stderr=output,
        )
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert "Traceback" not in log.read_text()


def test_it_receives_every_event(server: Server, namespace: str, widgets: str, operator: Any) -> None:
    children = f"/api/v1/namespaces/{namespace}/configmaps"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = server.call("POST", widgets, {**widget, "spec": {"color": "red", "replicas": 4}})

    def color() -> Any:
        return server.answer("GET", f"{children}/w").json().get("data", {}).get("color")

    def messages() -> list[str]:
        return [
            event["message"]
            for event in server.call("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
        ]

    until(lambda: color() == "red", 60)
    until(lambda: server.call("GET", f"{widgets}/w").get("status", {}).get("replicas") == 4)
    owner = server.call("GET", f"{children}/w")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == made["metadata"]["uid"]
    server.call("MERGE", f"{widgets}/w", {"spec": {"color": "blue"}})
    until(lambda: color() == "blue")
    until(lambda: "as blue" in messages())
    assert server.call("DELETE", f"{widgets}/w")["metadata"]["finalizers"] == ["example.com/kopf"]
    until(lambda: server.answer("GET", f"{widgets}/w").status_code == 404)
    server.refused(404, "GET", f"{children}/w")
