"""SubRip and WebVTT subtitles: numbers and times stay, the speech between them is translated.

Lines of a cue that are one sentence become one text, and its translation gets as many lines again; what
of different people (lines that begin with a dash or a voice) and ended sentences stay apart. The few tags that
players know are kept as HTML; all else is escaped on the way and comes back as it was.

Source: https://www.matroska.org/technical/subtitles.html#srt-subtitles, https://www.w3.org/TR/webvtt1/
"""

from __future__ import annotations

import html
import re
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded
from dragoman_service.text.markup import unescaped

TIMES = re.compile(r"\s*\d{1,3}:\d{1,2}:\d{1,2}[,.]\d{1,3}\s*-->\s*\d{1,3}:\d{1,2}:\d{1,2}[,.]\d{1,3}.*")
VTT_TIMES = re.compile(r"\s*(?:\d{2,4}:)?\d{2}:\d{2}\.\d{3}\s+-->\s+(?:\d{2,4}:)?\d{2}:\d{2}\.\d{3}.*")
TAG = re.compile(r"(</?(?:i|b|u|s|font(?:\s[^<>]*)?)>)", re.IGNORECASE)
POSITION = re.compile(r"(?:\{\\[^{}]*\})+")
"""Where and how a player shows a cue, as in `{\\an8}{\\i1}`."""
STYLE = re.compile(r"\{(\\[^{}\n]*)\}")
HTML_STYLE = re.compile(r'<img style="([^"]*)">')
"""How a player shows what follows, as in `{\\i1}`; an element without an end on the way."""

NUMBER = re.compile(r"\s*\d{1,9}\s*")

SPEAKER = re.compile(r"(?:</?[a-z][^<>]*>|\s)*[-–—]\s*", re.IGNORECASE)
"""How a line of another speaker begins."""
ENDS = re.compile(r"[.!?…。！？।:♪][\"'”’»)\]]*(?:</[a-z]+>)*\s*$", re.IGNORECASE)
"""How a line ends that the next does not continue."""

VTT_TAG = re.compile(r"(<[^<>]*>)")
VOICE = re.compile(r"\s*<v[.\s]", re.IGNORECASE)
"""How a line of another speaker begins in WebVTT."""
VTT_MOMENT = re.compile(r"<([\d:.]{9,14})>")
VTT_CLASS = re.compile(r"<(c|v|lang|b|i|u|ruby|rt)\.([^\s<>\"]{1,200})")
"""What is no tag of HTML: when a word is spoken, and classes, which are attributes on the way."""
HTML_MOMENT = re.compile(r'<wbr at="([\d:.]+)">')
HTML_CLASS = re.compile(r'<([a-z]+) classes="([^"]*)"')

MAX_END_CHARS = 200
"""How much of a line is searched for its end: the search takes time quadratic in it."""

SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class _Kind:
    """What differs between kinds of subtitles.

    Args:
        times: The line with which a cue begins.
        strict: Whether an empty line always ends a cue.
        tag: No line is broken within one.
        to_html: From the text of a cue.
        from_html: The way back.
    """

    times: re.Pattern[str]
    strict: bool
    tag: re.Pattern[str]
    to_html: Callable[[str], str]
    from_html: Callable[[str], str]


@dataclass(frozen=True)
class _Group:
    """Lines that are one text: `lines[first:after]`, and what stands before the text of the first."""

    first: int
    after: int
    prefix: str


def read_subtitles(content: bytes) -> FileDocument:
    """A file of subtitles, in UTF-8 or UTF-16 with a byte order mark.

    Raises:
        BrokenFileError: It is in another encoding.
    """
    return _read(content, SRT)


def read_vtt(content: bytes) -> FileDocument:
    """A file of WebVTT subtitles.

    Raises:
        BrokenFileError: It is none, or is in another encoding.
    """
    if not content.removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT"):
        raise BrokenFileError("the file is no WebVTT: it does not begin with WEBVTT")
    return _read(content, VTT)


def _read(content: bytes, kind: _Kind) -> FileDocument:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    encoding = "utf-16" if wide else ("utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "utf-8")
    lines = re.split(r"(\r\n|\r|\n)", decoded(content, encoding))
    spoken, breaks = lines[::2], lines[1::2]
    groups = _groups(spoken, kind)
    texts = tuple(kind.to_html(_joined(spoken, group)) for group in groups)

    def rebuild(translations: Sequence[str]) -> bytes:
        translated_lines: list[str | None] = list(spoken)
        for group, source, translation in zip(groups, texts, translations, strict=True):
            if translation == source:
                continue
            lines = _wrapped(
                kind.from_html(SPACES.sub(_without_break, translation)), group.after - group.first, kind.tag
            )
            lines[0] = group.prefix + lines[0]
            left_over = group.after - group.first - len(lines)
            translated_lines[group.first : group.after] = [*lines, *[None] * left_over]
        ends = [*breaks, ""]
        return "".join(
            line + end for line, end in zip(translated_lines, ends, strict=True) if line is not None
        ).encode(encoding)

    return FileDocument(texts, Format.HTML, rebuild, non_splitting_tags=frozenset({"c", "v", "lang"}))


def _groups(lines: Sequence[str], kind: _Kind) -> list[_Group]:
    groups: list[_Group] = []
    in_cue = continues = False
    for index, line in enumerate(lines):
        if kind.times.fullmatch(line):
            in_cue, continues = True, False
            continue
        if not line.strip():
            in_cue = (
                in_cue and not kind.strict and index + 1 < len(lines) and not _begins_cue(lines, index + 1)
            )
            continues = False
            continue
        if NUMBER.fullmatch(line) and index + 1 < len(lines) and kind.times.fullmatch(lines[index + 1]):
            in_cue = continues = False
        if not in_cue:
            continue
        if continues and not SPEAKER.match(line) and not VOICE.match(line):
            groups[-1] = _Group(groups[-1].first, index + 1, groups[-1].prefix)
        else:
            groups.append(_Group(index, index + 1, _prefix(line)))
        continues = not ENDS.search(line.rstrip()[-MAX_END_CHARS:])
    return [group for group in groups if any(map(str.isalpha, _joined(lines, group)))]


def _begins_cue(lines: Sequence[str], index: int) -> bool:
    """Whether a cue's number and times stand here: else an empty line belongs to the cue before."""
    following = lines[index : index + 2]
    return not following[0].strip() or any(TIMES.fullmatch(line) for line in following)


def _prefix(line: str) -> str:
    """The player's position and the dash, which the model shall not see."""
    position = POSITION.match(line)
    start = position.end() if position else 0
    speaker = SPEAKER.match(line, start)
    return line[: speaker.end()] if speaker and "<" not in speaker[0] else line[:start]


def _joined(lines: Sequence[str], group: _Group) -> str:
    first, *others = lines[group.first : group.after]
    return " ".join([first.removeprefix(group.prefix), *(line.strip() for line in others)])


def _without_break(blank: re.Match[str]) -> str:
    """A blank in the place of a line break and what is around it: a model's own would end a cue."""
    return " " if "\n" in blank[0] or "\r" in blank[0] else blank[0]


def _as_html(text: str) -> str:
    """Escape all but tags."""
    return "".join(part if index % 2 else _with_styles(part) for index, part in enumerate(TAG.split(text)))


def _with_styles(text: str) -> str:
    return "".join(
        f'<img style="{html.escape(part)}">' if index % 2 else html.escape(part, quote=False)
        for index, part in enumerate(STYLE.split(text))
    )


def _from_html(text: str) -> str:
    """The way back."""
    text = HTML_STYLE.sub(r"{\1}", text)
    return "".join(part if index % 2 else unescaped(part) for index, part in enumerate(TAG.split(text)))


def _vtt_as_html(text: str) -> str:
    return VTT_CLASS.sub(r'<\1 classes="\2"', VTT_MOMENT.sub(r'<wbr at="\1">', text))


def _vtt_from_html(text: str) -> str:
    text = HTML_CLASS.sub(r"<\1.\2", HTML_MOMENT.sub(r"<\1>", text))
    return text.replace("-->", "--&gt;")


SRT = _Kind(TIMES, False, TAG, _as_html, _from_html)
VTT = _Kind(VTT_TIMES, True, VTT_TAG, _vtt_as_html, _vtt_from_html)


def _wrapped(text: str, count: int, tag: re.Pattern[str]) -> list[str]:
    """Break a text into `count` lines of about the same length, or fewer where it has no more words."""
    places = _places(text, tag) if count > 1 else []
    cuts: list[tuple[int, int]] = []
    for number in range(1, count):
        near = bisect(places, (len(text) * number // count, 0))
        found = places[max(near - 1, 0) : near + 1]
        if found:
            cuts.append(min(found, key=lambda place: abs(place[0] - len(text) * number // count)))
    starts = [0, *(after for _, after in dict.fromkeys(cuts))]
    ends = [*(before for before, _ in dict.fromkeys(cuts)), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _places(text: str, tag: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where a text may be broken: blanks between words, outside tags."""
    places: list[tuple[int, int]] = []
    position = 0
    for index, part in enumerate(tag.split(text)):
        if not index % 2:
            found = [(position + blank.start(), position + blank.end()) for blank in SPACES.finditer(part)]
            places += [(start, end) for start, end in found if start > 0 and end < len(text)]
        position += len(part)
    return places
