"""Which deployments may answer a request: by name, by language pair, or by the language that its text is in.

A pair is matched tag by tag, as `dragoman_contract.languages.serves` has it: `zh-Hant-TW` is served exactly, else as
`zh-Hant`, else as `zh`, else as `*`. The closest deployments get the request: a pair with fewer wildcards is closer; of
those, the one that falls back over fewer subtags; of those, the one whose target is closer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman_contract.languages import ANY, MAX_TAG_CHARS, Languages
from dragoman_protocols.calls import Need, Peek
from dragoman_protocols.errors import UnknownDeploymentError, UnknownLanguageError, UnsupportedPairError
from dragoman_protocols.languages import canonical, listing
from dragoman_protocols.offer import Offer, offer_of
from dragoman_protocols.openai.api import model_not_found
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
MAX_SUBTAGS = 8

DOCUMENT = "document"
"""Reason of a request for a document, which only one replica has."""
UNKNOWN = "und"
SAMPLE_CHARS = 1000
MAX_LISTED = 12


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
    """

    keys: tuple[str, ...]
    tags: tuple[str, ...]
    decisive: bool


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
        pairs = list(dict.fromkeys(listed(deployment))) if deployment.weight else []
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
            self._offer = offer_of([deployment.languages for deployment in self._weighted()])
        return self._offer

    def pairs(self) -> tuple[Languages, ...]:
        """Their pairs as they are listed; empty means every pair."""
        found = [deployment.languages for deployment in self._weighted()]
        return tuple([entry for each in found for entry in each]) if all(found) else ()

    def models(self) -> tuple[str, ...]:
        """The served model names of all deployments."""
        return tuple(sorted({deployment.name for deployment in self._deployments.values()}))

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
        complete = {
            key: frozenset.intersection(*sets) for key, sets in by_key.items() if len(sets) == len(targets)
        }
        tags = frozenset[str]().union(*complete.values())
        return Sources(
            keys=tuple(sorted(complete)),
            tags=() if ANY in tags else tuple(sorted(tags)),
            decisive=len(set(complete.values())) > 1,
        )

    def _forget_derived(self) -> None:
        self._offer = None
        self._names.clear()

    def _weighted(self) -> list[Deployment]:
        return [self._deployments[key] for key in self.keys() if self._deployments[key].weight]

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
        return Placement((deployment,), "named")
    named: list[str] | None = None
    if peek.model is not None:
        named = catalogue.named(peek.model)
        if not named:
            raise model_not_found(peek.model, catalogue.models())
    if not peek.needs:
        return Placement(catalogue.keys() if named is None else tuple(named), "any")
    pairs = [(need.source, need.targets) for need in peek.needs if need.source is not None]
    if len(pairs) == len(peek.needs):
        needs, found = peek.needs, catalogue.find_all(pairs)
    else:
        resolved = _resolve(peek, catalogue, detected)
        if isinstance(resolved, Undetected):
            return resolved
        needs, found = resolved
    keys = found.keys if named is None else tuple([key for key in found.keys if key in named])
    if not keys:
        raise UnsupportedPairError(_unsupported(needs, catalogue))
    if needs is peek.needs:
        return Placement(keys, found.kind)
    tags = dict.fromkeys(
        now.source for now, before in zip(needs, peek.needs, strict=True) if now.source != before.source
    )
    return Placement(keys, f"{found.kind}-detected", ",".join(map(str, tags)))


def _resolve(
    peek: Peek, catalogue: Catalogue, detected: Sequence[str] | None
) -> Undetected | tuple[tuple[Need, ...], Match]:
    """A request's needs with their detected sources, and the deployments that serve all of them."""
    pairs: list[tuple[str, tuple[str, ...]]] = []
    samples: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    unknown: list[tuple[str, ...]] = []
    needs = peek.needs
    tags = iter(detected or ())
    for at, need in enumerate(peek.needs):
        if need.source is not None:
            pairs.append((need.source, need.targets))
            continue
        sources = catalogue.sources(need.targets)
        if not sources.decisive:
            pairs.append((sources.tags[0] if sources.tags else UNKNOWN, need.targets))
        elif detected is None:
            sample = peek.sample[:SAMPLE_CHARS] or sample_of(need.texts)
            samples.append((sample, sources.tags, need.targets))
        elif (tag := next(tags)) == UNKNOWN:
            unknown.append(sources.keys)
        else:
            pairs.append((tag, need.targets))
            needs = (*needs[:at], need._replace(source=tag), *needs[at + 1 :])
    if samples:
        return Undetected(tuple(samples))
    found = catalogue.find_all(pairs) if pairs else Match(unknown.pop(), "undetected")
    for serving in unknown:
        found = Match(tuple([key for key in found.keys if key in serving]), found.kind)
    return needs, found


def _unsupported(needs: tuple[Need, ...], catalogue: Catalogue) -> str:
    wanted = "; ".join(
        f"{need.source or 'auto'} to {', '.join(need.targets[:MAX_LISTED])}" for need in needs[:MAX_LISTED]
    )
    single = [(need.source or "auto", target) for need in needs for target in need.targets]
    if len(single) > 1 and all(catalogue.find(source, (target,)).keys for source, target in single):
        return f"no single deployment serves {wanted}; send one source and one target at a time"
    return f"{wanted} is not served here; served are {listing(catalogue.pairs()) or 'none'}"


def fallbacks(tag: str) -> list[tuple[str, int]]:
    """The tags under which a tag may be listed, in lower case, with how many subtags it lost; `*` last, as -1."""
    parts = _normal(tag[:MAX_TAG_CHARS]).split("-")[:MAX_SUBTAGS]
    found = [("-".join(parts[:length]), len(parts) - length) for length in range(len(parts), 0, -1)]
    return [*found, (ANY, -1)]


def _normal(tag: str) -> str:
    """The canonical form of a tag in lower case; `*` and what is no tag as they are."""
    try:
        return canonical(tag).lower()
    except UnknownLanguageError:
        return tag.lower()


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


def listed(deployment: Deployment) -> Iterable[tuple[str, str]]:
    """The pairs of a deployment in lower case; `*` to `*` where it lists none."""
    if not deployment.languages:
        return [(ANY, ANY)]
    return [
        (_normal(entry.source), _normal(target)) for entry in deployment.languages for target in entry.targets
    ]
