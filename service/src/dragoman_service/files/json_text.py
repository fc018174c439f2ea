"""JSON and ARB: values that are language; all else stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.messages import Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import is_language

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?|[{}]')
SIGN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')
"""Only in valid JSON: where a string does not end, they take time quadratic in the text."""

LOCALE = "@@locale"
"""Source: https://github.com/google/app-resource-bundle/wiki/ApplicationResourceBundleSpecification"""

MESSAGE = frozenset({"message", "defaultMessage"})
"""Members of an object that is one text. Source: https://developer.chrome.com/docs/extensions/reference/api/i18n,
https://formatjs.github.io/docs/getting-started/message-extraction"""

LANGUAGES = frozenset({"locale", "lang", "language"})
TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
"""A language's, as the value of such a member."""

MAX_DEPTH = 100


def read_json(content: bytes) -> FileDocument:
    """A .json file.

    Raises:
        BrokenFileError: It is none, or is nested too deep.
    """
    return _read(content, None)


def read_arb(content: bytes, target_lang: str) -> FileDocument:
    """An .arb file: its metadata (members that begin with `@`) stay, its `@@locale` becomes the target's.

    Args:
        content: The file.
        target_lang: BCP-47 tag.

    Raises:
        BrokenFileError: It is none, or is nested too deep.
    """
    return _read(content, target_lang)


def _read(content: bytes, locale: str | None) -> FileDocument:
    encoding = marked_encoding(content) or "utf-8"
    text = decoded(content, encoding)
    _check(text)
    places, texts = _values(text, locale)
    only_ascii = text.isascii() and "\\u" in text

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for (start, end, kept), translation in zip(places, _with_kept(places, translations), strict=True):
            raw = text[start:end]
            same = kept is None and json.loads(raw, strict=False) == translation
            written += (
                text[position:start],
                raw if same else json.dumps(translation, ensure_ascii=only_ascii),
            )
            position = end
        return "".join([*written, text[position:]]).encode(encoding, "surrogatepass")

    return message_document([Message(value, signs="&") for value in texts], rebuild)


Place = tuple[int, int, str | None]
"""From and up to which character a value stands; what becomes of it, or None for its translation."""


def _with_kept(places: Sequence[Place], translations: Sequence[str]) -> list[str]:
    left = iter(translations)
    return [next(left) if kept is None else kept for _, _, kept in places]


def _check(text: str) -> None:
    try:
        json.loads(text, parse_int=str, parse_float=str, strict=False)
    except RecursionError:
        raise BrokenFileError(f"the file is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        raise BrokenFileError(f"the file is no JSON: {str(error)[:200]}") from None
    depth = 0
    for sign in SIGN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign[0], 0)
        if depth > MAX_DEPTH:
            raise BrokenFileError(f"the file is nested more than {MAX_DEPTH} deep")


@dataclass
class _Object:
    """An object: the key under which it stands, and its own."""

    name: str
    parent: _Object | None
    keys: set[str] = field(default_factory=set)

    @property
    def is_message(self) -> bool:
        """Whether it is one text and what is said of it, as in a browser extension's messages."""
        return not MESSAGE.isdisjoint(self.keys)

    def keeps(self, key: str) -> bool:
        """Whether a value is only said of a text."""
        if self.is_message and key not in MESSAGE:
            return True
        inner: _Object | None = self
        while inner is not None and not (
            inner.name == "placeholders" and inner.parent is not None and inner.parent.is_message
        ):
            inner = inner.parent
        return inner is not None


def _values(text: str, locale: str | None) -> tuple[list[Place], tuple[str, ...]]:
    """The values to translate or to replace, and the texts of the former."""
    found_places: list[tuple[Place, _Object, str, str]] = []
    current = _Object("", None)
    key = ""
    depth = kept_depth = 0
    for found in TOKEN.finditer(text):
        if found[0] == "{":
            depth += 1
            if locale is not None and not kept_depth and key.startswith("@"):
                kept_depth = depth
            current = _Object(key, current)
        elif found[0] == "}":
            depth -= 1
            if depth < kept_depth:
                kept_depth = 0
            key, current = current.name, current.parent or current
        elif found[2] is not None:
            key = json.loads(f'"{found[1]}"', strict=False)
            current.keys.add(key)
        elif locale is not None and key == LOCALE and depth == 1:
            found_places.append(((*found.span(), locale.replace("-", "_")), current, "", ""))
        elif not kept_depth and not (locale is not None and key.startswith("@")) and not key.startswith("$"):
            value = json.loads(f'"{found[1]}"', strict=False)
            if is_language(value) and not (key.lower() in LANGUAGES and TAG.fullmatch(value)):
                found_places.append(((*found.span(), None), current, key, value))
    kept = [each for each in found_places if each[0][2] is not None or not each[1].keeps(each[2])]
    return [place for place, *_ in kept], tuple(value for place, _, _, value in kept if place[2] is None)
