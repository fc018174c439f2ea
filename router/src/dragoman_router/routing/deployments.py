"""TranslationDeployments and their replicas, as every source describes them."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_contract.languages import Languages
from dragoman_contract.routing import DEFAULT_WEIGHT, replica_tag

DEFAULT_MAX_IN_FLIGHT = 128


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine pod.

    Args:
        uid: Distinguishes a pod from a later one of the same name and address.
    """

    name: str
    host: str
    port: int
    ready: bool = True
    terminating: bool = False
    uid: str = ""

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def tag(self) -> str:
        """The first digits of the ids of its documents."""
        return replica_tag(self.uid, self.address)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One TranslationDeployment.

    Args:
        key: `NAMESPACE/NAME`.
        languages: Pairs that it serves; empty means every pair.
        served_name: Its model name in OpenAI's API.
        weight: Its share among those that serve the same pair, 0 to 1000.
        max_in_flight: Requests that one router has in flight with one replica.
    """

    key: str
    languages: tuple[Languages, ...] = ()
    served_name: str = ""
    weight: int = DEFAULT_WEIGHT
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT

    @property
    def name(self) -> str:
        """Its model name in OpenAI's API."""
        return self.served_name or self.key.partition("/")[2] or self.key
