r"""Values that make a slow parser slow, by kind and size. Pure: the same value for the same kind and size.

`fields` puts them into requests. A kind is a function of a size in characters: the growth of the time that a
value costs, from one size to its double, tells a linear parser from a quadratic one. Kinds are named like regular
expressions: `<a( a=b)*` is `<a`, then ` a=b` as often as fits.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Make = Callable[[int], str]


@dataclass(frozen=True)
class Value:
    """One value.

    Args:
        text: As a form, a query or a file carries it; may contain lone surrogates.
        raw_json: As JSON carries it, where that is not the string `text`.
    """

    kind: str
    text: str
    raw_json: bytes | None = None

    @property
    def json(self) -> bytes:
        """As JSON carries it; lone surrogates are escapes, everything else is UTF-8."""
        if self.raw_json is not None:
            return self.raw_json
        try:
            return json.dumps(self.text, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return json.dumps(self.text).encode()

    @property
    def bytes(self) -> bytes:
        """As a file carries it: UTF-8, with lone surrogates as three bytes that are not UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")


UNITS = (
    # One class of characters.
    *("a", "A", "9", "0", " ", "\t", "\n", "\r\n", "\v\f\x1c\x85\u2028", "\0", "\x01\x1f\x7f\x9f"),
    *("_", "-", ".", ",", ":", ";", "/", "\\", "!?…。", "\u0301", "e\u0301\u0302\u0303"),
    *("\u200b\u200d\ufeff\u00ad", "\u202e\u05d0\u0627", "مرحبا ", "字", "我们去学校。", "नमस्ते "),
    *("👩\u200d👩\u200d👧", "🇩🇪", "𝔘", "\ud800", "\udc00\ud800", "ß", "İ", "ﬃ", "٣߂", "²½Ⅷ"),
    # Markup: openers and closers.
    *("<!--", "-->", "<", ">", "<>", "</", "<a ", "<b>", "</b>", "<script>", "<style ", '<a b="'),
    *("<!", "<![CDATA[", "<?", "<x/>", "&", "&#", "&#x", "&amp;", "&amp", '"', "'", "„“", "a'"),
    # Placeholders, addresses, markers of models.
    *("{", "{{", "{}", "[", "(", "${", "%", "%s", "%1", "%-0+ #1", "%20", "+", "|", "#", "*", "`", "~"),
    *("a@", "a.b-c+", "http://", "a.", "../", "⟦1⟧", "<|im_end|>", "<think>", "</think>", "\nNote "),
    *("Translation ", "ignore "),
    # Words, numbers and lines.
    *("a b ", "ab", "abcdefghijklmnopqrstuvwxyz ", "1,", "1 2.", "1/2-3:", "-1", "1e", "9% ", "It is. "),
    *("Mr. ", "... ", "a\n", " \n", "          a", "a\tb\n", "a,b\n", '"a""'),
    "1\n00:00:01,000 --> 00:00:02,000\na\n\n",
    # Nearly language codes.
    *("en-", "a-", "x-a-", "latn-", "us-", "1996-", "a-bb-", "abcdefgh-", "en_", "en,", "English "),
    "German (",
    # Separators of queries, forms and headers.
    *("a=b&", "a&", "=", "a=b; ", 'a="', "a=b,", "en;q=0.1,", "--b\r\n", "\r\n--"),
)
"""Repeated up to the size."""

FRAMED = (
    # Language codes and names.
    *(("en", "-en", ""), ("a", "-b", ""), ("en-a", "-bb", ""), ("en-x", "-a", ""), ("en", "-abcde", "")),
    *(("Germa", "n", ""), ("German", " ", "x")),
    # Numbers and spaces.
    *(("", "9", "x"), ("0.", "9", ""), ("-", "9", ""), ("", " ", "a"), ("a", " ", "a"), ("a", "\n", "a")),
    # Markup.
    *(("<!--", "-", ""), ("<!--", "a", ""), ("<", "a", ""), ("<a", " ", ""), ("<a", " a=b", "")),
    *(("<a ", "\"'", ""), ("<a", ' a="b"', ""), ("<script></script", " ", ""), ("<script>", "</script", "")),
    *(("&", "a", ""), ("&#", "9", ";"), ("{{", "a", "")),
    # Words, addresses, fields of forms.
    *(("a", "\u0301", ""), ("A", "a ", "."), ("", "a", "@"), ("http://a", "/a", ""), ('"', "a", '"')),
    *(("a", ".", ""), ("q=", "&q=", "")),
)
"""What is before, what is repeated up to the size, what is after."""

SHAPED: Mapping[str, Make] = {
    "nested tags": lambda size: "<b>" * (size // 7) + "</b>" * (size // 7),
    "nested tags of different names": lambda size: "".join(f"<a{at}>" for at in range(size // 8)),
    "nested braces": lambda size: "{" * (size // 2) + "}" * (size // 2),
    "many words": lambda size: " ".join(f"w{at}" for at in range(size // 6)),
    "words of every length": lambda size: " ".join("a" * at for at in range(int((2 * size) ** 0.5))),
    "many lines": lambda size: "\n".join(f"w{at}" for at in range(size // 6)),
    "many entries": lambda size: "\n".join(f"w{at}\tv{at}" for at in range(size // 12)),
    "many entries of every length": lambda size: "\n".join(
        f"{'a' * at}\tb" for at in range(1, int((2 * size) ** 0.5) - 2)
    ),
    "many fields": lambda size: "&".join(f"f{at}=" for at in range(size // 8)),
    "entity bomb": lambda size: (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "aaaaaaaaaa">'
        + "".join(f'<!ENTITY e{at + 1} "{f"&e{at};" * 10}">' for at in range(9))
        + "]><a>&e9;"
        + "a" * max(0, size - 700)
        + "</a>"
    ),
}

FRAMED_JSON = (
    *(
        ("", "[", ""),
        ("[", "[[[[]]]],", "[]]"),
        ("[", "1,", "1]"),
        ("[", '"a",', '"a"]'),
        ("[", '"",', '""]'),
    ),
    *(("[", "{},", "{}]"), ("{", '"k":1,', '"k":1}'), ('{"', "k", '":1}'), ("", "9", ""), ("0.", "9", "9")),
    *(("1e", "9", "9"), ("-", "9", "9"), ('"', "\\u0041", '"'), ('"', '\\"', '"'), ('"', "\\ud800", '"')),
    *(("", " ", "1"), ("true", "", ""), ("null", "", "")),
)
"""Raw JSON in the place of a string."""

SHAPED_JSON: Mapping[str, Make] = {
    "nested arrays": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "nested objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "nested both": lambda size: '[{"a":' * (size // 8) + "1" + "}]" * (size // 8),
    "many words": lambda size: json.dumps([f"w{at}" for at in range(size // 10)]),
    "many terms": lambda size: json.dumps([{"source": f"w{at}", "target": "b"} for at in range(size // 32)]),
    "many terms of every length": lambda size: json.dumps(
        [{"source": "a" * at, "target": "b"} for at in range(1, int((2 * size + 900) ** 0.5) - 28)]
    ),
    "many keys": lambda size: json.dumps({f"k{at}": 1 for at in range(size // 11)}),
    "integer that Python reads": lambda size: "9" * min(4300, max(1, size)),
}


def _framed(before: str, unit: str, after: str) -> tuple[str, Make]:
    def make(size: int) -> str:
        room = max(0, size - len(before) - len(after))
        return before + unit * (room // max(1, len(unit))) + after

    # As a literal: surrogates and controls can be in no log.
    return repr(before + f"({unit})*" * bool(unit) + after)[1:-1], make


def _kind(name: str, make: Make, *, is_json: bool) -> Callable[[int], Value]:
    def value(size: int) -> Value:
        text = make(size)
        return Value(name, text, text.encode() if is_json else None)

    return value


def _kinds() -> Iterator[tuple[str, Callable[[int], Value]]]:
    texts = [*(_framed("", unit, "") for unit in UNITS), *(_framed(*each) for each in FRAMED)]
    for name, make in [*texts, *SHAPED.items()]:
        yield name, _kind(name, make, is_json=False)
    for name, make in [*(_framed(*each) for each in FRAMED_JSON), *SHAPED_JSON.items()]:
        yield f"json {name}", _kind(f"json {name}", make, is_json=True)


KINDS: Mapping[str, Callable[[int], Value]] = MappingProxyType(dict(_kinds()))
"""By name: a value of about as many characters; a few more where the frame is larger."""
