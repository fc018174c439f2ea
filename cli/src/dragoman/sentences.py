"""The demo's sentences: texts with the translations that the demo model was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Sentence(NamedTuple):
    """One line of a sentences file."""

    source_lang: str
    """BCP-47 tag of `text`."""
    target_lang: str
    """BCP-47 tag of `expected`."""
    text: str
    expected: str

    @property
    def request(self) -> dict[str, str]:
        """It as a native request."""
        return {"text": self.text, "source_lang": self.source_lang, "target_lang": self.target_lang}


def read(path: Path) -> list[Sentence]:
    """Read tab-separated lines `source_lang, target_lang, text, expected`.

    Args:
        path: A UTF-8 file; empty lines and lines that begin with ``#`` are skipped.

    Raises:
        ValueError: A line does not have four fields; the message names the file and the line.
    """
    sentences = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != len(Sentence._fields):
            raise ValueError(f"{path}, line {number}: {len(fields)} tab-separated fields, not 4")
        sentences.append(Sentence(*fields))
    return sentences


def table(rows: list[tuple[Sentence, str]]) -> str:
    """A table of sentences and their translations; wrong ones show what was expected."""
    width = max((len(sentence.text) for sentence, _ in rows), default=0)
    lines = []
    for sentence, translation in rows:
        mark = "✓" if translation == sentence.expected else "✗"
        pair = f"{sentence.source_lang}→{sentence.target_lang}"
        lines.append(f"{mark} {pair:<6} {sentence.text:<{width}}  {translation}")
        if translation != sentence.expected:
            lines.append(f"  {'':<6} {'':>{width}}  expected: {sentence.expected}")
    return "\n".join(lines)
