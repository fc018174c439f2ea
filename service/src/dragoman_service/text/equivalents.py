"""Different numbers with the same meaning: times of day, and measures in other units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import regex

Values = frozenset[Decimal]
"""What one number in a text may stand for."""

HALF_DAY = regex.compile(
    r"\b[ap]\.?\s?m\b|μ\.\s?μ|π\.\s?μ|[上下]午|晚上|早上|凌晨|午[前後]|오전|오후|저녁|\b(?:nach|vor)mittags?\b|\babends\b|\bmorgens\b"
    r"|\bnachts\b|\b(?:de|por) la (?:tarde|noche|mañana|madrugada)\b|\bda (?:tarde|noite|manhã)\b|\bdu (?:soir|matin)\b"
    r"|\baprès-midi\b|\bdel (?:pomeriggio|mattino)\b|\bdi sera\b|\b(?:вечера|утра|дня|ночи|вечора|ранку)\b|مساء|صباح"
    r"|عصر|शाम|सुबह|दोपहर|रात|दिउँसो|बिहान|बेलुका|\b(?:chiều|tối|sáng|sore|malam|pagi|siang)\b",
    regex.IGNORECASE,
)
"""Words for the half of the day that an hour is in."""

METRIC = regex.compile(
    r"(?<!\p{L})(?:km|cm|mm|m|kg|g|ha|км|см|мм|м|кг|г|л|га|ק\"מ|كم|كلم)(?!\p{L})|°\s?C(?!\p{L})|[²³]"
    r"|kil[oòó]|\bm[eè]t[er]|cent[ií]|\bmetr|\blit[er]|hektar|hectar|celsi|кило|метр|сантим|литр|гектар|цельс|χιλι|μέτρ"
    r"|公里|公斤|[千厘]?米|公尺|公分|摄氏|攝氏|公顷|公頃|公升|キロ|メートル|センチ|グラム|リットル|摂氏|킬로|미터|그램|섭씨"
    r"|किलो|मीटर|किमी|सेल्सियस|কিলো|মিটার|كيلو|متر|سنتي|لتر|مئوية|کیلو|سانتی|กิโล|เมตร|קילו|מטר",
    regex.IGNORECASE,
)
IMPERIAL = regex.compile(
    r"(?<!\p{L})(?:mi|mph|ft|lbs?|oz|yd|in\.|gal)(?!\p{L})|°\s?F(?!\p{L})|\bmil(?:e|es|ja|jaa|ia|l|la|has?|las|les|lles|y|ů)\b"
    r"|\bmeilen?\b|\bmijl(?:en)?\b|\bmiglia\b|\bmilhas?\b|\bmillas?\b|\bfoot\b|\bfeet\b|\binch(?:es)?\b|\bpounds?\b|\bounces?\b"
    r"|\byards?\b|\bacres?\b|\bgallons?\b|fahrenheit|фаренгейт|\bмил[ьияе]|\bфут|\bдюйм|\bфунт|英[里尺寸亩畝]|华氏|華氏"
    r"|マイル|フィート|インチ|ポンド|エーカー|ガロン|華氏|마일|피트|인치|파운드|에이커|화씨|मील|फ़?ीट|फुट|इंच|पाउंड|ميل|أميال|قدم|بوصة|رطل"
    r"|\bfuß\b|\bzoll\b|\bpfund\b|\bpieds?\b|\bpouces?\b|\blivres?\b|\bpies\b|\bpulgadas?\b|\blibras?\b|\bpés\b|\bpiedi\b",
    regex.IGNORECASE,
)
FACTORS = tuple(
    map(
        Decimal, ("1.609", "2.59", "0.3048", "0.0929", "2.54", "0.4536", "28.35", "0.9144", "0.4047", "3.785")
    )
)
"""Kilometres in a mile, square kilometres in its square, metres in a foot, square metres in its square, centimetres
in an inch, kilograms in a pound, grams in an ounce, metres in a yard, hectares in an acre, litres in a gallon."""

MAX_NUMBERS = 20
"""Without a counterpart in either text; with more the answer is wrong, and each is compared with each."""

ROUNDED = Decimal("0.05")
"""Share by which a converted measure may be off: `10 miles` are `16 km`, or `15`."""


def unexplained(
    lost: list[Values], invented: list[Values], source: str, output: str
) -> tuple[list[Values], list[Values]]:
    """Numbers that are only in the source, and only in the output, once hours and measures are matched."""
    if max(len(lost), len(invented)) > MAX_NUMBERS:
        return lost, invented
    half_day = HALF_DAY.search(source) is not None or HALF_DAY.search(output) is not None
    lost, invented = _clocks(lost, invented, half_day)
    invented, lost = _clocks(invented, lost, half_day)
    if half_day:
        lost, invented = _matched(
            lost, invented, lambda one, other: abs(one - other) == 12 and max(one, other) <= 24
        )
    if IMPERIAL.search(source) and METRIC.search(output):
        lost, invented = _matched(lost, invented, _converts)
    if METRIC.search(source) and IMPERIAL.search(output):
        lost, invented = _matched(lost, invented, lambda metric, imperial: _converts(imperial, metric))
    return lost, invented


def _converts(imperial: Decimal, metric: Decimal) -> bool:
    celsius = (imperial - 32) / Decimal("1.8")
    return abs(metric - celsius) <= 1 or any(
        abs(metric - imperial * factor) <= ROUNDED * imperial * factor for factor in FACTORS
    )


def _matched(
    left: list[Values], right: list[Values], same: Callable[[Decimal, Decimal], bool]
) -> tuple[list[Values], list[Values]]:
    """The numbers of both sides that have no equivalent on the other side."""
    rest, unmatched = list(right), []
    for values in left:
        match = next(
            (i for i, others in enumerate(rest) if any(same(a, b) for a in values for b in others)), None
        )
        if match is None:
            unmatched.append(values)
        else:
            del rest[match]
    return unmatched, rest


def _clocks(left: list[Values], right: list[Values], half_day: bool) -> tuple[list[Values], list[Values]]:
    """Remove equal times in different forms, such as `15.30` on the left and `15`, `30` on the right."""
    rest, unmatched = list(right), []
    for values in left:
        found = next(
            (
                (hours, minutes)
                for hour, minute in _times(values)
                for hours in rest
                for minutes in rest
                if hours is not minutes
                and minute in minutes
                and any(value == hour or (half_day and abs(value - hour) == 12) for value in hours)
            ),
            None,
        )
        if found is None:
            unmatched.append(values)
        else:
            rest = [each for each in rest if each is not found[0] and each is not found[1]]
    return unmatched, rest


def _times(values: Values) -> Iterator[tuple[int, int]]:
    """Decimal numbers that may be a time of day, such as `15.30`, as hours and minutes."""
    for value in values:
        hour, minute = int(value), int(value * 100) % 100
        if value.as_tuple().exponent == -2 and hour <= 24 and minute < 60:
            yield hour, minute
