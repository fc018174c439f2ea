"""The languages that a pod, or all deployments of a router, offer: for APIs that list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import langcodes
from langcodes.tag_parser import LanguageTagError

from dragoman_contract.languages import ANY, Languages, is_tag
from dragoman_protocols.languages import fallbacks, normal

_COMMON = (
    "af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu ha he hi hr hu hy id ig is it "
    "ja ka kk km kn ko ky la lb lo lt lv mg mk ml mn mr ms mt my nb ne nl nn or pa pl ps pt pt-BR pt-PT ro ru "
    "rw si sk sl sn so sq sr st sv sw ta te tg th tk fil tr tt ug uk ur uz vi xh yo yue zh-Hans zh-Hant zu"
)
COMMON = tuple(_COMMON.split())
"""What is listed where every language is served: those that can also be detected, without regional variants."""


EVERY_PAIR = (Languages(source=ANY, targets=(ANY,)),)


@dataclass(frozen=True)
class Offer:
    """What can be translated.

    Args:
        sources: BCP-47 tags, each once.
        targets: For each source, what it can become.
        named_targets: Targets that a deployment lists by name rather than by "any", in lower case.
        any_source: Whether a deployment translates from every language.
        entries: The pairs as they are listed.
    """

    sources: tuple[str, ...]
    targets: Mapping[str, tuple[str, ...]]
    named_targets: frozenset[str] = frozenset()
    any_source: bool = False
    entries: tuple[Languages, ...] = EVERY_PAIR

    @cached_property
    def _pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset(listed_pairs(self.entries)) if self.entries else frozenset()

    def serves(self, source: str, target: str) -> bool:
        """Whether a pair is served: by its tags, or by those with fewer subtags."""
        targets = fallbacks(target)
        return any(
            (source_tag, target_tag) in self._pairs
            for source_tag, _ in fallbacks(source)
            for target_tag, _ in targets
        )

    def has_source(self, tag: str) -> bool:
        """Whether anything is translated from a language."""
        return not {tag for tag, _ in fallbacks(tag)}.isdisjoint(source for source, _ in self._pairs)

    def has_target(self, tag: str) -> bool:
        """Whether anything is translated into a language."""
        return not {tag for tag, _ in fallbacks(tag)}.isdisjoint(target for _, target in self._pairs)

    @cached_property
    def all_targets(self) -> tuple[str, ...]:
        """What any source can become, each once."""
        return _once(target for source in self.sources for target in self.targets[source])

    @cached_property
    def all_languages(self) -> tuple[str, ...]:
        """Every source and target, each once."""
        return _once((*self.sources, *self.all_targets))

    @cached_property
    def listed_sources(self) -> frozenset[str]:
        """The sources in lower case."""
        return frozenset(map(str.lower, self.sources))

    @cached_property
    def listed_targets(self) -> frozenset[str]:
        """The targets in lower case."""
        return frozenset(map(str.lower, self.all_targets))


def listed_pairs(languages: tuple[Languages, ...]) -> Iterator[tuple[str, str]]:
    """The pairs of a deployment in their `normal` form; `*` to `*` where it lists none."""
    for entry in languages or EVERY_PAIR:
        source = normal(entry.source)
        for target in entry.targets:
            yield source, normal(target)


def offer_of(deployments: Iterable[tuple[Languages, ...]]) -> Offer:
    """What the pairs of deployments come to, with "any" written out.

    Args:
        deployments: The pairs of each; empty means every pair.
    """
    entries = [entry for served in deployments for entry in served or EVERY_PAIR]
    named = _once(tag for entry in entries for tag in (entry.source, *entry.targets) if tag != ANY)
    universe = _once((*named, *COMMON))

    def written_out(tags: Iterable[str]) -> tuple[str, ...]:
        return _once(each for tag in tags for each in (universe if tag == ANY else (tag,)))

    targets = {
        source: _once(
            target
            for entry in entries
            if entry.source in (source, ANY)
            for target in written_out(entry.targets)
            if target != source
        )
        for source in written_out(entry.source for entry in entries)
    }
    listed = frozenset(tag.lower() for entry in entries for tag in entry.targets if tag != ANY)
    any_source = any(entry.source == ANY for entry in entries)
    sources = tuple(source for source in targets if targets[source])
    return Offer(sources, targets, listed, any_source, tuple(entries))


def name_in(tag: str, locale: str) -> str:
    """A language's name, in English where the locale is none.

    Args:
        tag: BCP-47 tag of the language.
        locale: BCP-47 tag of the language that the name is in, from anywhere.
    """
    return _name_in(tag, locale if is_tag(locale) else "en")


@lru_cache(maxsize=8192)
def _name_in(tag: str, locale: str) -> str:
    language = langcodes.Language.get(tag)
    try:
        return str(language.display_name(locale))
    except (LanguageTagError, LookupError, ValueError, TypeError):
        return str(language.display_name("en"))


def _once(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))
