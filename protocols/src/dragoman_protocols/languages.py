"""Languages as models know them: names and codes from BCP-47 tags.

Source: https://www.rfc-editor.org/rfc/rfc5646 for tags, CLDR (through langcodes) for names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import langcodes
from langcodes.tag_parser import LanguageTagError

from dragoman_contract.languages import ANY, MAX_TAG_CHARS, Languages, is_tag, serves
from dragoman_protocols.errors import UnknownLanguageError

CHINESE = frozenset({"zh", "cmn"})
"""Primary subtags that prompt families mean by "Chinese"; Cantonese (yue) is a target of its own."""


MAX_SUBTAGS = 8
PRIVATE = re.compile("q[a-t][a-z]")
"""Subtags for private use."""
MAX_LISTED = 12

AUTO = "auto"
"""The source language that requests detection."""

MAX_NAME_CHARS = 100
"""Of a language. The longest English name has 60; the time to find one is quadratic in its length."""


@dataclass(frozen=True)
class Language:
    """One language as prompts name it.

    Args:
        tag: BCP-47 tag in its usual casing: `pt-BR`.
        code: Its primary subtag: `pt`.
        english: Its name in English: `Portuguese (Brazil)`.
        chinese: Its name in Chinese: `葡萄牙语（巴西）`.
    """

    tag: str
    code: str
    english: str
    chinese: str

    @property
    def is_chinese(self) -> bool:
        """Whether families that have a prompt for Chinese use it for this language."""
        return self.code in CHINESE


@dataclass(frozen=True)
class Pair:
    """What is translated into what.

    Args:
        kept: Whether texts are in the target language already, and stay as they are.
    """

    source: Language
    target: Language
    kept: bool = False


UNKNOWN = Language("und", "und", "unknown", "未知")
"""The source of a text whose language is yet to be detected."""


@lru_cache(maxsize=4096)
def language(tag: str) -> Language:
    """The language of a BCP-47 tag.

    Args:
        tag: Such as `de`, `zh-Hant` or `pt-BR`, in any casing.

    Raises:
        UnknownLanguageError: It is no such tag, or names no language.
    """
    try:
        known = _parsed(tag)
        english = known.display_name("en")
    except (LanguageTagError, LookupError) as error:
        raise UnknownLanguageError(f"{tag!r} is no language tag that is known") from error
    if known.language is None or english.startswith("Unknown language"):
        raise UnknownLanguageError(f"{tag!r} names no language that is known")
    return Language(
        tag=langcodes.standardize_tag(tag),
        code=known.language,
        english=english,
        chinese=known.display_name("zh"),
    )


def primary(tag: str) -> str:
    """The primary subtag of a tag, without the names of languages, whose data take 17 MB.

    Raises:
        UnknownLanguageError: It is no BCP-47 tag, or names no language.
    """
    try:
        known = _parsed(tag)
    except (LanguageTagError, LookupError) as error:
        raise UnknownLanguageError(f"{tag!r} is no language tag that is known") from error
    if known.language is None or not known.is_valid() or PRIVATE.fullmatch(known.language):
        raise UnknownLanguageError(f"{tag!r} names no language that is known")
    return known.language


def canonical(tag: str) -> str:
    """The canonical form of a tag: its usual casing, and `he` for `iw`; it need not name a known language.

    Raises:
        UnknownLanguageError: It has not the form of a tag, or is too long.
    """
    # Before it is cached: what is kept of a caller's input has to be short.
    if len(tag) > MAX_TAG_CHARS:
        raise _too_long(tag)
    return canonical_of_short(tag)


@lru_cache(maxsize=4096)
def canonical_of_short(tag: str) -> str:
    """The same for a tag of at most `MAX_TAG_CHARS` characters."""
    if not is_tag(tag):
        raise _no_tag(tag)
    try:
        return langcodes.standardize_tag(tag)
    except (LanguageTagError, LookupError) as error:
        raise UnknownLanguageError(f"{tag!r} is no language tag that is known") from error


def tag_of_name(name: str) -> str:
    """The tag of a language by its name: `Traditional Chinese`.

    Raises:
        UnknownLanguageError: No language has this name, or it is too long.
    """
    # Before it is cached: what is kept of a client's input has to be short.
    if len(name) > MAX_NAME_CHARS:
        raise UnknownLanguageError(
            f"the name of a language has at most {MAX_NAME_CHARS} characters; {name[:40]!r}… has {len(name)}"
        )
    return _tag_of_name(name)


def load_names() -> None:
    """Load the names of languages: 20 to 35 MB, and a quarter of a second."""
    langcodes.find("German")
    langcodes.Language.get("de").display_name("en")


@lru_cache(maxsize=1024)
def _tag_of_name(name: str) -> str:
    # NUL separates keys and values in langcodes' data: it reads beyond their ends then.
    if "\0" not in name:
        with suppress(LookupError, UnicodeEncodeError):
            return str(langcodes.find(name))
    raise UnknownLanguageError(f'{name[:40]!r} is no language; name it in English, or as BCP-47 such as "de"')


class Codes:
    """The language codes of an API that has codes of its own beside BCP-47 tags.

    Args:
        tags: The tags that its codes stand for, by the code in lower case.
        given: The codes that it answers with, by the tag.
        names: Whether a language's name is a code too.
    """

    def __init__(self, tags: Mapping[str, str], given: Mapping[str, str], *, names: bool = False) -> None:
        self._tags, self._given, self._names = tags, given, names

    def tag(self, code: str, listed: frozenset[str], side: Literal["source", "target"] = "target") -> str:
        """The tag of a code.

        Args:
            code: As the client sent it.
            listed: Tags that are served, in lower case: a code that is one of them stands for itself.
            side: For the error.

        Raises:
            UnknownLanguageError: It is none.
        """
        lowered = code.lower()
        if lowered in listed:
            return code
        found = self._tags.get(lowered)
        if found is not None:
            return found
        try:
            return canonical(tag_of_name(code) if self._names and not is_tag(code) else code)
        except UnknownLanguageError as error:
            raise UnknownLanguageError(str(error), code, side) from None

    def source(self, code: str | None, listed: frozenset[str]) -> str | None:
        """The same for a source language: None for `auto`, an empty code or none, which ask for detection.

        Raises:
            UnknownLanguageError: It is none.
        """
        return None if not code or code.lower() == AUTO else self.tag(code, listed, "source")

    def locale(self, code: str) -> str:
        """The tag of the language that names are wanted in; what is none is returned as it is."""
        return self._tags.get(code.lower(), code)

    def code(self, tag: str) -> str:
        """The code to answer with."""
        return self._given.get(tag, tag)


def _too_long(tag: str) -> UnknownLanguageError:
    return UnknownLanguageError(
        f"a language tag has at most {MAX_TAG_CHARS} characters; {tag[:40]!r}… has {len(tag)}"
    )


def _no_tag(tag: str) -> UnknownLanguageError:
    return UnknownLanguageError(f'{tag[:40]!r} is no language tag; expected BCP-47 such as "de" or "pt-BR"')


def _parsed(tag: str) -> langcodes.Language:
    """What langcodes reads in a tag.

    Raises:
        UnknownLanguageError: It has not the form of one, or is too long.
        LanguageTagError: Its parts do not go together.
    """
    if len(tag) > MAX_TAG_CHARS:
        raise _too_long(tag)
    if not is_tag(tag):
        raise _no_tag(tag)
    return langcodes.Language.get(tag)


def sources(target: Language, served: tuple[Languages, ...]) -> tuple[str, ...]:
    """Tags of the languages that are translated into `target`; empty means every language."""
    found = [entry.source for entry in served if serves((entry,), _any_of(entry), target.tag)]
    return () if ANY in found else tuple(dict.fromkeys(found))


def _any_of(entry: Languages) -> str:
    """A source that an entry covers."""
    return "und" if entry.source == ANY else entry.source


def script(tag: str) -> str | None:
    """The script that a language is written in: `zh-TW` is Hant, `sr` Cyrl; None if it is not known."""
    return langcodes.Language.get(tag).maximize().script


def fallbacks(tag: str) -> list[tuple[str, int]]:
    """The tags under which a tag may be listed, in lower case, with how many subtags it lost; `*` last, as -1."""
    parts = normal(tag[:MAX_TAG_CHARS]).split("-")[:MAX_SUBTAGS]
    found = [("-".join(parts[:length]), len(parts) - length) for length in range(len(parts), 0, -1)]
    return [*found, (ANY, -1)]


def normal(tag: str) -> str:
    """The canonical form of a tag in lower case; `*` and what is no tag as they are."""
    try:
        return canonical(tag).lower()
    except UnknownLanguageError:
        return tag.lower()


def listing(tags: Sequence[str], most: int = MAX_LISTED) -> str:
    """The first tags, as a sentence lists them."""
    return ", ".join(tags[:most]) + (", …" if len(tags) > most else "")
