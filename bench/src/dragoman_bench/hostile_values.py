"""Values that make a slow parser slow, by kind and size: pure, the same value for the same kind and size.

`hostile_fields` puts them into requests. A kind is a function of a size in characters; growth of the time that a
value costs, from one size to its double, tells a linear parser from a quadratic one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Make = Callable[[int], str]


@dataclass(frozen=True)
class Value:
    """One value.

    Args:
        kind: Name of its kind.
        text: As a form, a query or a file carries it; may hold lone surrogates.
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
        """As a file carries it: UTF-8, with lone surrogates as the three bytes that are none."""
        return self.text.encode("utf-8", "surrogatepass")


def _repeated(unit: str, before: str = "", after: str = "") -> Make:
    """`before`, as many `unit` as fit, `after`."""

    def make(size: int) -> str:
        room = max(0, size - len(before) - len(after))
        return before + unit * (room // len(unit)) + after

    return make


REPEATS = {
    # One class of characters.
    "letters": "a",
    "capitals": "A",
    "digits": "9",
    "zeros": "0",
    "spaces": " ",
    "tabs": "\t",
    "newlines": "\n",
    "returns": "\r\n",
    "vertical": "\v\f\x1c\x85\u2028",
    "nulls": "\0",
    "controls": "\x01\x1f\x7f\x9f",
    "underscores": "_",
    "hyphens": "-",
    "dots": ".",
    "commas": ",",
    "colons": ":",
    "semicolons": ";",
    "slashes": "/",
    "backslashes": "\\",
    "stops": "!?…。",
    "combining": "\u0301",
    "combined": "e\u0301\u0302\u0303",
    "marks and zero width": "\u200b\u200d\ufeff\u00ad",
    "right to left": "\u202e\u05d0\u0627",
    "arabic": "مرحبا ",
    "chinese": "字",
    "chinese sentences": "我们去学校。",
    "devanagari": "नमस्ते ",
    "emoji": "👩\u200d👩\u200d👧",
    "flags": "🇩🇪",
    "astral": "𝔘",
    "surrogates": "\ud800",
    "surrogate pairs apart": "\udc00\ud800",
    "sharp s": "ß",
    "dotted i": "İ",
    "ligatures": "ﬃ",
    "other digits": "٣߂",
    "superscripts": "²½Ⅷ",
    # Openers and closers.
    "comments": "<!--",
    "comment ends": "-->",
    "open brackets": "<",
    "close brackets": ">",
    "brackets": "<>",
    "end tags": "</",
    "open tags": "<a ",
    "tags": "<b>",
    "closed tags": "</b>",
    "scripts": "<script>",
    "styles": "<style ",
    "attributes": '<a b="',
    "declarations": "<!",
    "cdata": "<![CDATA[",
    "instructions": "<?",
    "void tags": "<x/>",
    "ampersands": "&",
    "references": "&#",
    "hexadecimal references": "&#x",
    "entities": "&amp;",
    "entities open": "&amp",
    "double quotes": '"',
    "single quotes": "'",
    "quotes": "„“",
    "apostrophes": "a'",
    "braces": "{",
    "double braces": "{{",
    "braces closed": "{}",
    "brackets square": "[",
    "brackets round": "(",
    "dollars": "${",
    "percents": "%",
    "formats": "%s",
    "percent signs and digits": "%1",
    "printf": "%-0+ #1",
    "escapes": "%20",
    "plus": "+",
    "pipes": "|",
    "hashes": "#",
    "stars": "*",
    "backticks": "`",
    "tildes": "~",
    "at signs": "a@",
    "addresses": "a.b-c+",
    "links": "http://",
    "domains": "a.",
    "paths": "../",
    "markers": "⟦1⟧",
    "special tokens": "<|im_end|>",
    "thoughts": "<think>",
    "thought ends": "</think>",
    "notes": "\nNote ",
    "labels": "Translation ",
    "orders": "ignore ",
    # Shapes of words and numbers.
    "words": "a b ",
    "two letters": "ab",
    "long words": "abcdefghijklmnopqrstuvwxyz ",
    "grouped digits": "1,",
    "numbers": "1 2.",
    "dates": "1/2-3:",
    "signs": "-1",
    "exponents": "1e",
    "percent numbers": "9% ",
    "sentences": "It is. ",
    "abbreviations": "Mr. ",
    "ellipses": "... ",
    "lines": "a\n",
    "lines of spaces": " \n",
    "spaces and letters": "          a",
    "tabbed entries": "a\tb\n",
    "comma entries": "a,b\n",
    "quoted entries": '"a""',
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\na\n\n",
    # Nearly language codes.
    "tag en": "en-",
    "tag letters": "a-",
    "tag private": "x-a-",
    "tag scripts": "latn-",
    "tag regions": "us-",
    "tag variants": "1996-",
    "tag extensions": "a-bb-",
    "tag eights": "abcdefgh-",
    "tag underscores": "en_",
    "tag commas": "en,",
    "tag names": "English ",
    "tag names in brackets": "German (",
    "tag dashes alone": "-",
    # Separators of queries, forms and headers.
    "fields": "a=b&",
    "empty fields": "&",
    "names without values": "a&",
    "equals": "=",
    "parameters": "a=b; ",
    "parameters quoted": 'a="',
    "pairs": "a=b,",
    "weights": "en;q=0.1,",
    "boundaries": "--b\r\n",
    "almost boundaries": "\r\n--",
}

FRAMED: Mapping[str, Make] = {
    "tag en": _repeated("-en", "en"),
    "tag one letter each": _repeated("-b", "a"),
    "tag extension": _repeated("-bb", "en-a"),
    "tag private": _repeated("-a", "en-x"),
    "tag variants": _repeated("-abcde", "en"),
    "tag name long": _repeated("n", "Germa"),
    "tag name spaces": _repeated(" ", "German", "x"),
    "number with a letter": _repeated("9", "", "x"),
    "fraction": _repeated("9", "0."),
    "negative": _repeated("9", "-"),
    "spaces before a letter": _repeated(" ", "", "a"),
    "spaces after a letter": _repeated(" ", "a", "a"),
    "newlines between letters": _repeated("\n", "a", "a"),
    "comment open": _repeated("-", "<!--"),
    "comment without end": _repeated("a", "<!--"),
    "tag without end": _repeated("a", "<"),
    "tag of spaces": _repeated(" ", "<a"),
    "tag of attributes": _repeated(" a=b", "<a"),
    "tag of quotes": _repeated("\"'", "<a "),
    "tag of quoted attributes": _repeated(' a="b"', "<a"),
    "end tag of spaces": _repeated(" ", "<script></script"),
    "script without end": _repeated("</script", "<script>"),
    "nested tags": lambda size: "<b>" * (size // 7) + "</b>" * (size // 7),
    "nested tags of different names": lambda size: "".join(f"<a{at}>" for at in range(size // 8)),
    "entity without end": _repeated("a", "&"),
    "reference without end": _repeated("9", "&#", ";"),
    "placeholder without end": _repeated("a", "{{"),
    "placeholder of braces": lambda size: "{" * (size // 2) + "}" * (size // 2),
    "word and marks": _repeated("\u0301", "a"),
    "sentence without end": _repeated("a ", "A", "."),
    "address without end": _repeated("a", "", "@"),
    "link": _repeated("/a", "http://a"),
    "quoted": _repeated("a", '"', '"'),
    "dots after a word": _repeated(".", "a"),
    "many words": lambda size: " ".join(f"w{at}" for at in range(size // 6)),
    "words of every length": lambda size: " ".join("a" * at for at in range(int((2 * size) ** 0.5))),
    "many lines": lambda size: "\n".join(f"w{at}" for at in range(size // 6)),
    "many entries": lambda size: "\n".join(f"w{at}\tv{at}" for at in range(size // 12)),
    "many entries of every length": lambda size: "\n".join(
        f"{'a' * at}\tb" for at in range(1, int((2 * size) ** 0.5) - 2)
    ),
    "many fields": lambda size: "&".join(f"f{at}=" for at in range(size // 8)),
    "same fields": _repeated("&q=", "q="),
    "entity bomb": lambda size: (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "aaaaaaaaaa">'
        + "".join(f'<!ENTITY e{at + 1} "{f"&e{at};" * 10}">' for at in range(9))
        + "]><a>&e9;"
        + "a" * max(0, size - 700)
        + "</a>"
    ),
}

STRUCTURES: Mapping[str, Make] = {
    "nested arrays": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "nested arrays open": lambda size: "[" * size,
    "nested objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "nested both": lambda size: '[{"a":' * (size // 8) + "1" + "}]" * (size // 8),
    "shallow arrays": lambda size: "[" + ",".join(["[[[[]]]]"] * (size // 9)) + "]",
    "many numbers": lambda size: "[" + ",".join("1" * (size // 2)) + "]",
    "many strings": lambda size: "[" + ",".join(['"a"'] * (size // 4)) + "]",
    "many empty strings": lambda size: "[" + ",".join(['""'] * (size // 3)) + "]",
    "many words": lambda size: json.dumps([f"w{at}" for at in range(size // 10)]),
    "many objects": lambda size: "[" + ",".join(["{}"] * (size // 3)) + "]",
    "many terms": lambda size: json.dumps([{"source": f"w{at}", "target": "b"} for at in range(size // 32)]),
    "many terms of every length": lambda size: json.dumps(
        [{"source": "a" * at, "target": "b"} for at in range(1, int((2 * size + 900) ** 0.5) - 28)]
    ),
    "many keys": lambda size: json.dumps({f"k{at}": 1 for at in range(size // 11)}),
    "same keys": lambda size: "{" + ",".join(['"k":1'] * (size // 6)) + "}",
    "long key": lambda size: json.dumps({"k" * size: 1}),
    "integer": lambda size: "9" * max(1, size),
    "integer just read": lambda size: "9" * min(4300, max(1, size)),
    "fraction": lambda size: "0." + "9" * max(1, size),
    "exponent": lambda size: "1e" + "9" * max(1, size),
    "negative": lambda size: "-" + "9" * max(1, size),
    "escapes": lambda size: '"' + "\\u0041" * (size // 6) + '"',
    "escaped quotes": lambda size: '"' + '\\"' * (size // 2) + '"',
    "escaped surrogates": lambda size: '"' + "\\ud800" * (size // 6) + '"',
    "spaces": lambda size: " " * size + "1",
    "true": lambda _: "true",
    "null": lambda _: "null",
}
"""Raw JSON in the place of a string."""


def _kinds() -> Iterator[tuple[str, Callable[[int], Value]]]:
    def plain(name: str, make: Make) -> Callable[[int], Value]:
        return lambda size: Value(name, make(size))

    def structured(name: str, make: Make) -> Callable[[int], Value]:
        def value(size: int) -> Value:
            written = make(size)
            return Value(name, written, written.encode())

        return value

    for name, unit in REPEATS.items():
        yield f"repeated {name}", plain(f"repeated {name}", _repeated(unit))
    for name, make in FRAMED.items():
        yield name, plain(name, make)
    for name, make in STRUCTURES.items():
        yield f"json {name}", structured(f"json {name}", make)


KINDS: Mapping[str, Callable[[int], Value]] = MappingProxyType(dict(_kinds()))
"""By name: a value of about so many characters; never fewer than none, and a few more where the frame is larger."""
