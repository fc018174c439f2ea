"""Which API server a local cluster runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.servers.embedded import EmbeddedServer
from dragoman_devcluster.servers.kube_apiserver import KubeApiServer
from dragoman_devcluster.servers.server import ApiServer

BINARIES = ("kube-apiserver", "etcd")


def find_binaries(environment: Mapping[str, str]) -> dict[str, Path]:
    """The binaries of a real API server that are there: in KUBEBUILDER_ASSETS if set, else in PATH."""
    place = environment.get("KUBEBUILDER_ASSETS") or environment.get("PATH")
    found = {name: shutil.which(name, path=place) for name in BINARIES}
    return {name: Path(path) for name, path in found.items() if path}


def choose_server(options: ClusterOptions, guardian: Guardian) -> ApiServer:
    """The server that the options name.

    Raises:
        StartFailedError: The options name a server whose binaries are missing, or an unknown one.
    """
    found = find_binaries(os.environ)
    missing = [name for name in BINARIES if name not in found]
    if options.api == "embedded" or (options.api == "auto" and missing):
        return EmbeddedServer(options, guardian)
    if options.api not in ("auto", "kube-apiserver"):
        raise StartFailedError(f"no API {options.api!r}: choose auto, embedded or kube-apiserver")
    if missing:
        raise StartFailedError(
            f"no {' and no '.join(missing)}: set KUBEBUILDER_ASSETS to the directory that holds them, "
            "put them on PATH, or use --api embedded"
        )
    return KubeApiServer(options, guardian, found)
