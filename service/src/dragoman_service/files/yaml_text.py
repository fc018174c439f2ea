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
from dragoman_service.files.values import in_xml, is_language
from dragoman_system.live_files import LOADER, MAX_DEPTH

PLAIN = re.compile(r"[^\W\d_](?:[^\n\t:#\[\]{},&*!|>'\"%@`\\?]|:(?=\S)|(?<=\S)[#'\"])*(?<![\s:])")
"""A text that may stand without quotes, a little less than YAML allows."""

WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""That YAML takes for other values."""


SYMBOL = re.compile(r":(?:[A-Za-z_]\w*[?!]?|\"[^\"]*\"|'[^']*')")
"""Of Ruby."""


@dataclass(frozen=True)
class _Value:
    """A scalar that is translated, from character `start` to `end`; `style` as in YAML's grammar."""

    text: str
    start: int
    end: int
    style: str


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
    event: Any
    for event in yaml.parse(text, Loader=LOADER):
        is_key = bool(stack) and stack[-1] is True
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if stack and stack[-1] is not None:
            stack[-1] = not stack[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(True if isinstance(event, yaml.MappingStartEvent) else None)
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
                yield _Value(event.value, start, _end(event), event.style or "")


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
    """A translation in the style of the source where it can be."""
    if value.style in ("|", ">"):
        block = _block(raw.replace("\r\n", "\n"), translation, value.style)
        if block is not None:
            return block.replace("\n", "\r\n") if "\r\n" in raw else block
        return json.dumps(translation, ensure_ascii=False) + ("\n" if raw.endswith("\n") else "")
    if value.style == "'" and "\n" not in translation:
        return "'" + translation.replace("'", "''") + "'"
    if value.style == "" and PLAIN.fullmatch(translation) and translation.lower() not in WORDS:
        return translation
    return json.dumps(translation, ensure_ascii=False)


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
