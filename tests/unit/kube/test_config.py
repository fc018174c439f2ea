"""How the cluster and the own namespace are found."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import client

from dragoman_kube.config import ServiceAccount, configuration, own_namespace, service_account
from dragoman_kube.errors import ClusterError

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: me, namespace: mine}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1234"}}]
users: [{name: me, user: {token: secret}}]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def test_a_named_file_the_variable_and_the_default_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "config"
    file.write_text(KUBECONFIG)
    assert (await configuration(file)).host == "https://127.0.0.1:1234"
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert (await configuration()).host == "https://127.0.0.1:1234"
    assert own_namespace() == "mine"
    monkeypatch.delenv("KUBECONFIG")
    (home / ".kube").mkdir()
    file.rename(home / ".kube" / "config")
    assert (await configuration()).host == "https://127.0.0.1:1234"
    assert own_namespace() == "mine"


async def test_a_context_of_the_file_is_chosen_by_its_name(home: Path) -> None:
    file = home / "config"
    file.write_text(
        KUBECONFIG.replace(
            "contexts: [", "contexts: [{name: two, context: {cluster: other, user: me}}, "
        ).replace("clusters: [", 'clusters: [{name: other, cluster: {server: "https://127.0.0.1:4321"}}, ')
    )
    assert (await configuration(file, "two")).host == "https://127.0.0.1:4321"
    with pytest.raises(ClusterError, match="three"):
        await configuration(file, "three")


async def test_no_cluster(home: Path) -> None:
    with pytest.raises(ClusterError, match="set KUBECONFIG or run inside a cluster"):
        await configuration()
    with pytest.raises(ClusterError, match="read /nowhere: "):
        await configuration("/nowhere")
    assert own_namespace() == "default"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no kubeconfig"),
        ("[]", "no kubeconfig"),
        ("text", "no kubeconfig"),
        ("clusters: 1", "no kubeconfig"),
        ("contexts: [1]", "Expected key current-context"),
        ("{", "expected the node content"),
        ("\0", "not allowed"),
    ],
)
async def test_a_file_of_something_else_is_named(content: str, reason: str, home: Path) -> None:
    file = home / "config"
    file.write_text(content)
    with pytest.raises(ClusterError, match=reason) as caught:
        await configuration(file)
    assert str(caught.value).startswith(f"read {file}: ")
    assert len(str(caught.value).splitlines()) == 1


def token(claims: Any) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.signature"


BOUND = {"namespace": "system", "serviceaccount": {"name": "operator", "uid": "1"}, "pod": {"name": "p"}}


@pytest.mark.parametrize(
    ("bearer", "expected"),
    [
        (token({"kubernetes.io": BOUND}), ServiceAccount("system", "operator", "1")),
        (token({"sub": "a user"}), None),
        (token([]), None),
        ("a.b.c", None),
        ("opaque", None),
        ("", None),
    ],
)
def test_service_account_of_a_token(bearer: str, expected: ServiceAccount | None) -> None:
    loaded = client.Configuration()
    loaded.api_key["BearerToken"] = f"Bearer {bearer}"
    assert service_account(loaded) == expected
