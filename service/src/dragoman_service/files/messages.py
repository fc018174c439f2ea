"""Texts of programs: what is no language in them is put aside, and comes back with their translations.

Line breaks, tags, and placeholders of families that only files name become tags of XML: `<br id="…"/>` ends a
segment, `<g id="…">text</g>` is a pair of tags, `<x id="…"/>` all else. The sign before an access key is taken
away and set again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape

import regex

from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.values import CONTROL
from dragoman_service.text.markup import INLINE, OPAQUE
from dragoman_service.text.placeholder_families import family_pattern
from dragoman_service.text.placeholders import SIGNS, placeholders

FORMAT = Format.XML
SPLITTING_TAGS = frozenset({"br"})
NON_SPLITTING_TAGS = frozenset({"g", "x"})

BREAK = regex.compile(r"(?<![ \t])[ \t]*+[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*+")
NAME = r"(?P<close>/)?(?P<name>[A-Za-z][\w:.\-]{0,63}+|\d{1,3})"
IN_TAG = r"[^<>&\"']|\"[^\"<>]{0,2000}+\"|'[^'<>]{0,2000}+'"
TAG = regex.compile(
    rf"<{NAME}(?:\s(?:{IN_TAG}|&){{0,2000}}+)?(?P<empty>(?<=/)|/)?>"
    rf"|&lt;{NAME}(?:\s(?:{IN_TAG}|&(?![gl]t;)){{0,300}}+)?(?P<empty>(?<=/)|/)?&gt;"
    r"|<!--[^<>]{0,2000}+-->"
)
ENTITY = regex.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead",
    "title", "tr", "ul",
})  # fmt: skip
"""HTML elements that end a sentence; others, unknown ones too, stand in one."""
SPECIAL = regex.compile(r"[<>&\s--[ ]]", regex.VERSION1)
"""What a placeholder cannot have to stand in XML as it is."""

ACCESS_KEY = regex.compile(
    r"(?<![\w&_~])(?P<sign>[&_~])(?=\p{L})|(?<=(?<!\w)\p{Lu}\p{Ll}*)(?P<sign>[&_~])(?=\p{Ll})"
)
"""`&File`, `E&xit`, and not `Drag&Drop`. Source: https://doc.qt.io/qt-6/qshortcut.html#mnemonic"""
MAX_LABEL_CHARS = 80
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
AT_END = regex.compile(r"(?:\s|\.|:|…|：)*+\Z")

OURS = regex.compile(r'<(?:(?P<close>/)g|(?P<name>g|x|br) id="(?P<number>\d{1,6})"\s*(?P<alone>/)?)>')
REFERENCE = regex.compile(r"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")


@dataclass(frozen=True)
class _Part:
    """A part of a value that is not sent as text: from `start` to `end`; `pair` is where its end tag stands."""

    start: int
    end: int
    name: str
    pair: tuple[int, int] | None = None


class Message:
    """A text of a program.

    Args:
        value: As the program reads it.
        families: Names of `FAMILIES` in `placeholder_families`.
        signs: Those that mark access keys.
    """

    def __init__(self, value: str, families: frozenset[str] = frozenset(), signs: str = "") -> None:
        self.value = value
        self._sign, self._letter, shown = _access_key(value, signs)
        self._raws: list[tuple[str, str]] = []
        self._names: Counter[tuple[str, int]] = Counter()
        self.text = "".join(self._encoded(shown, families))
        """As XML."""

    def written(self, translation: str) -> str:
        """The program's text of a translation of `text`; `value` where tags were lost, doubled or invented."""
        if translation == self.text:
            return self.value
        if not self._raws:
            return self._with_sign([_unescaped(translation)])
        parts: list[str] = []
        found: Counter[tuple[str, int]] = Counter()
        open_pairs: list[int] = []
        position = 0
        for tag in OURS.finditer(translation):
            parts.append(_unescaped(translation[position : tag.start()]))
            position = tag.end()
            if tag["close"]:
                if not open_pairs:
                    return self.value
                parts.append(self._raws[open_pairs.pop()][1])
                continue
            number = int(tag["number"])
            found[tag["name"], number] += 1
            if number >= len(self._raws):
                return self.value
            parts.append(self._raws[number][0])
            if tag["name"] == "g":
                open_pairs.append(number)
        parts.append(_unescaped(translation[position:]))
        return self._with_sign(parts) if found == self._names and not open_pairs else self.value

    def _encoded(self, value: str, families: frozenset[str]) -> Iterator[str]:
        position = 0
        ends: list[tuple[int, int]] = []
        for part in _parts(value, families):
            while ends and ends[-1][0] <= part.start:
                start, end = ends.pop()
                yield _escaped(value[position:start]) + "</g>"
                position = end
            yield _escaped(value[position : part.start])
            position = part.end
            if part.name:
                number = len(self._raws)
                raw = value[part.start : part.end]
                self._raws.append((raw, value[slice(*part.pair)] if part.pair else ""))
                self._names[part.name, number] += 1
                yield f'<g id="{number}">' if part.pair else f'<{part.name} id="{number}"/>'
                if part.pair:
                    ends.append(part.pair)
            else:
                yield _escaped(value[part.start : part.end])
        for start, end in reversed(ends):
            yield _escaped(value[position:start]) + "</g>"
            position = end
        yield _escaped(value[position:])

    def _with_sign(self, parts: Sequence[str]) -> str:
        """The text with the sign of its access key: before the same letter, a word's first where there is one."""
        text = "".join(parts)
        if not self._sign:
            return text
        letter = regex.escape(self._letter)
        found = regex.search(rf"(?<!\w){letter}", text, regex.IGNORECASE) or regex.search(
            letter, text, regex.IGNORECASE
        )
        if found is None and UNSPACED.search(text):
            end = AT_END.search(text)
            at = end.start() if end else len(text)
            return f"{text[:at]}({self._sign}{self._letter.upper()}){text[at:]}"
        found = found or regex.search(r"\p{L}", text)
        return text if found is None else text[: found.start()] + self._sign + text[found.start() :]


def message_document(messages: Sequence[Message], rebuild: Callable[[Sequence[str]], bytes]) -> FileDocument:
    """The document of messages; `rebuild` gets what `Message.written` gives for their translations."""
    return FileDocument(
        tuple(message.text for message in messages),
        FORMAT,
        lambda translations: rebuild(
            [message.written(text) for message, text in zip(messages, translations, strict=True)]
        ),
        splitting_tags=SPLITTING_TAGS,
        non_splitting_tags=NON_SPLITTING_TAGS,
    )


def _access_key(value: str, signs: str) -> tuple[str, str, str]:
    """The sign before a value's access key, the key, and the value without the sign; empty where it has none."""
    if not signs or len(value) > MAX_LABEL_CHARS or "=" in value or "://" in value or "<" in value:
        return "", "", value
    found = [each for each in ACCESS_KEY.finditer(value) if each["sign"] in signs]
    if len(found) != 1 or value.count(found[0]["sign"]) != 1 or ENTITY.match(value, found[0].start()):
        return "", "", value
    at = found[0].start()
    if found[0]["sign"] != "&" and not regex.fullmatch(r"[\p{L}\p{P}\s~]++", value.replace("_", "")):
        return "", "", value
    return value[at], value[at + 1], value[:at] + value[at + 1 :]


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _unescaped(text: str) -> str:
    return REFERENCE.sub(lambda found: unescape(found[0]), text)


def _parts(value: str, families: frozenset[str]) -> list[_Part]:
    """The parts of a value in order, none over another; those without a name are placeholders that stay text."""
    found = [_Part(*each.span(), "br") for each in BREAK.finditer(value)]
    found += [_Part(*each.span(), "x") for each in family_pattern(families).finditer(value)]
    found += [_Part(*each.span(), "x") for each in CONTROL.finditer(value)]
    if SIGNS.search(value):
        found += [
            _Part(each.start, each.end, "x" if SPECIAL.search(each.text) else "")
            for each in placeholders(value)
        ]
    if "<" in value or "&" in value:
        found += _tags(value)
    found.sort(key=lambda part: (part.start, -part.end, part.name == "x"))
    kept: list[_Part] = []
    end = 0
    dropped: set[tuple[int, int]] = set()
    for part in found:
        if part.start >= end:
            kept.append(part)
            end = part.end
        else:
            dropped.add((part.start, part.end))
    return _paired(kept, value)


def _tags(value: str) -> list[_Part]:
    found = [_Part(*each.span(), "tag") for each in TAG.finditer(value)]
    for each in ENTITY.finditer(value):
        character = unescape(each[0])
        if not character.isalpha():
            found.append(_Part(*each.span(), "x"))
    return found


def _paired(parts: Sequence[_Part], value: str) -> list[_Part]:
    """Parts with their tags in pairs; blocks end a segment, and what is between the tags of code is one part."""
    partners: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    still_open: Counter[str] = Counter()
    names: dict[int, str] = {}
    for index, part in enumerate(parts):
        tag = TAG.fullmatch(value, part.start, part.end) if part.name == "tag" else None
        if tag is None or tag["name"] is None:
            continue
        name = names[index] = tag["name"].lower()
        if tag["empty"] or name in BLOCKS - OPAQUE:
            continue
        if not tag["close"]:
            stack.append((name, index))
            still_open[name] += 1
        elif still_open[name]:
            while (top := stack.pop())[0] != name:
                still_open[top[0]] -= 1
            still_open[name] -= 1
            partners[top[1]] = index
    closing = set(partners.values())
    paired: list[_Part] = []
    skipped = -1
    for index, part in enumerate(parts):
        if index <= skipped or index in closing:
            continue
        if part.name != "tag":
            paired.append(part)
        elif index in partners:
            end = parts[partners[index]]
            if names[index] in OPAQUE or _is_fixed(value[part.start : part.end]):
                skipped = partners[index]
                paired.append(_Part(part.start, end.end, "x"))
            elif end.start > part.end:
                paired.append(_Part(part.start, part.end, "g", (end.start, end.end)))
            else:
                skipped = partners[index]
                paired.append(_Part(part.start, end.end, "x"))
        else:
            name = names.get(index, "")
            paired.append(_Part(part.start, part.end, "br" if name in BLOCKS - INLINE else "x"))
    return paired


def _is_fixed(tag: str) -> bool:
    return regex.search(r"translate=[\"']?no\b|\bnotranslate\b", tag) is not None
