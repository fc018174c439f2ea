"""Reads objects of the Kubernetes API into deployments and replicas; missing fields get their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME
from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_contract.languages import Languages
from dragoman_contract.routing import (
    DEFAULT_WEIGHT,
    MAX_IN_FLIGHT_ANNOTATION,
    MAX_WEIGHT,
    WEIGHT_ANNOTATION,
)
from dragoman_router.errors import ClusterError
from dragoman_router.routing.deployments import DEFAULT_MAX_IN_FLIGHT, Deployment, Replica

Manifest = Mapping[str, Any]

IN_FLIGHT_PER_SEQUENCE = 4
"""A replica runs `maxNumSeqs` sequences and queues the rest; four times as many keep it busy no matter which finishes
first, and leave the rest where another replica, or a new one, can take them."""
MAX_IN_FLIGHT = 100_000

_LANGUAGES = TypeAdapter(tuple[Languages, ...])


def key_of(manifest: Manifest) -> str:
    """`NAMESPACE/NAME` of an object."""
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def owner_of(manifest: Manifest) -> str | None:
    """`NAMESPACE/NAME` of the TranslationDeployment to which a slice or a pod belongs; None for one of others."""
    metadata = manifest["metadata"]
    name = (metadata.get("labels") or {}).get(LABEL_DEPLOYMENT)
    return f"{metadata['namespace']}/{name}" if name else None


def deployment(manifest: Manifest) -> Deployment:
    """A TranslationDeployment.

    Raises:
        ClusterError: Its languages cannot be read.
    """
    spec = manifest.get("spec") or {}
    annotations = manifest["metadata"].get("annotations") or {}
    try:
        languages = _LANGUAGES.validate_python(spec.get("languages") or ())
    except ValidationError as error:
        raise ClusterError(f"{key_of(manifest)}: spec.languages: {error.errors()[0]['msg']}") from error
    sequences = _number((spec.get("engine") or {}).get("maxNumSeqs"), 1, MAX_IN_FLIGHT)
    limit = DEFAULT_MAX_IN_FLIGHT if sequences is None else sequences * IN_FLIGHT_PER_SEQUENCE
    annotated = _number(annotations.get(MAX_IN_FLIGHT_ANNOTATION), 1, MAX_IN_FLIGHT)
    weight = _number(annotations.get(WEIGHT_ANNOTATION), 0, MAX_WEIGHT)
    return Deployment(
        key=key_of(manifest),
        languages=languages,
        weight=DEFAULT_WEIGHT if weight is None else weight,
        max_in_flight=limit if annotated is None else annotated,
    )


def replicas_of_slices(slices: Iterable[Manifest]) -> list[Replica]:
    """The replicas that the EndpointSlices of one deployment list.

    A pod is one replica, also where several slices list it: one for each family of a dual-stack Service, or two while
    an endpoint moves. It is ready if all say so and terminating if one does; IPv6 is used if there is no other address.

    Source: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#conditions; a condition that
    is absent counts as ready, and as not terminating.
    """
    found: dict[str, Replica] = {}
    for each in sorted(slices, key=lambda one: one.get("addressType") == "IPv6"):
        port = _port(each.get("ports") or ())
        for endpoint in each.get("endpoints") or ():
            conditions = endpoint.get("conditions") or {}
            target = endpoint.get("targetRef") or {}
            # All of them stand for the same pod: https://kubernetes.io/docs/reference/kubernetes-api/ (EndpointSlice).
            for address in (endpoint.get("addresses") or ())[:1]:
                replica = Replica(
                    name=target.get("name") or address,
                    host=address,
                    port=port,
                    ready=conditions.get("ready") is not False,
                    terminating=conditions.get("terminating") is True,
                    uid=target.get("uid") or "",
                )
                key = replica.uid or replica.address
                known = found.get(key)
                if known is not None:
                    ready, terminating = (
                        known.ready and replica.ready,
                        known.terminating or replica.terminating,
                    )
                    replica = replace(known, ready=ready, terminating=terminating)
                found[key] = replica
    return list(found.values())


def _port(ports: Sequence[Manifest]) -> int:
    named = [port["port"] for port in ports if port.get("name") == ENGINE_PORT_NAME and port.get("port")]
    return (
        int(named[0])
        if named
        else int(next((port["port"] for port in ports if port.get("port")), ENGINE_PORT))
    )


def _number(value: object, minimum: int, maximum: int) -> int | None:
    """A whole number within bounds; None where the value is none."""
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if minimum <= number <= maximum else None
