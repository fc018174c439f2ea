"""A request on its way through the router, and the response of the replica that answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman_protocols.glossaries.packed import Packed
from dragoman_router.fleet.backend import Backend, ReplicaEndpoint
from dragoman_router.fleet.connections import Connection, Reply


@dataclass(slots=True)
class Job:
    """A request that is being forwarded.

    Args:
        head: Request line and headers for a replica.
        caller: Name of the client; clients take turns in the queue.
        deadline_s: On the loop's clock; time in which its deployment has no available replica is added.
        glossaries: Those that its head names, for replicas that lack them.
        budget_s: Seconds that it had when it arrived.
        tried: Replicas that failed since it was last queued.
        broken: Attempts whose connection was lost.
        own_limit: Whether the client set the deadline; nothing is added then.
        sends_tag: Whether the replica receives its tag.
    """

    head: bytes
    body: bytes
    keys: tuple[str, ...]
    caller: str
    deadline_s: float
    glossaries: tuple[Packed, ...] = ()
    budget_s: float = 0.0
    tried: list[ReplicaEndpoint] = field(default_factory=list)
    broken: int = 0
    attempts: int = 0
    queued_s: float = 0.0
    own_limit: bool = False
    sends_tag: bool = False
    attached: int = 0


@dataclass(slots=True)
class Answered:
    """A replica's response, complete or started; `Proxy.close` it in any case."""

    reply: Reply
    backend: Backend
    endpoint: ReplicaEndpoint
    connection: Connection
