"""Which deployments may answer a request: by name, by pair, or by the language that its text is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from dragoman_contract.languages import Languages
from dragoman_protocols.api import Need, Peek
from dragoman_protocols.errors import UnknownDeploymentError, UnsupportedPairError
from dragoman_protocols.offer import Offer, offer_of
from dragoman_protocols.openai.api import model_not_found
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.request import Request
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
        detected: The source language where it had to be detected; several with commas between.
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
            raise model_not_found(peek.model, catalogue.models())
    if not peek.needs:
        return Placement(tuple(named if named is not None else sorted(fleet.backends)), "any")
    needs, found = await _found(peek, fleet, detect)
    keys = found.keys if named is None else tuple([key for key in found.keys if key in named])
    if not keys:
        raise UnsupportedPairError(_unsupported(needs, fleet, catalogue.offer()))
    if needs is peek.needs:
        return Placement(keys, found.kind)
    detected = dict.fromkeys(
        now.source for now, before in zip(needs, peek.needs, strict=True) if now.source != before.source
    )
    return Placement(keys, f"{found.kind}-detected", ",".join(map(str, detected)))


async def _found(peek: Peek, fleet: Fleet, detect: Detector) -> tuple[tuple[Need, ...], Match]:
    """A request's needs with the sources that had to be detected, and the deployments that serve all of them."""
    pairs = fleet.pairs
    known: list[tuple[str, tuple[str, ...]]] = []
    undetected: list[tuple[str, ...]] = []
    needs = peek.needs
    for at, need in enumerate(peek.needs):
        if need.source is not None:
            known.append((need.source, need.targets))
            continue
        sources = pairs.sources(need.targets)
        if not sources.decisive:
            known.append((sources.tags[0] if sources.tags else UNKNOWN, need.targets))
            continue
        sample = (peek.sample or "\n".join(need.texts))[:SAMPLE_CHARS]
        # In a thread: the model takes a millisecond, and up to a second when it is first used.
        detected = await asyncio.to_thread(detect, sample, sources.tags)
        if detected == UNKNOWN:
            undetected.append(sources.keys)
            continue
        known.append((detected, need.targets))
        needs = (*needs[:at], need._replace(source=detected), *needs[at + 1 :])
    found = pairs.find_all(known) if known else Match(undetected.pop(), "undetected")
    for serving in undetected:
        found = Match(tuple([key for key in found.keys if key in serving]), found.kind)
    return needs, found


def _unsupported(needs: tuple[Need, ...], fleet: Fleet, offer: Offer) -> str:
    wanted = "; ".join(
        f"{need.source or 'auto'} to {', '.join(need.targets[:MAX_LISTED])}" for need in needs[:MAX_LISTED]
    )
    single = [(need.source or "auto", target) for need in needs for target in need.targets]
    if len(single) > 1 and all(fleet.pairs.find(source, (target,)).keys for source, target in single):
        return f"no single deployment serves {wanted}; ask for one source and one target at a time"
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
