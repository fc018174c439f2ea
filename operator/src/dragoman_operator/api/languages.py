"""Language tags of `spec.languages` that no language has: what the pattern of a tag cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import langcodes

from dragoman_contract.languages import ANY, Languages


def unknown_tags(languages: Iterable[Languages]) -> list[str]:
    """The tags with a subtag that the IANA registry does not have, in their order and each once.

    Private-use subtags are registered, so `qaa` and `en-XA` are known.

    Source: https://www.iana.org/assignments/language-subtag-registry, through langcodes.
    """
    tags = (tag for entry in languages for tag in (entry.source, *entry.targets))
    return list(dict.fromkeys(tag for tag in tags if tag != ANY and not _is_known(tag)))


@lru_cache(4096)
def _is_known(tag: str) -> bool:
    return bool(langcodes.tag_is_valid(tag))
