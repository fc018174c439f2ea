"""Which deployments may answer a request: by name, by pair, or by the language that its text is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from dragoman_contract.languages import Languages
from dragoman_protocols.api import Need, Peek
from dragoman_protocols.errors import ModelNotFoundError, UnknownDeploymentError, UnsupportedPairError
from dragoman_protocols.offer import Offer, offer_of
from dragoman_router.dialects.asking import Request
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.pairs import Match

Detector = Callable[[str, tuple[str, ...]], str]
"""A text and the tags that come into question (none is any) → a tag, `und` where the text does not tell."""

DOCUMENT = "document"
"""Reason of a request for a document, which only one replica has."""
UNKNOWN = "und"
SAMPLE_CHARS = 1000
MAX_LISTED = 12


class Placement(NamedTuple):
    """Where a request may go.

    Args:
        keys: Deployments, one of which gets it.
        reason: Why, in a word.
        detected: The source language that was found out, where it had to be.
    """

    keys: tuple[str, ...]
    reason: str
    detected: str | None = None


async def place(
    request: Request, peek: Peek, fleet: Fleet, catalogue: Catalogue, detect: Detector
) -> Placement:
    """The deployments that may answer.

    Raises:
        UnknownDeploymentError: The one that was asked for by name is not there.
        UnsupportedPairError: None serves the pair.
    """
    if request.deployment is not None:
        if request.deployment not in fleet.backends:
            raise UnknownDeploymentError(f"no TranslationDeployment {request.deployment[:120]!r} here")
        return Placement((request.deployment,), "named")
    named: list[str] | None = None
    if peek.model is not None:
        named = fleet.named(peek.model)
        if not named:
            raise ModelNotFoundError(f"the model {peek.model[:120]!r} does not exist")
    if not peek.needs:
        return Placement(tuple(named if named is not None else sorted(fleet.backends)), "any")
    need = peek.needs[0]
    if need.source is None:
        found, detected = await _detected(need, peek.sample, fleet, detect)
    else:
        found, detected = fleet.pairs.find(need.source, need.targets), None
    keys = found.keys if named is None else tuple([key for key in found.keys if key in named])
    if not keys:
        raise UnsupportedPairError(_unsupported(need, detected, fleet, catalogue.offer()))
    return Placement(keys, found.kind if detected is None else f"{found.kind}-detected", detected)


async def _detected(need: Need, sample: str, fleet: Fleet, detect: Detector) -> tuple[Match, str | None]:
    """The deployments, and the source language where it had to be found out."""
    pairs = fleet.pairs
    sources = pairs.sources(need.targets)
    if not sources.decisive:
        return pairs.find(sources.tags[0] if sources.tags else UNKNOWN, need.targets), None
    sample = (sample or "\n".join(need.texts))[:SAMPLE_CHARS]
    # In a thread: the model takes a millisecond, and up to a second when it is first used.
    detected = await asyncio.to_thread(detect, sample, sources.tags)
    if detected == UNKNOWN:
        return Match(sources.keys, "undetected"), None
    return pairs.find(detected, need.targets), detected


def _unsupported(need: Need, detected: str | None, fleet: Fleet, offer: Offer) -> str:
    source = need.source or detected or "auto"
    wanted = f"{source} to {', '.join(need.targets[:MAX_LISTED])}"
    single = [target for target in need.targets if fleet.pairs.find(source, (target,)).keys]
    if len(need.targets) > 1 and len(single) == len(need.targets):
        return f"no single deployment serves {wanted}; ask for one target at a time"
    known = sorted(offer.all_targets)
    return f"{wanted} is not served here; targets served are {', '.join(known[:MAX_LISTED]) or 'none'}" + (
        ", …" if len(known) > MAX_LISTED else ""
    )


class Catalogue:
    """What all deployments serve together, computed once after each change.

    Args:
        fleet: The deployments.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._version = -1
        self._offer = offer_of(())

    def offer(self) -> Offer:
        """The languages of the deployments that have a weight; a wildcard stands for common languages."""
        if self._version != self._fleet.version:
            self._version = self._fleet.version
            self._offer = offer_of([deployment.languages for deployment in self._deployments()])
        return self._offer

    def pairs(self) -> tuple[Languages, ...]:
        """Their pairs as they are listed; empty means every pair."""
        listed = [deployment.languages for deployment in self._deployments()]
        return tuple([entry for each in listed for entry in each]) if all(listed) else ()

    def models(self) -> tuple[str, ...]:
        """The names of all deployments."""
        return tuple(sorted({backend.deployment.name for backend in self._fleet.backends.values()}))

    def _deployments(self) -> list[Deployment]:
        found = [self._fleet.backends[key].deployment for key in sorted(self._fleet.backends)]
        return [deployment for deployment in found if deployment.weight]
