"""Inline tags in parallel texts: `The <x1>cat</x1> sleeps.`, as a service marks a document's formatting.

A tag stands around what every language says with words of its own: a noun, an adjective, both, a name, a time, a town,
or a whole sentence. A tag that stands alone, `<x2/>`, is between sentences or at either end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from random import Random

from . import english, french, german, nepali
from .lexicon import Adjective, Row
from .syntax import Adverb, Clause, NounPhrase, Text, Where

LANGUAGES = {"en": english.sentence, "fr": french.sentence, "de": german.sentence, "ne": nepali.sentence}

WHOLE_SENTENCES = 0.2
"""The share of texts in which a whole sentence gets the first pair of tags."""

HIGHEST = 30
"""The highest number of a tag."""

_SUFFIX = r"(?=$|[\s।,?!]|ले|लाई|मा|क[ोाी]|सँग|बाट|हरू)"
"""What follows a Nepali word: its end, or a postposition that is written on."""

Patterns = dict[str, str]
"""A regular expression per language."""

Spans = dict[str, tuple[int, int]]
"""Where a part of a text stands in each language: character offsets."""

Edit = tuple[int, int, tuple[int, int], str]
"""Start, end, rank among those with the same start, and what is written there."""

_CLOSING, _ALONE, _OPENING = range(3)


@dataclass(frozen=True)
class _Wrapped:
    """A pair of tags."""

    spans: Spans
    number: int


def tagged(rng: Random, tree: Text) -> dict[str, str]:
    """A text in every language with one to three inline tags, the same ones in each.

    Args:
        rng: Draws which parts get tags.
        tree: The text.

    Returns:
        The texts by language; without tags if no part of the text stands exactly once in each language.
    """
    sentences = {code: [sentence(part) for part in tree] for code, sentence in LANGUAGES.items()}
    texts = {code: " ".join(parts) for code, parts in sentences.items()}
    used = {int(number) for number in re.findall(r"<x(\d+)/>", texts["en"])}
    numbers = rng.sample([number for number in range(1, HIGHEST + 1) if number not in used], 3)
    if rng.random() < 0.7:  # As a service numbers them: from 1, in order.
        numbers = [number for number in range(1, HIGHEST + 1) if number not in used][:3]
    wanted = rng.choices((0, 1, 2), (0.1, 0.6, 0.3))[0]
    wrapped = _pairs(rng, tree, texts, numbers[:wanted])
    alone = _alone(rng, sentences, numbers[2]) if wanted == 0 or rng.random() < 0.15 else {}
    return {code: _edited(text, _edits(code, wrapped) + alone.get(code, [])) for code, text in texts.items()}


def _pairs(rng: Random, tree: Text, texts: dict[str, str], numbers: list[int]) -> list[_Wrapped]:
    whole = [spans for patterns in _whole(tree) if (spans := _found(patterns, texts))]
    parts = [spans for patterns in _parts(tree) if (spans := _found(patterns, texts))]
    rng.shuffle(parts)
    whole = rng.sample(whole, min(1, len(whole)))
    candidates = whole + parts if rng.random() < WHOLE_SENTENCES else parts + whole
    taken: list[Spans] = []
    for spans in candidates:
        if len(taken) == len(numbers):
            break
        if all(_fits(spans, other) for other in taken):
            taken.append(spans)
    taken.sort(key=lambda spans: (spans["en"][0], -spans["en"][1]))
    return [_Wrapped(spans, number) for spans, number in zip(taken, numbers, strict=False)]


def _found(patterns: Patterns, texts: dict[str, str]) -> Spans | None:
    """Where a part stands, if it stands exactly once in each language."""
    spans: Spans = {}
    for code, text in texts.items():
        edges = (r"(?<!\S)", _SUFFIX) if code == "ne" else (r"(?<!\w)", r"(?!\w)")
        matches = list(re.finditer(f"{edges[0]}(?:{patterns[code]}){edges[1]}", text, re.IGNORECASE))
        if len(matches) != 1:
            return None
        spans[code] = matches[0].span()
    return spans


def _fits(spans: Spans, other: Spans) -> bool:
    """Whether two parts lie apart in each language, or one within the other in each, with more text on a side."""
    relations = {_relation(spans[code], other[code]) for code in spans}
    return len(relations) == 1 and relations != {"across"}


def _relation(one: tuple[int, int], other: tuple[int, int]) -> str:
    if one[1] <= other[0] or other[1] <= one[0]:
        return "apart"
    if one == other:
        return "across"
    if other[0] <= one[0] and one[1] <= other[1]:
        return "within"
    return "around" if one[0] <= other[0] and other[1] <= one[1] else "across"


def _edits(code: str, wrapped: list[_Wrapped]) -> list[Edit]:
    """Of the tags that end at a place the one that started last ends first; of those that start, the longest does."""
    edits: list[Edit] = []
    for each in wrapped:
        start, end = each.spans[code]
        edits.append((start, start, (_OPENING, -end), f"<x{each.number}>"))
        edits.append((end, end, (_CLOSING, -start), f"</x{each.number}>"))
    return edits


def _alone(rng: Random, sentences: dict[str, list[str]], number: int) -> dict[str, list[Edit]]:
    """A tag at one end of a sentence, with or without blanks, at the same place in each language."""
    count = len(next(iter(sentences.values())))
    after = rng.randint(0, count)
    tag = f"<x{number}/>"
    style = rng.choice(("before the blank", "between blanks", "without blanks"))
    return {code: [_lone_edit(parts, after, tag, style)] for code, parts in sentences.items()}


def _lone_edit(parts: list[str], after: int, tag: str, style: str) -> Edit:
    if after == 0:
        return 0, 0, (_ALONE, 0), tag if style == "without blanks" else f"{tag} "
    place = len(" ".join(parts[:after]))
    if style == "between blanks":
        return place, place, (_ALONE, 0), f" {tag}"
    within = style == "without blanks" and after < len(parts)
    return place, place + within, (_ALONE, 0), tag


def _edited(text: str, edits: list[Edit]) -> str:
    written, position = [], 0
    for start, end, _, new in sorted(edits, key=lambda edit: (edit[0], edit[2])):
        written += [text[position:start], new]
        position = end
    return "".join(written) + text[position:]


def _whole(tree: Text) -> Iterator[Patterns]:
    for sentence in tree:
        yield _fixed(*(render(sentence) for render in LANGUAGES.values()))


def _parts(tree: Text) -> Iterator[Patterns]:
    """What may get a pair of tags within a sentence."""
    for node in _nodes(tree):
        match node:
            case NounPhrase() if node.noun is not None:
                yield (noun := _noun(node))
                if node.adjective is not None:
                    yield (adjective := _adjective(node.adjective, attribute=True))
                    yield _both(adjective, noun)
            case NounPhrase() if node.name is not None and node.name.en.isalpha():
                yield _fixed(node.name.en, node.name.en, node.name.en, node.name.ne)
            case Adverb():
                yield _fixed(node.en, node.fr, node.de, node.ne)
            case Where(town=town) if town is not None:
                yield _town(town, node.to)
            case Clause(predicate=Adjective() as adjective):
                yield _adjective(adjective, attribute=False)


def _nodes(value: object) -> Iterator[object]:
    """A tree and all below it."""
    if isinstance(value, tuple):
        for each in value:
            yield from _nodes(each)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _nodes(getattr(value, field.name))


def _fixed(*words: str) -> Patterns:
    return dict(zip(LANGUAGES, map(re.escape, words), strict=True))


def _town(row: Row, to: bool) -> Patterns:
    way = "to" if to else "in"
    return _fixed(row[f"en_{way}"], row["fr"], row[f"de_{way}"], row[f"ne_{way}"])


def _noun(phrase: NounPhrase) -> Patterns:
    noun = phrase.noun
    assert noun is not None
    stem = re.escape(noun.ne.removesuffix("ो"))
    ending = "[ोा]" if noun.ne.endswith("ो") else ""
    if phrase.plural:
        german_forms = f"{re.escape(noun.de_pl)}n?"
    else:
        german_forms = "|".join(map(re.escape, filter(None, (noun.de, noun.de_oblique))))
    return {
        "en": re.escape(noun.en_pl if phrase.plural else noun.en),
        "fr": re.escape(noun.fr_pl if phrase.plural else noun.fr),
        "de": f"(?:{german_forms})",
        "ne": f"{stem}{ending}(?:हरू)?",
    }


def _adjective(word: Adjective, attribute: bool) -> Patterns:
    stem = re.escape(word.ne.removesuffix("ो"))
    french_forms = [word.fr, word.fr_f, *(["bel", "nouvel", "vieil"] if attribute else [])]
    return {
        "en": re.escape(word.en),
        "fr": f"(?:{'|'.join(map(re.escape, french_forms))})[sx]?",
        "de": f"{re.escape(word.de_stem)}(?:e[nrms]?)" if attribute else re.escape(word.de),
        "ne": stem + ("[ोीा]" if word.ne.endswith("ो") else ""),
    }


def _both(adjective: Patterns, noun: Patterns) -> Patterns:
    """Adjective and noun, in either order."""
    return {code: f"{adjective[code]} {noun[code]}|{noun[code]} {adjective[code]}" for code in LANGUAGES}
