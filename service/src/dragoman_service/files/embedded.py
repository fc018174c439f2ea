"""Word, PowerPoint and Excel files with the documents within them, such as the workbooks that charts are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import PurePath

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files import office, spreadsheets
from dragoman_service.files.archives import Archive
from dragoman_service.files.document import MAX_EMBEDDED_BYTES, MAX_TEXTS, FileDocument

READERS: Mapping[str, Callable[[bytes, str], FileDocument]] = {
    ".docx": office.read_word,
    ".pptx": office.read_powerpoint,
    ".xlsx": spreadsheets.read_excel,
}


def with_embedded(outer: FileDocument, content: bytes, target_lang: str) -> FileDocument:
    """A document with the documents in it that can be translated.

    Args:
        outer: The document, whose `left` names them.
        content: The file.
        target_lang: BCP-47 tag.
    """
    inner = _inner(outer, content, target_lang)
    if not inner:
        return outer

    def rebuild(translations: Sequence[str]) -> bytes:
        left = iter(translations)
        whole = outer.rebuild(list(islice(left, len(outer.texts))))
        parts: dict[str, bytes] = {}
        for name, document in inner.items():
            translated = tuple(islice(left, len(document.texts)))
            if translated != document.texts:
                parts[name] = document.rebuild(translated)
        return Archive(whole).replacing(parts) if parts else whole

    texts = chain(outer.texts, *(document.texts for document in inner.values()))
    still = (f"{name}/{part}" for name, document in inner.items() for part in document.left)
    others = (name for name in outer.left if name not in inner)
    return replace(outer, texts=tuple(texts), rebuild=rebuild, left=(*others, *still))


def _inner(outer: FileDocument, content: bytes, lang: str) -> dict[str, FileDocument]:
    """The documents within one that are translated, by the names of their parts."""
    names = [name for name in outer.left if PurePath(name).suffix.lower() in READERS]
    if not names:
        return {}
    archive = Archive(content)
    found: dict[str, FileDocument] = {}
    size_bytes, count = 0, len(outer.texts)
    for name in names:
        try:
            part = archive.part(name)
            size_bytes += Archive(part).unpacked_bytes
            if size_bytes > MAX_EMBEDDED_BYTES:
                break
            document = READERS[PurePath(name).suffix.lower()](part, lang)
        except BrokenFileError:
            continue  # It is left, as one of another kind.
        count += len(document.texts)
        if count > MAX_TEXTS:
            break
        found[name] = document
    return found
