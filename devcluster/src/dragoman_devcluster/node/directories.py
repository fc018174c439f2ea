"""Where the node keeps what on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman_devcluster.state import pods_directory
from dragoman_kube.objects import Manifest, key_of, uid_of

UID_LENGTH = 13
"""Characters of a uid (52 random bits) that name a pod's directory: paths below it have to stay short."""


@dataclass(frozen=True)
class Directories:
    """The directories below the cluster's state directory.

    Args:
        root: The state directory.
        checkout: Directory that stands for /opt/dragoman in containers.
    """

    root: Path
    checkout: Path

    @property
    def pods(self) -> Path:
        """One directory per pod, gone with the pod."""
        return pods_directory(self.root)

    @property
    def claims(self) -> Path:
        """One directory per PersistentVolumeClaim, which outlives the cluster."""
        return self.root / "volumes"

    def pod(self, pod: Manifest) -> Path:
        """The directory of one pod."""
        return self.pods / uid_of(pod)[:UID_LENGTH]

    def volume(self, pod: Manifest, name: str) -> Path:
        """The directory of a pod's own volume."""
        return self.pod(pod) / "volumes" / name

    def claim(self, namespace: str, name: str) -> Path:
        """The directory of a claim."""
        return self.claims / namespace / name

    def container(self, pod: Manifest, name: str) -> Path:
        """The directory for one container's own files, such as its termination message."""
        return self.pod(pod) / "containers" / name

    def log(self, pod: Manifest, container: str, *, previous: bool = False) -> Path:
        """The log of a container's current or previous run."""
        suffix = ".previous.log" if previous else ".log"
        namespace, name = key_of(pod)
        return self.root / "logs" / namespace / name / (container + suffix)
