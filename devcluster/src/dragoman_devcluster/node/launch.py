"""What it takes to start a container as a process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman_devcluster.node.command import PathMap, command_line
from dragoman_devcluster.node.context import NodeContext
from dragoman_devcluster.node.environment import variables_of
from dragoman_devcluster.node.volumes import TERMINATION_PATH, mounted_at
from dragoman_kube.objects import Manifest, uid_of

GPU = "nvidia.com/gpu"
_NOT_INHERITED = ("KUBECONFIG", "KUBERNETES_", "DRAGOMAN_", "PYTEST_", "HF_TOKEN")
"""Variables of the supervisor that describe its own process, not the machine."""

HOST_VARIABLES = ("DRAGOMAN_HOST", "DRAGOMAN_ROUTER_HOST", "DRAGOMAN_OPERATOR_HOST")
"""Variables of the flags --host."""


@dataclass(frozen=True)
class Launch:
    """A command line with its surroundings. `paths` is for commands that run later."""

    argv: list[str]
    env: Mapping[str, str]
    cwd: Path
    paths: PathMap
    termination_file: Path


async def prepare(
    container: Manifest, pod: Manifest, volumes: Mapping[str, Path], context: NodeContext
) -> Launch:
    """Work out how to start a container of a pod that has its address in its status.

    `volumes` has the directory of each volume by the volume's name.

    Raises:
        MissingReferenceError: A ConfigMap, Secret or key does not exist yet.
        PodRefusedError: This node cannot run the container.
    """
    own = context.directories.container(pod, container["name"])
    own.mkdir(parents=True, exist_ok=True)
    termination_file = own / "termination-log"
    termination_file.write_bytes(b"")
    paths = PathMap(
        mounts=mounted_at(container, volumes),
        files={container.get("terminationMessagePath") or TERMINATION_PATH: termination_file},
        checkout=context.directories.checkout,
    )
    declared = await variables_of(container, pod, context.mirror.client)
    variables = {name: paths.rewrite(value) for name, value in declared.items()}
    gpus = context.devices.assign((uid_of(pod), container["name"]), container_devices(container).get(GPU, 0))
    kubeconfig: dict[str, str] = {}
    if await context.credentials.mounts_token(pod):
        path = context.directories.pod(pod) / "kubeconfig"
        if not path.exists():
            await context.credentials.write_kubeconfig(pod, path)
        kubeconfig["KUBECONFIG"] = str(path)
    env = {
        **inherited(os.environ),
        "HOSTNAME": pod["metadata"]["name"],
        # Pods share the network of the machine, so each program listens on the address of its pod alone.
        **dict.fromkeys(HOST_VARIABLES, pod["status"]["podIP"]),
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
        **kubeconfig,
        **({"TMPDIR": str(paths.mounts["/tmp"])} if "/tmp" in paths.mounts else {}),
        **variables,
    }
    argv = command_line(container, declared, paths.rewrite)
    return Launch(argv, env, _working_directory(container, paths, own), paths, termination_file)


def container_devices(container: Manifest) -> dict[str, int]:
    """Extended resources that one container requests."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {name: int(count) for name, count in amounts.items() if "/" in name and int(count)}


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process takes over from the node: the machine stands in for the image."""
    return {name: value for name, value in environment.items() if not name.startswith(_NOT_INHERITED)}


def _working_directory(container: Manifest, paths: PathMap, fallback: Path) -> Path:
    wanted = container.get("workingDir")
    return Path(paths.rewrite(wanted)) if wanted else fallback
