"""Names of languages, and what a deployment for every language is listed with."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

COMMON = (
    "ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id", "it",
    "ja", "ko", "lt", "lv", "ms", "nb", "ne", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "sw", "ta", "th",
    "tr", "uk", "ur", "vi", "zh-Hans", "zh-Hant",
)  # fmt: skip
"""Listed for a deployment that takes any language: lists of languages have no way to say "any"."""


class NotLoadedError(Exception):
    """The names of languages have to be loaded first."""


_loaded = False


def load() -> None:
    """Load the names of languages, where they are not: 20 MB, and a quarter of a second. Call it in a thread."""
    global _loaded
    import langcodes

    langcodes.find("German")
    langcodes.Language.get("de").display_name("en")
    langcodes.Language.get("de").autonym()
    _loaded = True


def named(name: str) -> str | None:
    """The tag of a language that is named in any language; None where there is none of this name.

    Raises:
        NotLoadedError: `load` was not called.
    """
    langcodes = _langcodes()
    try:
        return str(langcodes.find(name).to_tag())
    except LookupError:
        return None


@lru_cache(maxsize=1024)
def english(tag: str) -> str:
    """The name of a tag in English; the tag itself where it has none.

    Raises:
        NotLoadedError: `load` was not called.
    """
    langcodes = _langcodes()
    try:
        return str(langcodes.Language.get(tag).display_name("en"))
    except ValueError:
        return tag


@lru_cache(maxsize=1024)
def own(tag: str) -> str:
    """The name of a tag in its own language.

    Raises:
        NotLoadedError: `load` was not called.
    """
    langcodes = _langcodes()
    try:
        return str(langcodes.Language.get(tag).autonym())
    except ValueError:
        return tag


def _langcodes() -> ModuleType:
    """Few routers are asked for names, so their data is not loaded with the router."""
    if not _loaded:
        raise NotLoadedError
    import langcodes

    return langcodes
