from pathlib import Path

import pytest

from dragoman import sentences
from dragoman.sentences import Sentence

RAIN = Sentence("en", "fr", "It is raining.", "Il pleut.")


def test_a_line_is_two_languages_a_text_and_its_translation(tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("# a comment\n\nen\tfr\tIt is raining.\tIl pleut.\n")
    assert sentences.read(file) == [RAIN]


def test_a_line_with_a_field_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("# a comment\nen\tfr\tIt is raining.\n")
    with pytest.raises(ValueError, match=r"sentences\.txt, line 2: 3 tab-separated fields"):
        sentences.read(file)


def test_the_table_shows_what_was_expected_only_where_it_differs() -> None:
    assert sentences.table([(RAIN, "Il pleut.")]) == "✓ en→fr  It is raining.  Il pleut."
    wrong = sentences.table([(RAIN, "Il neige.")])
    assert wrong.startswith("✗ en→fr  It is raining.  Il neige.")
    assert "expected: Il pleut." in wrong


def test_the_demo_ships_at_least_sixty_sentences() -> None:
    assert len(sentences.read(Path("examples/sentences.txt"))) >= 60
