"""What every kind of file is to the core: texts in one format, and a function that puts translations back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_protocols.translation import Format
from dragoman_service.text.markup import MarkupRules, chunks

MAX_TEXTS = 50_000
"""Of one file: cells, messages, paragraphs. A reader may stop behind them."""

EMBEDDED = (".docx", ".pptx", ".xlsx")
"""Kinds of documents within a document of these kinds that are translated."""

MAX_EMBEDDED_BYTES = 4 * 1024 * 1024
"""Of all documents within a document, unpacked; those beyond it, and within them, are left."""


@dataclass(frozen=True)
class FileDocument:
    """One file, read.

    Args:
        texts: In the file's order; those with nothing to translate are left out.
        format: How all of them are written.
        rebuild: Makes the file of their translations, as many and in the same order. What has not been
            translated comes back as it was.
        ignore_tags: Elements that are not translated.
        splitting_tags: Elements that always end a segment.
        non_splitting_tags: Elements that never end one.
        left: Parts with text that is not translated, such as documents within it.
    """

    texts: tuple[str, ...]
    format: Format
    rebuild: Callable[[Sequence[str]], bytes]
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    left: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """The texts without markup and what is not translated: what the engine will see, about."""
        if self.format is Format.PLAIN:
            return self.texts
        rules = MarkupRules(self.format is Format.HTML, self.ignore_tags)
        return tuple(
            " ".join(chunk.raw.strip() for chunk in chunks(text, rules) if chunk.kind == "text").strip()
            for text in self.texts
        )
