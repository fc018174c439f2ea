"""A text of any format as segments that a model can copy faithfully, and the way back.

`prepare` replaces tags and placeholders by markers and cuts what is left into segments; `restoring.verify`
says what a model's answer did to the markers, `restoring.restore` puts back what they stand for, and
`Document.rejoin` rebuilds the whole. Segments restored as they were sent give the source byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman_protocols.translation import Format
from dragoman_service.text.markers import Role
from dragoman_service.text.markup import Chunk, MarkupRules, chunks
from dragoman_service.text.pieces import Piece, markup_pieces, plain_pieces
from dragoman_service.text.preparation import Preparation, Segment
from dragoman_service.text.runs import segments_of


@dataclass(frozen=True)
class Document:
    """A whole text.

    Args:
        segments: In order.
        between: Source before, between and after them; one more than `segments`.
    """

    segments: tuple[Segment, ...]
    between: tuple[str, ...]

    def rejoin(self, restored: Sequence[str]) -> str:
        """The document with each segment replaced.

        Args:
            restored: One a segment: what `restore` made of an answer, or `segment.source` to leave it.
        """
        parts = [self.between[0]]
        for text, after in zip(restored, self.between[1:], strict=True):
            parts += (text, after)
        return "".join(parts)


def prepare(text: str, how: Preparation) -> Document:
    """Cut a text into segments. Time grows linearly with the text.

    Args:
        text: Plain text, or a document or fragment, well formed or not.
        how: See there.
    """
    segments: list[Segment] = []
    between: list[list[str]] = [[]]
    for part in _parts(text, how):
        if isinstance(part, Segment):
            segments.append(part)
            between.append([])
        else:
            between[-1].append(part)
    return Document(tuple(segments), tuple("".join(raw) for raw in between))


def _parts(text: str, how: Preparation) -> Iterable[Segment | str]:
    if how.format is Format.PLAIN:
        yield from segments_of(plain_pieces(text, how.protect_placeholders), how)
        return
    rules = MarkupRules(
        how.format is Format.HTML, how.ignore_tags, how.splitting_tags, how.non_splitting_tags
    )
    run: list[Piece] = []
    for chunk in chunks(text, rules):
        if chunk.kind == "boundary":
            yield from segments_of(run, how)
            yield chunk.raw
            run = []
        elif chunk.kind == "text":
            run += markup_pieces(chunk.raw, how.protect_placeholders, html=rules.html)
        else:
            _add_tag(run, chunk)
    yield from segments_of(run, how)


def _add_tag(run: list[Piece], chunk: Chunk) -> None:
    """Put a tag at the end of `run`; a pair with nothing in it is one thing."""
    if chunk.pair and run and run[-1].pair == chunk.pair:
        raw = run.pop().raw + chunk.raw
        run.append(Piece(raw, raw, Role.ALONE, "tag"))
    else:
        run.append(Piece(chunk.raw, chunk.raw, Role(chunk.kind), "tag", chunk.pair))
