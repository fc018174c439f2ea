"""Plural forms of gettext catalogs.

Source: https://docs.translatehouse.org/projects/localization-guide/en/latest/l10n/pluralforms.html
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable
from dataclasses import dataclass

HEADER = re.compile(r"nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;]{1,400});?")

SAMPLE = 1000
"""Numbers for which a rule is tried; none of a language tells larger ones apart."""

SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2)"
RULES = {
    "ja ko zh vi th id ms lo my km bo dz ka wo jv su yo ig tt ug": (1, "0"),
    "fr pt-br oc br hy ti ln mg fil tl wa am ak bh guw uz": (2, "(n > 1)"),
    "ru uk be sr hr bs sh": (3, SLAVIC),
    "pl": (3, "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2)"),
    "cs sk": (3, "(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2)"),
    "sl": (4, "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)"),
    "lt": (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    "lv": (3, "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)"),
    "ro mo": (3, "(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2)"),
    "ar": (6, "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"),
    "cy": (4, "(n==1 ? 0 : n==2 ? 1 : n != 8 && n != 11 ? 2 : 3)"),
    "ga": (5, "(n==1 ? 0 : n==2 ? 1 : n>2 && n<7 ? 2 : n>6 && n<11 ? 3 : 4)"),
    "gd": (4, "(n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>2 && n<20 ? 2 : 3)"),
    "mt": (4, "(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : n%100>10 && n%100<20 ? 2 : 3)"),
    "is mk": (2, "(n%10!=1 || n%100==11)"),
}
BY_LANGUAGE = {language: rule for languages, rule in RULES.items() for language in languages.split()}


@dataclass(frozen=True)
class PluralForms:
    """A rule: how many forms, and which of them a number has.

    Args:
        header: As in a catalog's header.
        ones: For each form, whether it is of one thing alone, or none.
        with_one: For each form, whether one thing has it.
    """

    header: str
    ones: tuple[bool, ...]
    with_one: tuple[bool, ...]

    @property
    def count(self) -> int:
        """Of forms."""
        return len(self.ones)


def plural_forms(header: str) -> PluralForms | None:
    """The rule of a header's `Plural-Forms`; None where it has none that can be read."""
    found = HEADER.search(header)
    if found is None or int(found[1]) < 1:
        return None
    try:
        # Python's own reader of these expressions: it has no names but n, and no calls.
        form: Callable[[int], int] = gettext.c2py(found[2])
        numbers = [form(number) for number in range(SAMPLE)]
    except (ValueError, RecursionError, ZeroDivisionError, OverflowError, SyntaxError, MemoryError):
        return None
    count = int(found[1])
    if not all(0 <= each < count for each in numbers):
        return None
    with_one = tuple(numbers[1] == each for each in range(count))
    ones = tuple(each == numbers[1] and each not in numbers[2:] for each in range(count))
    return PluralForms(header.strip(), ones, with_one)


def plural_forms_of(tag: str) -> PluralForms:
    """The rule of a language, by its BCP-47 tag; those that are not known have two forms, as English."""
    name = tag.lower().replace("_", "-")
    count, rule = BY_LANGUAGE.get(name) or BY_LANGUAGE.get(name.partition("-")[0]) or (2, "(n != 1)")
    found = plural_forms(f"nplurals={count}; plural={rule};")
    assert found is not None
    return found
