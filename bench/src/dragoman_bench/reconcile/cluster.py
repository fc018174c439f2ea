"""A kube-apiserver of our own, with the chart installed, and the identity that the chart gives to the operator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from dragoman_bench.errors import ClusterSetupError
from dragoman_bench.reconcile.audit import policy
from dragoman_kube.client import KubeClient, connect
from dragoman_kube.config import configuration
from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import Key

RELEASE, NAMESPACE = "dragoman", "dragoman-system"
USER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
CHART = Path("charts/dragoman")
TOKEN_S = 24 * 3600
COMMAND_S = 180.0
SERVICES = "10.96.0.0/18"
"""The network of Services: the 1,000 addresses that the local cluster would take are too few."""


@dataclass(frozen=True)
class Installed:
    """A cluster with the chart in it.

    Attributes:
        kube: A client with the administrator's rights.
        kubeconfig: Of the operator's ServiceAccount.
        arguments: The operator's command line in the chart's Deployment.
    """

    kube: KubeClient
    kubeconfig: Path
    arguments: list[str]
    audit_log: Path


@asynccontextmanager
async def installed(directory: Path, controllers: bool) -> AsyncIterator[Installed]:
    """A cluster that is up within the context. No pod of the chart runs in it.

    Args:
        directory: For its state.
        controllers: Whether the local cluster's controllers run; else Deployments stay without pods.

    Raises:
        ClusterSetupError: kube-apiserver, etcd or helm are missing, or failed.
    """
    state, log, rules = directory / "cluster", directory / "setup.log", _prepared(directory)
    devcluster = [sys.executable, "-m", "dragoman", "devcluster"]
    (state / "api").mkdir(parents=True, exist_ok=True)
    (state / "api" / "service-range").write_text(SERVICES)
    up = [*devcluster, "up", "--api=kube-apiserver", "--gpus=0", f"--audit-policy={rules}", f"--dir={state}"]
    await _run(log, *up, *([] if controllers else ["--api-only"]))
    try:
        admin = state / "kubeconfig"
        await _run(
            log,
            *(_helm(), "install", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--create-namespace"),
            *("--set=replicas=0", f"--kubeconfig={admin}"),
        )
        async with connect(await configuration(admin)) as kube:
            deployed = await kube.get(DEPLOYMENT, Key(NAMESPACE, RELEASE)) or {}
            arguments = deployed["spec"]["template"]["spec"]["containers"][0]["args"]
            document = yaml.safe_load(admin.read_text())
            document["users"][0]["user"] = {"token": await _token(kube)}
            kubeconfig = directory / "operator.kubeconfig"
            kubeconfig.write_text(yaml.safe_dump(document))
            yield Installed(kube, kubeconfig, arguments, state / "logs" / "audit.log")
    finally:
        await _run(log, *devcluster, "down", f"--dir={state}")


async def _token(kube: KubeClient) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_S},
    }
    made = await kube.request("POST", path, "create a token of the operator", body=request)
    return str(made["status"]["token"])


def _helm() -> str:
    beside = Path(sys.executable).parent / "helm"
    return str(beside) if beside.exists() else "helm"


async def _run(output: Path, *command: str) -> None:
    await asyncio.to_thread(_run_logged, output, command)


def _run_logged(output: Path, command: tuple[str, ...]) -> None:
    """Run a command to its end. Its output goes to a file: what it starts in the background may hold a pipe open."""
    try:
        with output.open("wb") as file:
            done = subprocess.run(command, stdout=file, stderr=file, timeout=COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterSetupError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        why = output.read_text(errors="replace").strip()
        raise ClusterSetupError(f"{' '.join(command[:4])} failed: {why}")


def _prepared(directory: Path) -> Path:
    """Make the directory; the file with the audit policy in it."""
    directory.mkdir(parents=True, exist_ok=True)
    rules = directory / "audit-policy.yaml"
    rules.write_text(yaml.safe_dump(policy(USER)))
    return rules
