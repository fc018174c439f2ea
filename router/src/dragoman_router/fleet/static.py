"""Deployments from a file, for use without Kubernetes.

deployments:
- name: default/european        # NAMESPACE/NAME, or a name alone
  languages: [{source: en, targets: [de, fr]}]
  replicas: [10.0.0.7:8000, "[fd00::8]:8000"]
  weight: 100                   # optional, as are servedModelName and maxInFlight
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from dragoman_contract.languages import Languages
from dragoman_contract.routing import DEFAULT_WEIGHT, MAX_WEIGHT
from dragoman_router.errors import SettingsError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.routing.deployments import DEFAULT_MAX_IN_FLIGHT, Deployment, Replica
from dragoman_system.live_files import read_yaml

ADDRESS = r"^(http://)?(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):[0-9]{1,5}/?$"


def _reachable(address: str) -> str:
    if not 0 < _replica(address).port < 65536:
        raise ValueError("a port is 1 to 65535")
    return address


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    name: Annotated[str, StringConstraints(pattern=r"^[^\s/]+(/[^\s/]+)?$", max_length=317)]
    languages: tuple[Languages, ...] = ()
    replicas: tuple[Annotated[str, StringConstraints(pattern=ADDRESS), AfterValidator(_reachable)], ...] = ()
    weight: Annotated[int, Field(ge=0, le=MAX_WEIGHT)] = DEFAULT_WEIGHT
    served_model_name: Annotated[
        str, Field(validation_alias=AliasChoices("servedModelName", "servedName"))
    ] = ""
    max_in_flight: Annotated[int, Field(ge=1)] = DEFAULT_MAX_IN_FLIGHT


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    deployments: tuple[_Entry, ...]


def read(path: Path) -> list[tuple[Deployment, list[Replica]]]:
    """The deployments and replicas in the file.

    Raises:
        SettingsError: It cannot be read or understood.
    """
    try:
        listed = _File.model_validate(read_yaml(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 (byte {error.start})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: {where}: {first['msg']}") from error
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from error
    names = [_key(entry.name) for entry in listed.deployments]
    if len(set(names)) < len(names):
        raise SettingsError(f"{path}: two deployments have the same name")
    return [
        (_deployment(entry), [_replica(address) for address in entry.replicas])
        for entry in listed.deployments
    ]


def load(path: Path, fleet: Fleet) -> None:
    """Apply the file to the fleet.

    Raises:
        SettingsError: It cannot be read or understood; the fleet stays as it was.
    """
    listed = read(path)
    for key in set(fleet.backends) - {deployment.key for deployment, _ in listed}:
        fleet.set_replicas(key, [])
        fleet.remove(key)
    for deployment, replicas in listed:
        fleet.put(deployment)
        fleet.set_replicas(deployment.key, replicas)
    fleet.synced.set()


def _key(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _deployment(entry: _Entry) -> Deployment:
    return Deployment(
        key=_key(entry.name),
        languages=entry.languages,
        served_name=entry.served_model_name,
        weight=entry.weight,
        max_in_flight=entry.max_in_flight,
    )


def _replica(address: str) -> Replica:
    bare = address.removeprefix("http://").rstrip("/")
    host, _, port = bare.rpartition(":")
    return Replica(name=bare, host=host.strip("[]"), port=int(port))
