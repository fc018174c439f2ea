"""Whether the languages and the model of a request are served, and the error where they are not.

Routers and pods have the same rule: it decides which field an error names, and what is unknown rather than not served.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from dragoman_protocols.errors import (
    LanguageError,
    ModelNotFoundError,
    UnknownLanguageError,
    UnsupportedPairError,
)
from dragoman_protocols.languages import UNKNOWN, Pair, fallbacks, language, listing, normal, primary, script
from dragoman_protocols.offer import Offer


class Need(NamedTuple):
    """A source and the targets that one deployment has to serve.

    Args:
        source: BCP-47 tag in its canonical form; None where it has to be detected.
        targets: The same for the translations.
        texts: To detect the source by.
        keeps: Whether texts that are in the target language already are answered as they are, where the client names
            their language; detected ones always are.
    """

    source: str | None
    targets: tuple[str, ...]
    texts: tuple[str, ...] = ()
    keeps: bool = False

    @property
    def characters(self) -> int:
        """Code points of the texts."""
        return sum(map(len, self.texts))


def refusal(needs: Iterable[Need], offer: Offer) -> LanguageError | None:
    """The error of the first pair that is not served; None where all are."""
    for need in needs:
        for target in need.targets:
            error = refusal_of(need.source, target, offer, keeps=need.keeps)
            if error is not None:
                return error
    return None


def refusal_of(source: str | None, target: str, offer: Offer, *, keeps: bool) -> LanguageError | None:
    """The error of a pair that is not served; None where it is.

    Args:
        source: BCP-47 tag; None where it has to be detected.
        target: BCP-47 tag.
        offer: What is served.
        keeps: Whether a text that is in the target language already is answered as it is.
    """
    if source is not None and not is_known(source):
        return UnknownLanguageError(f"{source!r} names no language that is known", source, "source")
    if not is_known(target):
        return UnknownLanguageError(f"{target!r} names no language that is known", target, "target")
    if source is None:
        is_served = offer.has_target(target)
    elif normal(source) == normal(target):
        if keeps:
            return None
        return UnsupportedPairError(f"source_lang and target_lang are both {target}", target)
    else:
        is_served = offer.serves(source, target) or (keeps and is_same_language(source, target))
    return None if is_served else _unsupported(source, target, offer)


def pair_of(source: str | None, target: str, offer: Offer) -> Pair:
    """The pair, if it is served; texts in the target language are kept.

    Args:
        source: BCP-47 tag; None where it has to be detected, which gives `UNKNOWN`.
        target: BCP-47 tag.
        offer: What is served.

    Raises:
        UnknownLanguageError: A tag names no language.
        UnsupportedPairError: It is not served.
    """
    error = refusal_of(source, target, offer, keeps=True)
    if error is not None:
        raise error
    if source is None:
        return Pair(UNKNOWN, language(target))
    found = Pair(language(source), language(target))
    is_kept = found.source.tag == found.target.tag or not offer.serves(source, target)
    return Pair(found.source, found.target, kept=True) if is_kept else found


def is_same_language(source: str, target: str) -> bool:
    """Whether a text stays as it is from one into the other: regions make no difference, scripts do."""
    known = is_known(source) and is_known(target)
    return known and primary(source) == primary(target) and script(source) == script(target)


@lru_cache(maxsize=4096)
def is_known(tag: str) -> bool:
    """Whether a tag, of at most `MAX_TAG_CHARS`, is of a language."""
    try:
        primary(tag.partition("-")[0])
    except UnknownLanguageError:
        return False
    return True


def model_not_found(name: str, models: Sequence[str]) -> ModelNotFoundError:
    """There is no model of a name; there are others."""
    there = f"; there {'is' if len(models) == 1 else 'are'} {listing([*map(repr, models)])}" if models else ""
    return ModelNotFoundError(f"no model {name[:100]!r} here{there}")


def _unsupported(source: str | None, target: str, offer: Offer) -> UnsupportedPairError:
    message = f"{source or 'auto'} to {target} is not served here"
    if not offer.entries:
        return UnsupportedPairError(f"{message}: there is no deployment", target, "target")
    if source is not None and not offer.has_source(source):
        return UnsupportedPairError(f"{message}; sources are {listing(offer.sources)}", source, "source")
    if source is None or not offer.has_target(target):
        return UnsupportedPairError(f"{message}; targets are {listing(offer.all_targets)}", target, "target")
    tags = {tag for tag, _ in fallbacks(source)}
    targets = next((offer.targets[each] for each in offer.sources if normal(each) in tags), ())
    return UnsupportedPairError(f"{message}; {source} is translated into {listing(targets)}", target)
