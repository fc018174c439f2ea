"""Names of languages."""

from __future__ import annotations

from functools import lru_cache

import langcodes


def load() -> None:
    """Load the names of languages: 20 to 35 MB, and a quarter of a second."""
    langcodes.find("German")
    langcodes.Language.get("de").display_name("en")


@lru_cache(maxsize=1024)
def english(tag: str) -> str:
    """The name of a tag in English; the tag itself where it has none."""
    try:
        return str(langcodes.Language.get(tag).display_name("en"))
    except ValueError:
        return tag
