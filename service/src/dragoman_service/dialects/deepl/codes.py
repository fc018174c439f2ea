"""DeepL's language codes and BCP-47 tags.

The codes are BCP-47 in capitals, but for a few habits: a source has no region, Norwegian is `NB`, and
English and Portuguese are targets only in one of their variants.
Source: https://developers.deepl.com/docs/getting-started/supported-languages
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.languages import Language, language, primary
from dragoman_protocols.offer import offer_of
from dragoman_service.dialects.deepl.errors import unsupported

FORMAL = frozenset({"de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru"})
"""Primary subtags of the targets that have a formality at DeepL."""

VARIANTS = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT"), "zh": ("zh", "zh-Hans", "zh-Hant")}
"""How a target is listed that is served without saying which variant."""

CODES = {"no": "NB", "cmn": "ZH"}
"""Primary subtags that DeepL calls otherwise."""


def source_tag(code: str) -> str:
    """The tag of a source language.

    Args:
        code: As DeepL writes it, in any casing; a variant is none of its sources.

    Raises:
        InvalidFieldError: It is no such code.
    """
    known = _language(code, "source_lang")
    if known.code != known.tag:
        raise unsupported("source_lang")
    return known.tag


def target_tag(code: str, served: tuple[Languages, ...]) -> str:
    """The tag that the core is asked for.

    A variant of English is asked for as English where a deployment lists `en` and not the variant: DeepL's
    clients have to name one, whether they care or not, and a model of which no more is said than that it
    writes English may know the language by no other name.

    Args:
        code: As DeepL writes it, in any casing.
        served: The deployment's pairs; empty means every pair.

    Raises:
        InvalidFieldError: It is no such code.
    """
    known = _language(code, "target_lang")
    listed = {tag.lower() for entry in served for tag in entry.targets}
    if known.code == "en" and known.tag.lower() not in listed and "en" in listed:
        return "en"
    return known.tag


def has_formality(tag: str) -> bool:
    """Whether a target can be asked for a tone."""
    return language(tag).code in FORMAL


def source_code(tag: str) -> str:
    """DeepL's code of a source language, given or detected: no region, no script; `UND` for a text without letters."""
    code = tag.partition("-")[0].lower()
    return CODES.get(code, code.upper())


def glossary_language(code: str) -> str:
    """A language as glossaries know it: the primary subtag, for a dictionary serves all variants.

    Raises:
        UnknownLanguageError: It is none, or a variant.
    """
    known = primary(code)
    if "-" in code or "_" in code:
        raise UnknownLanguageError(f"{code[:40]!r} is a variant; glossaries are for languages")
    return known


def sources(served: tuple[Languages, ...]) -> list[dict[str, Any]]:
    """What `/v2/languages` lists as sources."""
    return [_listed(code, code) for code in _bases(offer_of([served]).sources)]


def targets(served: tuple[Languages, ...]) -> list[dict[str, Any]]:
    """What `/v2/languages` lists as targets."""
    tags = (variant for tag in offer_of([served]).all_targets for variant in VARIANTS.get(tag, (tag,)))
    return [
        {**_listed(_target_code(tag), tag), "supports_formality": has_formality(tag)}
        for tag in sorted(set(tags), key=str.lower)
    ]


def glossary_pairs(served: tuple[Languages, ...]) -> list[dict[str, str]]:
    """What `/v2/glossary-language-pairs` lists."""
    can = offer_of([served])
    pairs = {(primary(source), primary(target)) for source in can.sources for target in can.targets[source]}
    return [
        {"source_lang": source, "target_lang": target} for source, target in sorted(pairs) if source != target
    ]


def _language(code: str, field: str) -> Language:
    try:
        return language(code)
    except UnknownLanguageError:
        raise unsupported(field) from None


def _bases(tags: Iterable[str]) -> list[str]:
    return sorted({language(tag).code for tag in tags})


def _target_code(tag: str) -> str:
    return CODES.get(tag, tag.upper())


def _listed(code: str, tag: str) -> dict[str, Any]:
    return {"language": CODES.get(code, code.upper()), "name": language(tag).english}
