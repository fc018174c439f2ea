"""Numbers in texts of any script, and whether a translation has the same ones."""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Iterator, Mapping
from decimal import Decimal

import regex

from dragoman_service.text.equivalents import unexplained

NUMBER = regex.compile(
    r"(?<!\d)(?:\d{1,3}(?:[\u00a0\u202f '’٬]\d{3}(?!\d))+(?:[.,٫]\d+)?|\d+(?:[.,٫]\d+)*+)"
    r"(?P<scale>\s?(?:thousands?|millions?|billions?|tausend|Millionen|Million|Mio\.?|Milliarden?|Mrd\.?|mille|"
    r"milliards?|mil\b|millón|millones|milhões|milhão|bilhões|mld|mln|тыс\w*|млн|миллион\w*|млрд|миллиард\w*|"
    r"千|万|萬|億|亿|천|만|억|हजार|हज़ार|लाख|करोड़?|lakhs?|crores?|k\b))?"
    r"(?P<afternoon>(?=(?:[:.]\d\d)?\s?[pP]\.?\s?[mM]\b))?"
    r"(?P<years>(?=['’\-–]?(?:s|tal\w*|luv\w*|luku\w*|er\w*|erne|l[iıuü]\w*|х|тих|ті|те|ih|ch|tych|ых)\b|年代|년대))?"
)
SCALES = (
    (3, r"thousand|tausend|mille|mil$|тыс|千|천|हजार|हज़ार|k$"),
    (4, r"万|萬|만"),
    (5, r"लाख|lakh"),
    (8, r"億|亿|억"),
    (7, r"करोड|crore"),
    (9, r"milliard|billion|bilh|mld|mrd|млрд|миллиард"),
    (6, r"million|millón|millones|milh|mio|mln|млн|миллион"),
)
OFTEN_WORDS = frozenset(map(Decimal, [*range(21), 30, 40, 50, 60, 70, 80, 90, 100, 1000]))
"""Numbers that translations may write as words, and texts may have as words."""

ROMAN = regex.compile(r"(?<!\w)[IVXLC]{1,8}(?=\b|e\b|er\b|ème\b)")
ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def changed_numbers(source: str, output: str) -> tuple[int, int]:
    """How many numbers were lost and how many were invented.

    Digits of every script, group and decimal signs, `3 million` as `300万`, `3 pm` as `15`, `1600-tallet` as
    `17th century` and `5 miles` as `8 km` compare as numbers; a number that may as well be a word counts only
    where another stands in its place.
    """
    unmatched = dict(enumerate(_numbers(source)))
    places: dict[Decimal, deque[int]] = {}
    for index, number in unmatched.items():
        for value in number:
            places.setdefault(value, deque()).append(index)
    invented: list[frozenset[Decimal]] = []
    for number in _numbers(output):
        match = min(
            (index for value in number for index in _first(places.get(value), unmatched)), default=None
        )
        if match is None:
            invented.append(number)
        else:
            del unmatched[match]
    romans = set(_romans(output))
    lost = [number for number in unmatched.values() if not number & romans]
    if lost and invented:
        lost, invented = unexplained(lost, invented, source, output)
    if lost and invented:
        return len(lost), len(invented)
    return _not_words(lost), _not_words(invented)


def _first(places: deque[int] | None, unmatched: Mapping[int, object]) -> Iterator[int]:
    """The first number without a match, if there is one; drops those before it."""
    while places and places[0] not in unmatched:
        places.popleft()
    if places:
        yield places[0]


def _romans(text: str) -> Iterator[Decimal]:
    """The values of Roman numerals, which many languages use for centuries."""
    for found in ROMAN.finditer(text):
        values = [ROMAN_DIGITS[digit] for digit in found[0]]
        signed = [
            -value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True)
        ]
        yield Decimal(sum(signed))


def _not_words(numbers: list[frozenset[Decimal]]) -> int:
    return sum(not number & OFTEN_WORDS for number in numbers)


def _numbers(text: str) -> Iterator[frozenset[Decimal]]:
    """Each number as the values it may stand for; dates and versions are several numbers."""
    for found in NUMBER.finditer(text):
        scale = found["scale"] or ""
        digits = found[0].removesuffix(scale)
        parts = regex.split(r"\D", digits)
        if not all(part.isdecimal() for part in parts):  # digits newer than Python's Unicode
            continue
        if _is_dotted(digits, parts):
            yield from (frozenset({Decimal(_ascii(part))}) for part in parts)
            continue
        value = _value(digits)
        values = {value}
        if scale:
            word = scale.strip().lower()
            exponent = next((power for power, words in SCALES if regex.match(words, word)), 0)
            values.add(value.scaleb(exponent))
        if found["afternoon"] is not None and value < 12:
            values.add(value + 12)
        if found["years"] is not None:
            values.update(_years(value))
        yield frozenset(values)


def _years(first: Decimal) -> Iterator[Decimal]:
    """Other values of a round year: `1600-tallet` is the 17th century, `1990s` are the nineties."""
    if 100 <= first <= 2100 and first % 100 == 0:
        yield first / 100 + 1
    elif 1000 < first <= 2100 and first % 10 == 0:
        yield first % 100


def _is_dotted(digits: str, parts: list[str]) -> bool:
    """Whether this is `04.07.2021` or `1.2.3`, not `1.000.000`, `1,00,000` or `1.000,5`."""
    signs = {character for character in digits if not character.isdecimal()}
    if len(parts) < 3 or len(signs) > 1:
        return False
    return len(parts[-1]) != 3 or any(len(part) not in (2, 3) for part in parts[1:])


def _value(written: str) -> Decimal:
    """The value of digits with group and decimal signs.

    The last sign is decimal if it differs from the others, or if it stands alone with other than three
    digits behind it.
    """
    signs = [character for character in written if not character.isdecimal()]
    if not signs:
        return Decimal(_ascii(written))
    head, _, tail = written.rpartition(signs[-1])
    decimal = len(set(signs)) == 2 if len(signs) > 1 else len(tail) != 3
    return Decimal(f"{_ascii(head)}.{_ascii(tail)}" if decimal else _ascii(written))


def _ascii(written: str) -> str:
    return "".join(str(unicodedata.decimal(character)) for character in written if character.isdecimal())
