"""Names of languages, and what a deployment for every language is listed with."""

from __future__ import annotations

from functools import lru_cache

COMMON = (
    "ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id", "it",
    "ja", "ko", "lt", "lv", "ms", "nb", "ne", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "sw", "ta", "th",
    "tr", "uk", "ur", "vi", "zh-Hans", "zh-Hant",
)  # fmt: skip
"""Listed for a deployment that takes any language: lists of languages have no way to say "any"."""


@lru_cache(maxsize=1024)
def english(tag: str) -> str:
    """The name of a tag in English; the tag itself where it has none."""
    # Imported where it is used: its data costs 20 MB, and few ask for names.
    import langcodes

    try:
        return langcodes.Language.get(tag).display_name("en")
    except ValueError:
        return tag


@lru_cache(maxsize=1024)
def own(tag: str) -> str:
    """The name of a tag in its own language."""
    import langcodes

    try:
        return langcodes.Language.get(tag).autonym()
    except ValueError:
        return tag
