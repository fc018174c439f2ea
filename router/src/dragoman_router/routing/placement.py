"""Which deployments may answer a request: by name, by language pair, or by the language that its text is in.

A pair is matched tag by tag, as `dragoman_contract.languages.serves` has it: `zh-Hant-TW` is served exactly, else as
`zh-Hant`, else as `zh`, else as `*`. The closest deployments get the request: a pair with fewer wildcards is closer; of
those, the one that falls back over fewer subtags; of those, the one whose target is closer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman_contract.languages import ANY
from dragoman_protocols.calls import Peek
from dragoman_protocols.errors import LanguageError, UnknownDeploymentError, UnsupportedPairError
from dragoman_protocols.languages import fallbacks, listing
from dragoman_protocols.offer import Offer, listed_pairs, offer_of
from dragoman_protocols.served import Need, is_same_language, model_not_found, refusal
from dragoman_protocols.source_choice import sample_of
from dragoman_router.routing.deployments import Deployment

Rank = tuple[int, int, int]
"""Wildcards, subtags fallen back over, those of the target: smaller is closer."""

MAX_SCOPES = 256
"""Scopes of keys and tokens whose parts of the catalogue are kept."""
CACHED_MATCHES = 4096
"""Requests use few pairs, and hostile ones must not fill memory."""
CACHED_TARGETS = 4
"""Maximum number of targets of a cached match: most requests have one, and two hundred would take 20 KB each."""

DOCUMENT = "document"
"""Reason of a request for a document, which only one replica has."""
UNKNOWN = "und"
SAMPLE_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Match:
    """Deployments that serve a pair equally closely.

    Args:
        keys: Their keys, sorted; empty where none serves it.
        kind: `pair` where it is listed, `language` where a region or script fell back, `wildcard` else.
    """

    keys: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Sources:
    """The languages from which some targets are served.

    Args:
        keys: All deployments that serve the targets from some language.
        tags: Languages that they list as sources; empty where one of them takes any.
        decisive: Whether it depends on the source which of them serves it.
        common: A source of all targets; `UNKNOWN` where they have none in common.
    """

    keys: tuple[str, ...]
    tags: tuple[str, ...]
    decisive: bool
    common: str = UNKNOWN


class Placement(NamedTuple):
    """Where a request may go.

    Args:
        reason: Why, in a word.
        detected: The source language where it had to be detected; several with commas between.
    """

    keys: tuple[str, ...]
    reason: str
    detected: str | None = None


class Undetected(NamedTuple):
    """A request whose placement depends on source languages that have to be detected first.

    Args:
        samples: Texts, each with its possible tags and its targets; without possible tags, every language is possible.
    """

    samples: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


def is_scope(entry: str) -> bool:
    """Whether an entry of a scope is `NAMESPACE/NAME` or `NAMESPACE/*`."""
    namespace, slash, name = entry.partition("/")
    return (
        bool(namespace and slash and name)
        and (name == ANY or not {"/", ANY} & set(name))
        and ANY not in namespace
    )


def in_scope(key: str, scope: tuple[str, ...]) -> bool:
    """Whether a deployment is one of a scope."""
    return key in scope or f"{key.partition('/')[0]}/{ANY}" in scope


class Catalogue:
    """What all deployments serve; a change costs the pairs of one deployment, finding some a few dictionary reads."""

    def __init__(self) -> None:
        self._deployments: dict[str, Deployment] = {}
        self._listed: dict[str, list[tuple[str, str]]] = {}
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}
        self._matches: dict[tuple[str, tuple[str, ...]], Match] = {}
        self._offer: Offer | None = None
        self._names: dict[str, list[str]] = {}
        self._scoped: dict[tuple[str, ...], Catalogue] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._deployments

    def put(self, deployment: Deployment) -> None:
        """Add or update a deployment; without weight it gets requests only by its name."""
        for scope, part in self._scoped.items():
            if in_scope(deployment.key, scope):
                part.put(deployment)
        self._deployments[deployment.key] = deployment
        self._forget_derived()
        pairs = list(dict.fromkeys(listed_pairs(deployment.languages))) if deployment.weight else []
        if self._listed.get(deployment.key, []) == pairs:
            return
        self._unlist(deployment.key)
        self._listed[deployment.key] = pairs
        for source, target in pairs:
            before = self._keys.get((source, target), ())
            self._keys[source, target] = tuple(sorted((*before, deployment.key)))
            sources = self._sources.setdefault(target, {})
            sources[deployment.key] = (*sources.get(deployment.key, ()), source)

    def remove(self, key: str) -> None:
        """Remove a deployment."""
        for part in self._scoped.values():
            part.remove(key)
        self._deployments.pop(key, None)
        self._forget_derived()
        self._unlist(key)

    def within(self, scope: tuple[str, ...] | None) -> Catalogue:
        """What the deployments of a scope serve; all of them for None."""
        if scope is None:
            return self
        part = self._scoped.get(scope)
        if part is None:
            if len(self._scoped) >= MAX_SCOPES:
                self._scoped.clear()
            part = self._scoped[scope] = Catalogue()
            for key in self.keys():
                if in_scope(key, scope):
                    part.put(self._deployments[key])
        return part

    def offer(self) -> Offer:
        """The languages of the deployments that have a weight; a wildcard stands for common languages."""
        if self._offer is None:
            self._offer = self.offer_of([key for key in self.keys() if self._deployments[key].weight])
        return self._offer

    def offer_of(self, keys: Iterable[str]) -> Offer:
        """The languages of some deployments."""
        return offer_of([self._deployments[key].languages for key in keys])

    def models(self) -> tuple[str, ...]:
        """The served model names of all deployments."""
        return tuple(sorted({deployment.name for deployment in self._deployments.values()}))

    def model_of(self, key: str) -> str:
        """The served model name of a deployment."""
        return self._deployments[key].name

    def keys(self) -> tuple[str, ...]:
        """Of all deployments."""
        return tuple(sorted(self._deployments))

    def named(self, name: str) -> list[str]:
        """Keys of the deployments with this served model name, or this key."""
        if not self._names:
            for key, deployment in self._deployments.items():
                self._names.setdefault(deployment.name, []).append(key)
        return [name] if name in self._deployments else self._names.get(name, [])

    def find(self, source: str, targets: tuple[str, ...]) -> Match:
        """The deployments that serve all `targets` from `source`, the closest alone."""
        if len(targets) > CACHED_TARGETS:
            return self._find(source, targets)
        pair = source, targets
        known = self._matches.get(pair)
        if known is None:
            if len(self._matches) >= CACHED_MATCHES:
                self._matches.clear()
            known = self._matches[pair] = self._find(source, targets)
        return known

    def find_all(self, pairs: Sequence[tuple[str, tuple[str, ...]]]) -> Match:
        """The deployments that serve all targets of each source, the closest alone."""
        if len(pairs) == 1:
            return self.find(*pairs[0])
        return _closest(
            [dict(self._ranked(source, target)) for source, targets in pairs for target in targets]
        )

    def sources(self, targets: tuple[str, ...]) -> Sources:
        """The languages from which all `targets` are served, for a text in an unknown language."""
        by_key: dict[str, list[frozenset[str]]] = {}
        for target in targets:
            merged: dict[str, set[str]] = {}
            for tag, _ in fallbacks(target):
                for key, sources in self._sources.get(tag, {}).items():
                    merged.setdefault(key, set()).update(sources)
            for key, sources_of_key in merged.items():
                by_key.setdefault(key, []).append(frozenset(sources_of_key))
        complete = {key: tuple(sets) for key, sets in by_key.items() if len(sets) == len(targets)}
        every = frozenset[str]().union(*(tags for sets in complete.values() for tags in sets))
        common = (
            frozenset.intersection(*(tags for sets in complete.values() for tags in sets))
            if complete
            else every
        )
        return Sources(
            keys=tuple(sorted(complete)),
            tags=() if ANY in every else tuple(sorted(every)),
            decisive=len(set(complete.values())) > 1,
            common=UNKNOWN if ANY in every else min(common, default=UNKNOWN),
        )

    def _forget_derived(self) -> None:
        self._offer = None
        self._names.clear()

    def _unlist(self, key: str) -> None:
        for source, target in self._listed.pop(key, ()):
            left = tuple(each for each in self._keys[source, target] if each != key)
            if left:
                self._keys[source, target] = left
            else:
                del self._keys[source, target]
            sources = self._sources.get(target, {})
            sources.pop(key, None)
            if not sources:
                self._sources.pop(target, None)
        self._matches.clear()

    def _find(self, source: str, targets: tuple[str, ...]) -> Match:
        return _closest([dict(self._ranked(source, target)) for target in targets])

    def _ranked(self, source: str, target: str) -> Iterator[tuple[str, Rank]]:
        """Deployments with their rank; the closest of each comes last, so that a dictionary keeps it."""
        found = [
            (rank(source_lost, target_lost), keys)
            for source_tag, source_lost in fallbacks(source)
            for target_tag, target_lost in fallbacks(target)
            if (keys := self._keys.get((source_tag, target_tag)))
        ]
        for closeness, keys in sorted(found, reverse=True):
            for key in keys:
                yield key, closeness


def place(
    deployment: str | None, peek: Peek, catalogue: Catalogue, detected: Sequence[str] | None = None
) -> Placement | Undetected:
    """The deployments that may answer a request.

    Args:
        deployment: `NAMESPACE/NAME` where the request names one.
        peek: What it needs.
        catalogue: What is served.
        detected: A tag for each sample of `Undetected`, `und` where any deployment with its targets will do.

    Raises:
        UnknownDeploymentError: The named deployment does not exist.
        UnsupportedPairError: None serves the pair.
    """
    if deployment is not None:
        if deployment not in catalogue:
            raise UnknownDeploymentError(f"no TranslationDeployment {deployment[:120]!r} here")
        if peek.model is not None and deployment not in catalogue.named(peek.model):
            raise model_not_found(peek.model, (catalogue.model_of(deployment),))
        return Placement((deployment,), "named")
    named: list[str] | None = None
    if peek.model is not None:
        named = catalogue.named(peek.model)
        if not named:
            raise model_not_found(peek.model, catalogue.models())
    if not peek.needs:
        return Placement(catalogue.keys() if named is None else tuple(named), "any")
    if all(need.source is not None for need in peek.needs):
        needs, found = peek.needs, _find(peek.needs, catalogue)
    else:
        resolved = _resolve(peek, catalogue, detected)
        if isinstance(resolved, Undetected):
            return resolved
        needs, found = resolved
    keys = found.keys if named is None else tuple([key for key in found.keys if key in named])
    if not keys and named is not None:
        # Also those without weight.
        serving = [key for key in named if refusal(needs, catalogue.offer_of([key])) is None]
        if serving:
            return Placement(tuple(serving), "named")
    if not keys:
        raise _unsupported(needs, catalogue, named)
    if needs is peek.needs:
        return Placement(keys, found.kind)
    tags = dict.fromkeys(
        now.source for now, before in zip(needs, peek.needs, strict=True) if now.source != before.source
    )
    return Placement(keys, f"{found.kind}-detected", ",".join(map(str, tags)))


def _find(needs: Sequence[Need], catalogue: Catalogue) -> Match:
    """The deployments that serve all needs; where none does, all but the texts that are kept."""
    pairs = [(str(need.source), need.targets) for need in needs]
    found = catalogue.find_all(pairs)
    if found.keys:
        return found
    changed = [(source, _changing(source, need)) for (source, _), need in zip(pairs, needs, strict=True)]
    if changed == pairs:
        return found
    left = [pair for pair in changed if pair[1]]
    return catalogue.find_all(left) if left else Match(catalogue.keys(), "any")


def _changing(source: str, need: Need) -> tuple[str, ...]:
    """The targets for which a text does not stay as it is."""
    return tuple([each for each in need.targets if not (need.keeps and is_same_language(source, each))])


def _resolve(
    peek: Peek, catalogue: Catalogue, detected: Sequence[str] | None
) -> Undetected | tuple[tuple[Need, ...], Match]:
    """A request's needs with their detected sources, and the deployments that serve all of them."""
    samples: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    found: list[Need] = []
    serving: list[tuple[str, ...]] = []
    needs = peek.needs
    tags = iter(detected or ())
    for at, need in enumerate(peek.needs):
        if need.source is not None:
            found.append(need)
            continue
        sources = catalogue.sources(need.targets)
        if sources.decisive and detected is None:
            sample = peek.sample[:SAMPLE_CHARS] or sample_of(need.texts)
            samples.append((sample, sources.tags, need.targets))
            continue
        tag = next(tags) if sources.decisive else sources.common
        resolved = need._replace(source=tag, keeps=True)
        if not (sources.decisive and tag == UNKNOWN) and _find((resolved,), catalogue).keys:
            found.append(resolved)
            if sources.decisive:
                needs = (*needs[:at], resolved, *needs[at + 1 :])
        else:
            # The texts have no source in common: the pod detects each.
            serving.append(sources.keys)
    if samples:
        return Undetected(tuple(samples))
    match = _find(found, catalogue) if found else Match(serving.pop(), "undetected")
    for keys in serving:
        match = Match(tuple([key for key in match.keys if key in keys]), match.kind)
    return needs, match


def _unsupported(needs: Sequence[Need], catalogue: Catalogue, named: list[str] | None) -> LanguageError:
    """The error of a pod that serves what all deployments do, or those that the request names."""
    error = refusal(needs, catalogue.offer() if named is None else catalogue.offer_of(named))
    if error is not None:
        return error
    wanted = listing([f"{need.source or 'auto'} to {listing(need.targets)}" for need in needs])
    return UnsupportedPairError(
        f"no single deployment serves {wanted}; send one source and one target at a time"
    )


def rank(source_lost: int, target_lost: int) -> Rank:
    """How close a listed pair is to the requested one."""
    wildcards = (source_lost < 0) + (target_lost < 0)
    return wildcards, max(source_lost, 0) + max(target_lost, 0), max(target_lost, 0)


def kind_of(closeness: Rank) -> str:
    """A rank in a word."""
    return "wildcard" if closeness[0] else "language" if closeness[1] else "pair"


def _closest(ranks: Sequence[Mapping[str, Rank]]) -> Match:
    """The deployments that serve all of several pairs, by the worst rank of each."""
    common = set(ranks[0]).intersection(*ranks[1:]) if ranks else set()
    if not common:
        return Match((), "none")
    worst = {key: max(each[key] for each in ranks) for key in common}
    closest = min(worst.values())
    return Match(tuple(sorted(key for key in common if worst[key] == closest)), kind_of(closest))
