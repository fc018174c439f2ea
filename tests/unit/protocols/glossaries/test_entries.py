import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_protocols.errors import InvalidGlossaryError
from dragoman_protocols.glossaries.entries import read_entries, to_tsv
from dragoman_protocols.glossaries.values import Entry

TMX = (
    "<tmx><tu><tuv xml:lang='en-GB'><seg>Hello</seg></tuv><tuv xml:lang='de'><seg>Hallo</seg></tuv></tu>"
    "<tu><tuv xml:lang='en'><seg>We go.</seg></tuv><tuv xml:lang='de'><seg>Wir gehen.</seg></tuv></tu></tmx>"
)


def read(text: str, entries_format: str = "tsv") -> list[tuple[str, str]]:
    return [(entry.source, entry.target) for entry in read_entries(text, entries_format, "en", "de")]


@pytest.mark.parametrize(
    ("text", "entries_format", "found"),
    [
        ("Hello\tHallo", "tsv", [("Hello", "Hallo")]),
        (
            "Hello\tHallo\r\n\r\n the cat \t die Katze \n",
            "tsv",
            [("Hello", "Hallo"), ("the cat", "die Katze")],
        ),
        ("a,b\tc", "tsv", [("a,b", "c")]),
        ('Hello,Hallo\n"a, b","say ""b"""', "csv", [("Hello", "Hallo"), ("a, b", 'say "b"')]),
        ("Hello,Hallo,EN,de\nBonjour,Hallo,fr,de", "csv", [("Hello", "Hallo")]),
        (TMX, "tmx", [("Hello", "Hallo")]),
    ],
)
def test_entries_are_read(text: str, entries_format: str, found: list[tuple[str, str]]) -> None:
    assert read(text, entries_format) == found


@pytest.mark.parametrize(
    ("text", "entries_format", "message"),
    [
        ("", "tsv", "there are no entries"),
        ("Bonjour,Hallo,fr,de", "csv", "there are no entries"),
        ("<tmx><tu></tmx>", "tmx", "no TMX: line 1"),
        (TMX.replace("'de'", "'fr'"), "tmx", "there are no entries: terms are segments of at most 4 words"),
        ("Hello Hallo", "tsv", r"Key with the index 0 \(starting at position 0\) misses tab separator"),
        (
            "Hello\tHallo\nHello\tServus",
            "tsv",
            r"Key with the index 1 \(starting at position 12\) "
            r"duplicates key with the index 0 \(starting at position 0\)",
        ),
        ("a\tb\tc", "tsv", "Value with the index 0 .* has control characters"),
        ("a\t ", "tsv", "Value with the index 0 .* is empty"),
        ("a\tb\u2028c", "tsv", "has control characters or line breaks"),
        ("\ud800\tb", "tsv", "is not valid Unicode"),
        ("a\t" + "ü" * 513, "tsv", "is longer than 1024 bytes"),
        ("a,b,c", "csv", "line 1 has 3 columns"),
        ('"a,b', "csv", "not CSV"),
        ('"a\nb",c', "csv", "Key with the index 0 has control characters"),
        ("a," + "b" * 200_000, "csv", "not CSV: field larger than field limit"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_place(text: str, entries_format: str, message: str) -> None:
    with pytest.raises(InvalidGlossaryError, match=message):
        read(text, entries_format)


@given(st.text(), st.sampled_from(["tsv", "csv"]))
@example("\x00,a", "csv")
@example("\r", "csv")
def test_any_text_is_read_or_refused(text: str, entries_format: str) -> None:
    try:
        entries = read_entries(text, entries_format, "en", "de")
    except InvalidGlossaryError:
        return
    assert read_entries(to_tsv(entries), "tsv", "en", "de") == entries


TERM = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).map(
    str.strip
)


@given(st.dictionaries(TERM.filter(bool), TERM.filter(bool), min_size=1))
def test_every_term_that_can_be_kept_comes_back(terms: dict[str, str]) -> None:
    entries = tuple(Entry(source, target) for source, target in terms.items())
    assert read_entries(to_tsv(entries), "tsv", "en", "de") == entries
