"""What `dragoman translate` did, in one line at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Summary:
    """Counts of one command. Blank lines are no texts; a document is a file without texts.

    Args:
        files_due: Files that are to be translated.
        texts_due: The same of texts: lines of the files that were opened, of standard input, or arguments.
        files: Files that were written.
        texts: Texts that were translated.
        characters: Of the texts and documents that were translated, in the source language.
        up_to_date: Files whose output is newer.
        other_kinds: Files in folders that cannot be translated.
    """

    files_due: int = 0
    texts_due: int = 0
    files: int = 0
    texts: int = 0
    characters: int = 0
    failed_files: int = 0
    failed_texts: int = 0
    up_to_date: int = 0
    other_kinds: int = 0
    began_s: float = field(default_factory=time.monotonic)

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed, and nothing was left."""
        return not (self.failed_files or self.failed_texts or self.texts_due > self.texts)

    def __str__(self) -> str:
        took_s = time.monotonic() - self.began_s
        done = [*_counts(self.files, self.texts)]
        if self.characters:
            done.append(f"{self.characters:,} characters")
        sentences = [f"translated {', '.join(done) or 'nothing'} in {took_s:.{0 if took_s >= 10 else 1}f} s"]
        if failed := [*_counts(self.failed_files, self.failed_texts)]:
            sentences.append(f"failed: {', '.join(failed)}")
        left = [
            *_counts(
                self.files_due - self.files - self.failed_files,
                self.texts_due - self.texts - self.failed_texts,
            )
        ]
        if self.up_to_date:
            left.append(f"{_count(self.up_to_date, 'file')} up to date (--overwrite translates again)")
        if self.other_kinds:
            left.append(f"{_count(self.other_kinds, 'file')} of other kinds")
        if left:
            sentences.append(f"left: {', '.join(left)}")
        return "; ".join(sentences)


def _counts(files: int, texts: int) -> Iterator[str]:
    if files:
        yield _count(files, "file")
    if texts:
        yield _count(texts, "text")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
