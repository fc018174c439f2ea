"""How a file writes characters: its translation gets the escapes that the source has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence


class Spelling:
    """The escapes of one text.

    Args:
        written: Its characters, and how each is written.
    """

    def __init__(self, written: Iterable[tuple[str, str]]) -> None:
        found: dict[str, list[str]] = {}
        escaped: set[str] = set()
        for meaning, raw in written:
            found.setdefault(meaning, []).append(raw)
            if raw != meaning and len(meaning) == 1:
                escaped.add(meaning)
        self._forms = {meaning: found[meaning] for meaning in escaped}

    def of(self, parts: Sequence[str], other: Callable[[str], str]) -> list[str]:
        """The parts of a translation as the file writes them: one after the other if it has a character as often.

        Args:
            parts: Of the translation, in order.
            other: How text is written in which the source escapes no character.
        """
        if not self._forms:
            return [other(part) for part in parts]
        counts = Counter(sign for part in parts for sign in part if sign in self._forms)
        forms = {
            sign: iter(raws)
            if len(raws := self._forms[sign]) == count
            else iter([Counter(raws).most_common(1)[0][0]] * count)
            for sign, count in counts.items()
        }
        return ["".join(self._written(part, forms, other)) for part in parts]

    def _written(
        self, part: str, forms: dict[str, Iterator[str]], other: Callable[[str], str]
    ) -> Iterator[str]:
        start = 0
        for at, sign in enumerate(part):
            if sign in self._forms:
                form = next(forms[sign])
                yield other(part[start:at]) + (other(sign) if form == sign else form)
                start = at + 1
        yield other(part[start:])
