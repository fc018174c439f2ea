"""Which deployments may answer a request: by name, by pair, or by the language that its text is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dragoman_contract.languages import ANY
from dragoman_router.dialects.asking import Ask, Request, Served
from dragoman_router.dialects.names import COMMON
from dragoman_router.errors import UnknownDeploymentError, UnsupportedPairError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.pairs import Match

Detector = Callable[[str, tuple[str, ...]], str]
"""A text and the tags that come into question (none is any) → a tag, `und` where the text does not tell."""

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
    request: Request, ask: Ask, fleet: Fleet, catalogue: Catalogue, detect: Detector
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
    if ask.model is not None:
        named = fleet.named(ask.model)
        if not named:
            raise UnknownDeploymentError(f"the model {ask.model[:120]!r} does not exist")
    if not ask.targets:
        return Placement(tuple(named if named is not None else sorted(fleet.backends)), "any")
    if ask.source is None:
        found, detected = await _detected(ask, fleet, detect)
    else:
        found, detected = fleet.pairs.find(ask.source, ask.targets), None
    keys = found.keys if named is None else tuple([key for key in found.keys if key in named])
    if not keys:
        raise UnsupportedPairError(_unsupported(ask, detected, fleet, catalogue.served()))
    return Placement(keys, found.kind if detected is None else f"{found.kind}-detected", detected)


async def _detected(ask: Ask, fleet: Fleet, detect: Detector) -> tuple[Match, str | None]:
    """The deployments, and the source language where it had to be found out."""
    pairs = fleet.pairs
    sources = pairs.sources(ask.targets)
    if not sources.decisive:
        return pairs.find(sources.tags[0] if sources.tags else UNKNOWN, ask.targets), None
    sample = (ask.sample or "\n".join(ask.texts))[:SAMPLE_CHARS]
    # In a thread: the model takes a millisecond, and up to a second when it is first used.
    detected = await asyncio.to_thread(detect, sample, sources.tags)
    if detected == UNKNOWN:
        return Match(sources.keys, "undetected"), None
    return pairs.find(detected, ask.targets), detected


def _unsupported(ask: Ask, detected: str | None, fleet: Fleet, served: Served) -> str:
    source = ask.source or detected or "auto"
    wanted = f"{source} to {', '.join(ask.targets[:MAX_LISTED])}"
    single = [target for target in ask.targets if fleet.pairs.find(source, (target,)).keys]
    if len(ask.targets) > 1 and len(single) == len(ask.targets):
        return f"no single deployment serves {wanted}; ask for one target at a time"
    known = sorted({target for targets in served.targets.values() for target in targets})
    return f"{wanted} is not served here; targets served are {', '.join(known[:MAX_LISTED]) or 'none'}" + (
        ", …" if len(known) > MAX_LISTED else ""
    )


class Catalogue:
    """What all deployments serve together, worked out once after each change.

    Args:
        fleet: The deployments.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._version = -1
        self._served = Served({}, ())

    def served(self) -> Served:
        """Pairs and models; a wildcard stands for common languages."""
        if self._version != self._fleet.version:
            self._version = self._fleet.version
            self._served = merged([backend.deployment for backend in self._fleet.backends.values()])
        return self._served


def merged(deployments: Iterable[Deployment]) -> Served:
    """The pairs and names of several deployments as one."""
    names: set[str] = set()
    targets_of: dict[str, set[str]] = {}
    for deployment in deployments:
        names.add(deployment.name)
        entries = [(entry.source, entry.targets) for entry in deployment.languages] or [(ANY, (ANY,))]
        for source, targets in entries:
            for tag in COMMON if source == ANY else (source,):
                known = targets_of.setdefault(tag, set())
                for target in targets:
                    known.update(COMMON if target == ANY else (target,))
    return Served(
        targets={source: tuple(sorted(targets_of[source] - {source})) for source in sorted(targets_of)},
        models=tuple(sorted(names)),
    )
