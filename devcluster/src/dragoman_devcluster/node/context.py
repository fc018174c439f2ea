"""What every pod of the node works with."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import dataclass, field

import aiohttp

from dragoman_devcluster.errors import PodRefusedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.mirror import Mirror
from dragoman_devcluster.node.backoff import Backoff
from dragoman_devcluster.node.credentials import Credentials
from dragoman_devcluster.node.directories import Directories
from dragoman_kube.events import EventRecorder

POD_NETWORK = ipaddress.IPv4Network("127.64.0.0/12")
"""Where pods get their addresses. All of 127.0.0.0/8 is this machine on Linux without any set-up."""


@dataclass
class Addresses:
    """The loopback addresses of pods.

    They are drawn at random, so that two clusters on one machine do not meet.
    """

    taken: set[str] = field(default_factory=set)

    def take(self, wanted: str = "") -> str:
        """An address that no other pod has; `wanted`, if it is one of ours and free."""
        if wanted and wanted not in self.taken and ipaddress.IPv4Address(wanted) in POD_NETWORK:
            self.taken.add(wanted)
            return wanted
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
    """Which GPU belongs to which container, by index.

    Args:
        count: How many GPUs the node has.
    """

    count: int
    owners: dict[int, tuple[str, str]] = field(default_factory=dict)

    def assign(self, owner: tuple[str, str], wanted: int) -> list[int]:
        """The GPUs of a container, chosen at its first start and kept until its pod ends.

        Args:
            owner: The pod's uid and the container's name.
            wanted: How many it asks for.

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
    """What the pods of a node share.

    Args:
        name: The node's name.
        address: The node's address.
        mirror: The cluster's objects.
        events: Where to report.
        directories: Where things are on disk.
        credentials: How pods reach the API.
        backoff: How long a crashing container waits.
        guardian: Ends processes if the node dies.
        session: HTTP client for probes.
        addresses: The pods' addresses.
        devices: The GPUs.
    """

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
