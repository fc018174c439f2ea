"""A translation memory: with texts those of its segments are sent that they may have, with documents all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from dragoman.files import FilesError
from dragoman_protocols.memories import decoded, read_units, segment_key

MAX_BYTES = 256 * 1024 * 1024
"""Of the file; in memory it takes several times as much."""

SENTENCE_END = re.compile(r"(?<=[.!?…。！？।۔؟;；:])[\"'”’»)\]]*\s*")

MAX_ENDS = 4
"""Of a sentence: abbreviations have some, too."""


@dataclass(frozen=True)
class Memory:
    """A translation memory.

    Args:
        translations: By the `segment_key` of what they translate.
        content: The file, which goes with documents as a whole.
    """

    translations: Mapping[str, str]
    content: bytes = field(default=b"", repr=False)

    def applying(self, texts: Iterable[str]) -> dict[str, str]:
        """The translations of segments that texts may have. Linear in the length of the texts.

        The service splits texts into sentences; here everything is tried that may be one.
        """
        return {
            key: found
            for text in texts
            for key in _candidates(text)
            if (found := self.translations.get(key)) is not None
        }

    @cached_property
    def digest(self) -> str:
        """Differs where the translations do."""
        digest = hashlib.sha256()
        for pair in sorted(self.translations.items()):
            digest.update(repr(pair).encode())
        return digest.hexdigest()


def read_memory(file: Path, source: str | None, target: str) -> Memory:
    """The segments of a TMX file with their translations.

    Args:
        file: The memory.
        source: BCP-47 tag; None: the one that the file's header names.
        target: The same of the translations.

    Raises:
        FilesError: It cannot be read, is too large, or has no segment of the pair.
    """
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise FilesError(f"the memory {file} has {size} bytes: at most {MAX_BYTES} are read; divide it")
        content = file.read_bytes()
        units = read_units(decoded(content), source, target)
    except (OSError, ValueError) as error:
        raise FilesError(f"the memory {file} cannot be read: {error}") from error
    if not units:
        raise FilesError(
            f"{file} has no segment with a translation from {source or 'the language of its header'} into {target}"
        )
    translations: dict[str, str] = {}
    for segment, translation in units:
        translations.setdefault(segment_key(segment), translation)
    return Memory(translations, content)


def _candidates(text: str) -> Iterator[str]:
    """Keys of what may be a segment of a text: the whole, and what lies between ends of sentences."""
    yield segment_key(text)
    ends = [0, *dict.fromkeys(found.end() for found in SENTENCE_END.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(dict.fromkeys(ends))]
    for first in range(len(sentences)):
        for last in range(first + 1, min(first + MAX_ENDS, len(sentences)) + 1):
            yield segment_key("".join(sentences[first:last]))
