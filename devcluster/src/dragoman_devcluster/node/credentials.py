"""How a pod's process reaches the API: a kubeconfig with a token of its service account."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import yaml

from dragoman_devcluster.api.tls import write_kubeconfig
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import SERVICE_ACCOUNT
from dragoman_kube.objects import Key, Manifest

TOKEN_LASTS_S = 365 * 24 * 3600
"""Tokens are not renewed; a year outlasts any local cluster."""


@dataclass(frozen=True)
class Credentials:
    """Tokens and kubeconfigs with which pods reach the API. `ca_certificate` is PEM."""

    client: KubeClient
    server: str
    ca_certificate: bytes

    @classmethod
    def like(cls, kubeconfig: Path, client: KubeClient) -> Credentials:
        """For the API that a kubeconfig's current context names."""
        cluster = current_cluster(kubeconfig)
        authority = base64.b64decode(cluster.get("certificate-authority-data") or "")
        return cls(client, str(cluster["server"]), authority)

    async def mounts_token(self, pod: Manifest) -> bool:
        """Whether the pod's service account token is mounted: the pod decides, else its account, else yes."""
        own = pod["spec"].get("automountServiceAccountToken")
        if own is not None:
            return bool(own)
        account = await self.client.get(SERVICE_ACCOUNT, _account(pod))
        return account is not None and account.get("automountServiceAccountToken") is not False

    async def token(self, pod: Manifest) -> str:
        """A new token of the pod's service account, bound to the pod."""
        namespace, name = _account(pod)
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": TOKEN_LASTS_S, "boundObjectRef": reference},
        }
        answer = await self.client.request("POST", SERVICE_ACCOUNT.path(namespace, name, "token"), body=body)
        return str(answer["status"]["token"])

    async def write_kubeconfig(self, pod: Manifest, path: Path) -> None:
        """Write a kubeconfig for the pod."""
        namespace = pod["metadata"]["namespace"]
        write_kubeconfig(path, self.server, self.ca_certificate, await self.token(pod), namespace)


def current_cluster(kubeconfig: Path) -> Manifest:
    """The cluster of a kubeconfig's current context: ``server`` and ``certificate-authority-data``."""
    content = yaml.safe_load(kubeconfig.read_text())
    contexts = {item["name"]: item["context"] for item in content["contexts"]}
    clusters = {item["name"]: item["cluster"] for item in content["clusters"]}
    return dict(clusters[contexts[content["current-context"]]["cluster"]])


def _account(pod: Manifest) -> Key:
    return Key(pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName") or "default")
