"""`dragoman devcluster status`: the API, the supervisor and the pods."""

from __future__ import annotations

from pathlib import Path

from dragoman_devcluster.state import READY, Supervisor
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Manifest

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


async def describe(supervisor: Supervisor, kubeconfig: Path) -> str:
    """The API's kind and address, and the pods as `kubectl get pods` prints them."""
    lines = [
        f"api         {supervisor.api or '-'} {supervisor.url}".rstrip(),
        f"state       {supervisor.phase}, process {supervisor.pid}",
        f"kubeconfig  {kubeconfig}",
    ]
    if supervisor.phase != READY:
        return "\n".join(lines)
    async with connect(await configuration(kubeconfig)) as client:
        pods = await client.request("GET", POD.path(), accept=_TABLE)
    return "\n".join([*lines, "", *table(pods)])


def table(pods: Manifest) -> list[str]:
    """The lines of a table of pods as the API has rendered it, or ``no pods``."""
    shown = [index for index, column in enumerate(pods["columnDefinitions"]) if not column["priority"]]
    rows = [
        [row["object"]["metadata"]["namespace"], *(str(row["cells"][index]) for index in shown)]
        for row in pods["rows"]
    ]
    if not rows:
        return ["no pods"]
    rows.insert(0, ["NAMESPACE", *(pods["columnDefinitions"][index]["name"].upper() for index in shown)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
