"""DeepL's language codes and BCP-47 tags.

The codes are BCP-47 in capitals, but for a few habits: a source has no region, Norwegian is `NB`, and
English and Portuguese are targets only in one of their variants.
Source: https://developers.deepl.com/docs/getting-started/supported-languages
"""

from __future__ import annotations

from typing import Any

from dragoman_protocols.deepl.errors import unsupported
from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.languages import canonical, language, primary
from dragoman_protocols.offer import Offer

FORMAL = frozenset({"de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru"})
"""Primary subtags of the targets that have a formality at DeepL."""

SIMPLIFIED = "zh-Hans"

VARIANTS = {
    "en": ("en-GB", "en-US"),
    "pt": ("pt-BR", "pt-PT"),
    "zh": ("zh", SIMPLIFIED, "zh-Hant"),
    SIMPLIFIED: ("zh", SIMPLIFIED),
}
"""How a target is listed that DeepL knows by other names: Weblate asks for simplified Chinese as `ZH`."""

CODES = {"no": "NB", "cmn": "ZH"}
"""Primary subtags that DeepL calls otherwise."""


def source_tag(code: str, offer: Offer) -> str:
    """The tag of a source language; whether it names a language is checked with the pair.

    A language of which only variants are served is the first of them: `ZH` is `zh-Hans` where that is listed.

    Args:
        code: As DeepL writes it, in any casing; sources have no variants.
        offer: The languages that are served.

    Raises:
        InvalidFieldError: It is no such code.
    """
    tag = _canonical(code, "source_lang")
    if "-" in tag:
        raise unsupported("source_lang")
    if offer.any_source or tag in offer.listed_sources:
        return tag
    return next((each for each in offer.sources if each.lower().startswith(f"{tag}-")), tag)


def target_tag(code: str, offer: Offer) -> str:
    """The tag of a target language; whether it names a language is checked with the pair.

    A variant of English becomes English where `en` is listed and the variant is not: DeepL's clients have to name a
    variant, and a model that writes English may not know the language by another name. `ZH` is simplified Chinese,
    as at DeepL, where `zh-Hans` is listed and `zh` is not.

    Args:
        code: As DeepL writes it, in any casing.
        offer: The languages that are served.

    Raises:
        InvalidFieldError: It is no such code.
    """
    tag = _canonical(code, "target_lang")
    listed = offer.named_targets
    if tag.startswith("en-") and tag.lower() not in listed and "en" in listed:
        return "en"
    if tag == "zh" and tag not in listed and SIMPLIFIED.lower() in listed:
        return SIMPLIFIED
    return tag


def has_formality(tag: str) -> bool:
    """Whether a target has a formality."""
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


def primary_code(tag: str) -> str:
    """The language of a tag without regions and scripts, in lower case: `nb` for `no`."""
    return source_code(tag).lower()


def source_tags(offer: Offer) -> set[str]:
    """What is listed as sources: languages without regions and scripts."""
    return {primary_code(tag) for tag in offer.sources}


def target_tags(offer: Offer) -> set[str]:
    """What is listed as targets, by the names that DeepL's clients use."""
    return {variant for tag in offer.all_targets for variant in VARIANTS.get(tag, (tag,))}


def sources(offer: Offer) -> list[dict[str, Any]]:
    """What `/v2/languages` lists as sources."""
    return [_listed(tag) for tag in sorted(source_tags(offer))]


def targets(offer: Offer) -> list[dict[str, Any]]:
    """What `/v2/languages` lists as targets."""
    return [
        {**_listed(tag), "supports_formality": has_formality(tag)}
        for tag in sorted(target_tags(offer), key=str.lower)
    ]


def glossary_pairs(offer: Offer) -> list[dict[str, str]]:
    """What `/v2/glossary-language-pairs` lists."""
    pairs = {
        (primary(source), primary(target)) for source in offer.sources for target in offer.targets[source]
    }
    return [
        {"source_lang": source, "target_lang": target} for source, target in sorted(pairs) if source != target
    ]


def _canonical(code: str, field: str) -> str:
    try:
        return canonical(code)
    except UnknownLanguageError:
        raise unsupported(field) from None


def _listed(tag: str) -> dict[str, Any]:
    return {"language": CODES.get(tag, tag.upper()), "name": language(tag).english}
