"""JSON and ARB: values that are language; all else stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import is_language

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?|[{}]')
SIGN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')
"""Only in valid JSON: where a string does not end, they take time quadratic in the text."""

LOCALE = "@@locale"
"""Source: https://github.com/google/app-resource-bundle/wiki/ApplicationResourceBundleSpecification"""

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

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for (start, end, kept), translation in zip(places, _with_kept(places, translations), strict=True):
            raw = text[start:end]
            same = kept is None and json.loads(raw, strict=False) == translation
            written += (text[position:start], raw if same else json.dumps(translation, ensure_ascii=False))
            position = end
        return "".join([*written, text[position:]]).encode(encoding, "surrogatepass")

    return FileDocument(texts, Format.PLAIN, rebuild)


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


def _values(text: str, locale: str | None) -> tuple[list[Place], tuple[str, ...]]:
    """The values to translate or to replace, and the texts of the former."""
    places: list[Place] = []
    texts: list[str] = []
    key = ""
    depth = kept_depth = 0
    for found in TOKEN.finditer(text):
        if found[0] in "{}":
            depth += 1 if found[0] == "{" else -1
            if found[0] == "{" and locale is not None and not kept_depth and key.startswith("@"):
                kept_depth = depth
            elif depth < kept_depth:
                kept_depth = 0
        elif found[2] is not None:
            key = json.loads(f'"{found[1]}"', strict=False)
        elif locale is not None and key == LOCALE and depth == 1:
            places.append((*found.span(), locale.replace("-", "_")))
        elif not kept_depth and not (locale is not None and key.startswith("@")) and not key.startswith("$"):
            value = json.loads(f'"{found[1]}"', strict=False)
            if is_language(value):
                places.append((*found.span(), None))
                texts.append(value)
    return places, tuple(texts)
