"""Inline tags in the texts that the demo model is trained on."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/demo-model"))

from training.generate import Parallel, held_out_texts, training_texts

TAG = re.compile(r"<(/?)x(\d+)(/?)>")
PLAIN = held_out_texts(400, seed=5)
TAGGED = held_out_texts(400, seed=5, tags=True)


def tags(text: str) -> list[str]:
    return [found[0] for found in TAG.finditer(text)]


def is_nested(text: str) -> bool:
    """Whether each tag that opens is closed, in the order of XML."""
    still_open: list[str] = []
    for closes, number, alone in TAG.findall(text):
        if alone:
            continue
        if not closes:
            still_open.append(number)
        elif not still_open or still_open.pop() != number:
            return False
    return not still_open


def wrapped(parallel: Parallel) -> list[dict[str, str]]:
    """What stands within each pair, by language."""
    numbers = {number for closes, number, _ in TAG.findall(parallel.texts["en"]) if closes}
    return [
        {code: re.findall(rf"<x{number}>(.*)</x{number}>", text)[0] for code, text in parallel.texts.items()}
        for number in numbers
    ]


def test_each_language_has_the_same_tags():
    for text in TAGGED:
        wanted = sorted(tags(text.texts["en"]))
        assert all(sorted(tags(other)) == wanted for other in text.texts.values()), text.texts


def test_tags_are_nested():
    assert all(is_nested(text) for parallel in TAGGED for text in parallel.texts.values())


def test_the_text_is_the_same_without_its_tags():
    for plain, text in zip(PLAIN, TAGGED, strict=True):
        for code, found in text.texts.items():
            # A tag that stands alone may have a blank of its own, or take the place of one.
            assert TAG.sub("", found).replace(" ", "") == TAG.sub("", plain.texts[code]).replace(" ", "")


def test_almost_every_text_gets_a_tag():
    assert sum(plain.texts != text.texts for plain, text in zip(PLAIN, TAGGED, strict=True)) > 390


def test_a_pair_wraps_the_same_word_in_each_language():
    pairs = [pair for text in TAGGED for pair in wrapped(text)]
    assert {"fr": "chat", "de": "Katze", "ne": "बिरालो"}.items() <= next(
        pair for pair in pairs if pair["en"] == "cat"
    ).items()
    assert all(all(text.strip() == text != "" for text in pair.values()) for pair in pairs)


def test_a_part_of_the_training_texts_has_tags():
    texts = training_texts(2000, seed=5)
    share = sum(any(map(tags, text.texts.values())) for text in texts) / len(texts)
    assert 0.17 < share < 0.27
