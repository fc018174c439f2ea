"""`dragoman devcluster status`: the API, the supervisor and the pods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman_devcluster.state import READY, Supervisor
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Manifest, is_deleting


async def describe(supervisor: Supervisor, kubeconfig: Path) -> str:
    """The API's kind and address, and the pods.

    Args:
        supervisor: The process that runs the cluster.
        kubeconfig: The administrator's.
    """
    lines = [
        f"api         {supervisor.api or '-'} {supervisor.url}".rstrip(),
        f"state       {supervisor.phase}, process {supervisor.pid}",
        f"kubeconfig  {kubeconfig}",
    ]
    if supervisor.phase != READY:
        return "\n".join(lines)
    async with connect(await configuration(kubeconfig)) as client:
        pods = (await client.list(POD)).items
    return "\n".join([*lines, "", *table(pods)])


def table(pods: Sequence[Manifest]) -> list[str]:
    """One line per pod under a heading, or ``no pods``."""
    rows = [_row(pod) for pod in pods]
    if not rows:
        return ["no pods"]
    rows.insert(0, ("NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "ADDRESS"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(pod: Manifest) -> tuple[str, ...]:
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    ready = sum(bool(container.get("ready")) for container in containers)
    return (
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        f"{ready}/{len(pod['spec']['containers'])}",
        pod_word(pod),
        str(sum(container.get("restartCount", 0) for container in containers)),
        status.get("podIP") or "-",
    )


def pod_word(pod: Manifest) -> str:
    """The word for a pod's state: a container's reason where there is one, else the phase."""
    if is_deleting(pod):
        return "Terminating"
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in ("waiting", "terminated"):
            if reason := ((container.get("state") or {}).get(state) or {}).get("reason"):
                return str(reason)
    return str(status.get("phase") or "Pending")
