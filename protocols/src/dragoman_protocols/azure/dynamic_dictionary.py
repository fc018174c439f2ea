"""Azure's dynamic dictionary: a word in a text with the translation that it gets.

`<mstrans:dictionary translation="Wortomat">wordomatic</mstrans:dictionary>`, in plain text and in HTML.
Source: https://learn.microsoft.com/azure/ai-services/translator/text-translation/how-to/use-dynamic-dictionary
"""

from __future__ import annotations

import html
import re
from dataclasses import replace

from dragoman_protocols.translation import Format, TranslationRequest

_ELEMENT = re.compile(
    r"""<[ ]?mstrans:dictionary[ ]+translation[ ]?=[ ]?(?:"([^"]*)"|'([^']*)')[ ]?>[^<]*</mstrans:dictionary>""",
    re.I,
)
_IGNORED = "mstrans"
_TAGS = re.compile(f"</?{_IGNORED}>")


def with_dictionary(text: str, request: TranslationRequest) -> TranslationRequest:
    """The options for a text: if it has entries, they are markup that is not translated."""
    if "mstrans" not in text or _ELEMENT.search(text) is None:
        return request
    written = Format.XML if request.format is Format.PLAIN else request.format
    return replace(request, format=written, ignore_tags=frozenset({_IGNORED}))


def marked(text: str, request: TranslationRequest) -> str:
    """A text as `request` of `with_dictionary` takes it: each entry is replaced by its translation, in an element."""
    if not request.ignore_tags:
        return text
    made, end = [], 0
    for match in _ELEMENT.finditer(text):
        translation = html.escape(html.unescape(match[1] or match[2] or ""), quote=False)
        made += [_written(text[end : match.start()], request), f"<{_IGNORED}>{translation}</{_IGNORED}>"]
        end = match.end()
    return "".join((*made, _written(text[end:], request)))


def restored(text: str, request: TranslationRequest) -> str:
    """A translation of what `marked` made, without the elements."""
    if not request.ignore_tags:
        return text
    bare = _TAGS.sub("", text)
    return html.unescape(bare) if request.format is Format.XML else bare


def _written(text: str, request: TranslationRequest) -> str:
    return html.escape(text, quote=False) if request.format is Format.XML else text
