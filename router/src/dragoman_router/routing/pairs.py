"""Which deployments serve a language pair, the closest first.

How close is decided tag by tag, as `dragoman_contract.languages.serves` has it: `zh-Hant-TW` is served exactly, else
as `zh-Hant`, else as `zh`, else as `*`. A pair with fewer wildcards is closer; of those, the one that falls back
over fewer subtags; of those, the one whose target is closer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dragoman_contract.languages import ANY
from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.languages import canonical
from dragoman_router.routing.deployments import Deployment

Rank = tuple[int, int, int]
"""Wildcards, subtags fallen back over, those of the target: smaller is closer."""

REMEMBERED = 4096
"""Answers that are kept; requests use few pairs, and hostile ones must not fill memory."""
REMEMBERED_TARGETS = 4
"""Of a request whose answer is kept: most have one, and two hundred would take 20 KB each."""
MAX_TAG_CHARS = 35
MAX_SUBTAGS = 8


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
    """What could be translated into some targets.

    Args:
        keys: All deployments that serve the targets from some language.
        tags: Languages that they list as sources; empty where one of them takes any.
        decisive: Whether it depends on the source which of them serves it.
    """

    keys: tuple[str, ...]
    tags: tuple[str, ...]
    decisive: bool


def fallbacks(tag: str) -> list[tuple[str, int]]:
    """What a tag may be listed as, in lower case, with how many subtags it lost; `*` last, as -1."""
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
    """How close a listed pair is to the one that was asked for."""
    wildcards = (source_lost < 0) + (target_lost < 0)
    return wildcards, max(source_lost, 0) + max(target_lost, 0), max(target_lost, 0)


def kind_of(closeness: Rank) -> str:
    """A rank in a word."""
    return "wildcard" if closeness[0] else "language" if closeness[1] else "pair"


class PairIndex:
    """All listed pairs; a deployment costs its own pairs to change, a look-up a few dictionary reads."""

    def __init__(self) -> None:
        self._listed: dict[str, list[tuple[str, str]]] = {}
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}
        self._sources: dict[str, dict[str, tuple[str, ...]]] = {}
        self._matches: dict[tuple[str, tuple[str, ...]], Match] = {}

    def put(self, deployment: Deployment) -> None:
        """Add a deployment, or replace what was known of it."""
        pairs = list(dict.fromkeys(listed(deployment)))
        if self._listed.get(deployment.key) == pairs:
            return
        self.remove(deployment.key)
        self._listed[deployment.key] = pairs
        for source, target in pairs:
            before = self._keys.get((source, target), ())
            self._keys[source, target] = tuple(sorted((*before, deployment.key)))
            sources = self._sources.setdefault(target, {})
            sources[deployment.key] = (*sources.get(deployment.key, ()), source)
        self._matches.clear()

    def remove(self, key: str) -> None:
        """Forget a deployment."""
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

    def find(self, source: str, targets: tuple[str, ...]) -> Match:
        """The deployments that serve all `targets` from `source`, the closest alone."""
        if len(targets) > REMEMBERED_TARGETS:
            return self._find(source, targets)
        asked = source, targets
        known = self._matches.get(asked)
        if known is None:
            if len(self._matches) >= REMEMBERED:
                self._matches.clear()
            known = self._matches[asked] = self._find(source, targets)
        return known

    def find_all(self, pairs: Sequence[tuple[str, tuple[str, ...]]]) -> Match:
        """The deployments that serve all targets of each source, the closest alone."""
        if len(pairs) == 1:
            return self.find(*pairs[0])
        return _closest(
            [dict(self._ranked(source, target)) for source, targets in pairs for target in targets]
        )

    def sources(self, targets: tuple[str, ...]) -> Sources:
        """From which languages all `targets` are served, for a text whose language is not told."""
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
