"""YAML: values that are language, replaced in place; keys, comments and all else stay as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.messages import Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.spelling import Spelling
from dragoman_service.files.values import in_xml, is_language
from dragoman_service.text.line_positions import BLANK, with_line_breaks
from dragoman_system.live_files import LOADER, MAX_DEPTH

PLAIN = re.compile(r"[^\W\d_](?:[^\n\t:#\[\]{},&*!|>'\"%@`\\?]|:(?=\S)|(?<=\S)[#'\"])*(?<![\s:])")
"""A text that may stand without quotes, a little less than YAML allows."""

WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""That YAML takes for other values."""


SYMBOL = re.compile(r":(?:[A-Za-z_]\w*[?!]?|\"[^\"]*\"|'[^']*')")
"""Of Ruby."""


ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\n])|[^\\\n]")
MEANINGS = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
            "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip
"""Of an escape in double quotes. Source: https://yaml.org/spec/1.2.2/#57-escaped-characters"""

QUOTE = "'"
PARAGRAPH = re.compile(r"((?<![ \t])[ \t]*+\n[ \t]*+\n\s*+)")
"""A line break in a folded text; a single one is a blank."""


@dataclass(frozen=True)
class _Value:
    """A scalar that is translated, from character `start` to `end`; `style` as in YAML's grammar."""

    text: str
    start: int
    end: int
    style: str
    in_flow: bool


def read_yaml_file(content: bytes) -> FileDocument:
    """A .yaml or .yml file, of one document or several. Aliases are not expanded.

    Raises:
        BrokenFileError: It is none, or is nested too deep.
    """
    encoding = marked_encoding(content) or "utf-8"
    text = decoded(content, encoding)
    try:
        values = list(_values(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise BrokenFileError(f"the file is no YAML{f', line {mark.line + 1}' if mark else ''}") from None
    except (ValueError, RecursionError) as error:
        raise BrokenFileError(f"the file is no YAML that can be read: {str(error)[:200]}") from None

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for value, translation in zip(values, translations, strict=True):
            raw = text[value.start : value.end]
            new = raw if translation == value.text else _written(value, raw, in_xml(translation))
            written += (text[position : value.start], new)
            position = value.end
        return "".join([*written, text[position:]]).encode(encoding)

    return message_document([Message(value.text) for value in values], rebuild)


def _values(text: str) -> Iterator[_Value]:
    """The values of mappings and the items of sequences."""
    # For each open collection: whether it is a mapping whose next node is a key.
    stack: list[bool | None] = []
    flow: list[bool] = []
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        is_key = bool(stack) and stack[-1] is True
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            flow.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if stack and stack[-1] is not None:
            stack[-1] = not stack[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(True if isinstance(event, yaml.MappingStartEvent) else None)
            flow.append(bool(event.flow_style))
            if len(stack) > MAX_DEPTH:
                raise BrokenFileError(f"the file is nested more than {MAX_DEPTH} deep")
        elif (
            isinstance(event, yaml.ScalarEvent)
            and not is_key
            and event.tag in (None, "tag:yaml.org,2002:str", "!")
        ):
            plain = event.style in (None, "")
            kept = plain and (event.value.lower() in WORDS or SYMBOL.fullmatch(event.value))
            if is_language(event.value) and not kept:
                start = _content_start(event, text)
                yield _Value(event.value, start, _end(event), event.style or "", any(flow))


def _end(event: Any) -> int:
    end: int = event.end_mark.index
    return end


def _content_start(event: Any, text: str) -> int:
    """Behind an anchor or a tag."""
    start: int = event.start_mark.index
    if event.anchor is None and event.tag is None:
        return start
    found = re.compile(r"(?:[&!]\S*\s+)+").match(text, start)
    return found.end() if found else start


def _written(value: _Value, raw: str, translation: str) -> str:
    """A translation in the style of the source, with its escapes and lines, where it can be."""
    quoted = json.dumps(translation, ensure_ascii=False)
    is_block = value.style in ("|", ">")
    if not value.style and "\n" not in raw and PLAIN.fullmatch(translation):
        return translation if translation.lower() not in WORDS else quoted
    source = raw.replace("\r\n", "\n")
    for written in _candidates(value.style, source, translation):
        # Readers differ in what a plain text may have within brackets.
        if (value.style or not value.in_flow) and _means(written, translation):
            return written.replace("\n", "\r\n") if "\r\n" in raw else written
    return quoted + ("\n" if is_block and raw.endswith("\n") else "")


def _candidates(style: str, source: str, translation: str) -> Iterator[str]:
    if style in ("|", ">"):
        if style == ">":
            head, _, body = source.partition("\n")
            text = body.strip("\n ")
            lines = _with_lines(text, translation.rstrip("\n"))
            yield f"{head}\n{body.replace(text, lines)}" if text else source
        block = _block(source, translation, style)
        if block is not None:
            yield block
    elif style == "'":
        yield f"'{_with_lines(source[1:-1], translation.replace(QUOTE, QUOTE * 2))}'"
    elif style == '"':
        spelling = Spelling(map(_meaning, ESCAPE.finditer(source[1:-1])))
        (written,) = spelling.of([translation], lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
        yield f'"{_with_lines(source[1:-1], written)}"'
    else:
        yield _with_lines(source, translation)


def _with_lines(source: str, text: str) -> str:
    """A text in the lines of its source, if it has as many paragraphs."""
    sources, texts = PARAGRAPH.split(source), re.split(r"(\n)", text)
    if len(sources) != len(texts):
        return text
    pairs = zip(sources, texts, strict=True)
    return "".join(
        paragraph if number % 2 else with_line_breaks([target], BLANK.findall(paragraph))[0]
        for number, (paragraph, target) in enumerate(pairs)
    )


def _meaning(found: re.Match[str]) -> tuple[str, str]:
    """A character of a text in double quotes, and how it is written."""
    raw = found[0]
    if len(raw) == 1:
        return raw, raw
    return (chr(int(raw[2:], 16)) if len(raw) > 2 else MEANINGS.get(raw[1], raw[1])), raw


def _means(written: str, text: str) -> bool:
    """Whether a scalar is read as a text; the line breaks at the end of a block are not its translation's."""
    try:
        (found,) = yaml.load(f"- {written}", Loader=LOADER)  # noqa: S506
    except (yaml.YAMLError, ValueError, TypeError):
        return False
    return isinstance(found, str) and found.rstrip("\n") == text.rstrip("\n")


def _block(raw: str, translation: str, style: str) -> str | None:
    """A block scalar with another text; None where its lines begin with blanks or are blank."""
    head, _, body = raw.partition("\n")
    first = next((line for line in body.split("\n") if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" "))]
    lines = translation.rstrip("\n").split("\n")
    if not indent or re.search(r"\d", head.partition("#")[0]) or lines[0][:1] in ("", " ", "\t"):
        return None
    if style == ">" and any(line.startswith((" ", "\t")) for line in lines):
        return None
    blank_end = body[len(body.rstrip("\n ")) :]
    # In a folded block a line break is one more.
    text = re.sub(r"\n+", r"\g<0>\n", "\n".join(lines)) if style == ">" else "\n".join(lines)
    return f"{head}\n" + "\n".join(indent + line if line else "" for line in text.split("\n")) + blank_end
