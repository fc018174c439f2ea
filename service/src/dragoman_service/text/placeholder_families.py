"""Placeholders of one family of programs, for texts whose format says which family it is, as gettext's flags do.

`placeholders.placeholders` finds those of every text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import regex

PRINTF = (
    r"%%|%(?:\d{1,2}\$)?[-+#0 'I]{0,4}(?:\d{1,4}|\*(?:\d{1,2}\$)?)?(?:\.(?:\d{1,4}|\*(?:\d{1,2}\$)?)?)?"
    r"(?:<\w{1,12}>|(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcCsSpnm@])"
)
OTHERS = r"%[-+# 0]{0,3}(?:\[\d\])?\d{0,3}"
"""Begins those of Python's, Go's and other conversions that C has not."""
JAVA = r"%(?:\d{1,2}\$|<)?[-#+ 0,(]{0,5}\d{0,4}(?:\.\d{1,4})?(?:[bBhHsScCdoxXeEfgGaA%n]|[tT][A-Za-z])"
NAMED = r"%(?:<(?!PRI)\w{1,64}>|\(\w{1,64}\))[-+#0]{0,3}\d{0,4}(?:\.\d{1,4})?[a-zA-Z]|%\{[^{}]{1,64}\}"
BRACES = r"\{[^{}\s]{0,64}\}"
DOLLARS = r"\$\w{1,64}|\$\{[^{}]{1,64}\}"
STRFTIME = r"%[-_^0#EO]{0,2}[A-Za-z%+]"

FAMILIES = {
    # https://www.gnu.org/software/gettext/manual/html_node/Translators-for-other-Languages.html
    **dict.fromkeys(
        ("c", "objc", "c++", "awk", "tcl", "perl", "elisp", "librep", "javascript", "d",
         "gfc-internal", "gcc-internal", "ycp", "modula2", "ocaml", "pascal", "object-pascal"),
        f"{PRINTF}|{NAMED}",
    ),
    **dict.fromkeys(
        ("python-brace", "perl-brace", "csharp", "rust", "java", "c++-brace"), rf"{BRACES}|'\{{[^{{}}']*'"
    ),
    "python": rf"{PRINTF}|{NAMED}|{OTHERS}r",
    "go": rf"{PRINTF}|{OTHERS}[vTtqbUw]",
    "php": rf"{PRINTF}|{OTHERS}b",
    "lua": rf"{PRINTF}|{OTHERS}q",
    "java-printf": JAVA,
    "ruby": rf"{NAMED}|{PRINTF}|{OTHERS}[bB]",
    **dict.fromkeys(("qt", "qt-plural"), r"%L?\d{1,2}|%L?n"),
    **dict.fromkeys(("kde", "kde-kuit", "smalltalk"), r"%L?\d{1,2}"),
    "boost": r"%\|[^|\s]{1,20}\||%\d{1,2}%|" + PRINTF,
    "sh": DOLLARS,
    "scheme": r"~[\d,]{0,6}[:@]{0,2}[A-Za-z%~]",
    "lisp": r"~[\d,]{0,6}[:@]{0,2}[A-Za-z%~]",
    "strftime": STRFTIME,
}  # fmt: skip
"""Patterns by the name that gettext's flag `NAME-format` has."""

ANY = (
    r"%(?:\d{1,2}\$)?'?<PRI\w{1,10}>",
    rf"(?<!%){NAMED}(?![A-Za-z0-9])",
    r"(?<![\w%])%L?\d{1,2}(?![\w$%.*])",
    r"%\d{1,2}%(?!\w)",
    r"%\d{1,2}\$[-#+0,(]{0,4}\d{0,4}(?:\.\d{1,4})?[a-zA-Z@]",
    r"%'\d{0,4}[diufg](?![A-Za-z0-9])",
    r"%#@\w{1,64}@",
    r"\$t\([^()\n]{1,200}\)",
    r"@(?:\.\w{1,32})?:(?:\([\w.]{1,100}\)|[A-Za-z_][\w.]{0,99}\w)",
    r"\$[A-Z][A-Z0-9_]{0,63}\$?|\$[1-9](?!\d|[.,]\d)",
    r"\{\\[^{}\n]{1,200}\}",
    r"\{'[^'{}\n]{1,20}'\}",
    r"\\(?:[0-7]{3}|u[0-9a-fA-F]{4})",
    r"(?<![\w%])%[-_^]?[aAbBHIjmMpyYZ](?![A-Za-z])",
    r"\|?(?:\*\.[\w*]{1,10}[;,]?){1,20}\|?",
)
"""Those that are mistaken for nothing else: C's macros, Ruby's and Java's, Qt's, i18next's and Vue's references,
WebExtensions', subtitles', dates', patterns of file names.

Source: https://docs.ruby-lang.org/en/master/format_specifications_rdoc.html, https://doc.qt.io/qt-6/qstring.html#arg,
https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Formatter.html,
https://www.i18next.com/translation-function/nesting, https://vue-i18n.intlify.dev/guide/essentials/syntax,
https://developer.chrome.com/docs/extensions/reference/api/i18n
"""


@lru_cache(maxsize=64)
def family_pattern(names: frozenset[str] = frozenset()) -> regex.Pattern[str]:
    """Matches the placeholders of families, by their names, and what is mistaken for nothing else.

    All numbers of repetitions are bounded, so that a search takes time linear in the text.
    """
    return regex.compile("|".join([*_known(names), *ANY]))


def _known(names: Iterable[str]) -> list[str]:
    return [FAMILIES[name] for name in sorted(names) if name in FAMILIES]
