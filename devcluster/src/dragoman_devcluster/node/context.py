"""What every pod of the node works with: addresses, GPUs, directories."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from dragoman_devcluster.errors import PodRefusedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.node.credentials import Credentials
from dragoman_devcluster.options import Backoff
from dragoman_devcluster.preload import Preload
from dragoman_devcluster.state import pods_directory
from dragoman_kube.events import EventRecorder
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Manifest, key_of, uid_of

UID_LENGTH = 13
"""Characters of a uid (52 random bits) that name a pod's directory: paths below it have to stay short."""


@dataclass(frozen=True)
class Directories:
    """The directories below the cluster's state directory."""

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


POD_NETWORK = ipaddress.IPv4Network("127.64.0.0/12")
"""Where pods get their addresses. All of 127.0.0.0/8 is this machine on Linux without any set-up."""


@dataclass
class Addresses:
    """The loopback addresses of pods.

    They are drawn at random, so that two clusters on one machine do not meet.
    """

    taken: set[str] = field(default_factory=set)

    def take(self) -> str:
        """An address that no other pod has."""
        while True:
            address = str(POD_NETWORK[random.randrange(1, POD_NETWORK.num_addresses - 1)])
            if address not in self.taken:
                self.taken.add(address)
                return address

    def give_back(self, address: str) -> None:
        """The address is free again."""
        self.taken.discard(address)


@dataclass
class Devices:
    """Which GPU belongs to which container, by index."""

    count: int
    owners: dict[int, tuple[str, str]] = field(default_factory=dict)

    def assign(self, owner: tuple[str, str], wanted: int) -> list[int]:
        """The GPUs of a container, chosen at its first start and kept until its pod ends.

        `owner` is the pod's uid and the container's name.

        Raises:
            PodRefusedError: There are not enough.
        """
        held = [index for index, holder in self.owners.items() if holder == owner]
        free = [index for index in range(self.count) if index not in self.owners]
        if len(held) + len(free) < wanted:
            raise PodRefusedError(f"{wanted} GPUs wanted, {len(held) + len(free)} of {self.count} free")
        for index in free[: wanted - len(held)]:
            self.owners[index] = owner
            held.append(index)
        return sorted(held)

    def release(self, uid: str) -> None:
        """The pod has ended."""
        self.owners = {index: owner for index, owner in self.owners.items() if owner[0] != uid}


@dataclass(frozen=True)
class NodeContext:
    """What the pods of a node share."""

    name: str
    address: str
    mirror: Mirror
    events: EventRecorder
    directories: Directories
    credentials: Credentials
    backoff: Backoff
    guardian: Guardian
    session: aiohttp.ClientSession
    addresses: Addresses
    devices: Devices
    preload: Preload | None = None
