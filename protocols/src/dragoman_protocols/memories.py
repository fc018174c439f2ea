"""Translation memories: files in TMX, and when a segment of a text is one of theirs."""

from __future__ import annotations

from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.tmx import decoded, read_units


def segment_key(segment: str) -> str:
    """What two segments have in common that are the same but for white space, in which files differ."""
    return " ".join(segment.split())


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
