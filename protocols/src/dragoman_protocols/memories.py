"""Translation memories that come as files in TMX."""

from __future__ import annotations

from dragoman_contract.memories import segment_key
from dragoman_contract.tmx import decoded, read_units
from dragoman_protocols.errors import InvalidFieldError


def read_memory(content: bytes, source_lang: str | None, target_lang: str) -> dict[str, str]:
    """`TranslationRequest.memory` of a file; of no file none.

    Args:
        content: TMX; empty: no file.
        source_lang: BCP-47 tag; None: the language that the file's header names.
        target_lang: The same of the translations.

    Raises:
        InvalidFieldError: It cannot be read, or has no segment of the pair.
    """
    if not content:
        return {}
    try:
        units = read_units(decoded(content), source_lang, target_lang)
    except ValueError as error:
        raise InvalidFieldError(f"memory: {error}") from None
    if not units:
        source = source_lang or "the language of its header"
        raise InvalidFieldError(f"memory: no segment has a translation from {source} into {target_lang}")
    memory: dict[str, str] = {}
    for segment, translation in units:
        memory.setdefault(segment_key(segment), translation)
    return memory
