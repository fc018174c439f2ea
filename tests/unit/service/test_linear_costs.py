"""What reads callers' values takes time in proportion to their size."""

import io
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dragoman_contract.languages import is_tag
from dragoman_protocols import google, native
from dragoman_protocols.errors import BrokenFileError, CallerError, UnknownLanguageError
from dragoman_protocols.glossaries.matching import Glossary, Term, missing
from dragoman_protocols.google import escaped
from dragoman_protocols.languages import language, primary, tag_of_name
from dragoman_protocols.libretranslate import api as libretranslate
from dragoman_protocols.markup_tokens import Token, TokenKind
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import name_in, offer_of
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Format
from dragoman_service.files.office import read_word
from dragoman_service.files.subtitles import read_subtitles
from dragoman_service.text.chat import NOTE
from dragoman_service.text.markup import unescaped
from dragoman_service.text.numbers import changed_numbers
from dragoman_service.text.placeholders import placeholders
from dragoman_service.text.retagging import parts, retagged
from dragoman_service.text.segmented_text import Preparation, prepare
from dragoman_service.text.segments import SENTENCE_END
from dragoman_service.text.untagged import answer_to, untagged

SITE = Site(offer_of([()]), ("m",), Limits(100, 1_000_000))

ENOUGH_S = 0.1
"""What takes less is not compared: noise would be."""

WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:p>{}</w:p></w:document>'


def word(paragraph: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("word/document.xml", WORD.format(paragraph))
    return written.getvalue()


def cue(line: str) -> bytes:
    return f"1\n00:00:01,000 --> 00:00:02,000\n{line}\n".encode()


def refused(work: Callable[[], object]) -> None:
    with suppress(CallerError):
        work()


def put_back(source: str, translation: str, hints: dict[str, str] | None = None) -> None:
    (segment,) = prepare(source, Preparation(10_000_000, format=Format.HTML)).segments
    plain = untagged(segment)
    answer = answer_to(plain, translation)
    assert answer is not None
    parts(plain, answer)
    assert retagged(plain, answer, hints or {})


COSTS: dict[str, tuple[int, Callable[[int], Callable[[], object]]]] = {
    "google html: comments": (4_000, lambda size: lambda: escaped("<!--" * size)),
    "google html: open tags": (8_000, lambda size: lambda: escaped("<a " * size)),
    "google html: quotes": (8_000, lambda size: lambda: escaped('<a b="' * size)),
    "language tag": (8_000, lambda size: lambda: refused(lambda: language("en-" * size + "en"))),
    "language tag of letters": (8_000, lambda size: lambda: refused(lambda: primary("en" + "-abcde" * size))),
    "language name": (8_000, lambda size: lambda: refused(lambda: tag_of_name("x" * size))),
    "locale": (8_000, lambda size: lambda: name_in("de", "en" + "-en" * size)),
    "terms of every length": (
        1_000,
        lambda size: (
            lambda: list(
                Glossary(tuple(Term("字" * at + "x", "b") for at in range(1, min(size, 1_000)))).matches(
                    "字" * size
                )
            )
        ),
    ),
    "terms of every length in capitals": (
        1_000,
        lambda size: (
            lambda: list(
                Glossary(tuple(Term("A+" * at, "b", True) for at in range(1, 400))).matches("a+" * size)
            )
        ),
    ),
    "terms that end within words": (
        1_000,
        lambda size: (
            lambda: list(
                Glossary(tuple(Term("+ab" * at + "+a", "b") for at in range(1, 300))).matches("+ab" * size)
            )
        ),
    ),
    "terms in a translation": (8_000, lambda size: lambda: missing([Term("x", "a b c")], "a" * size)),
    "numbers": (1_000, lambda size: lambda: changed_numbers("11 " * size, "12 " * size)),
    "numbers beside roman ones": (1_000, lambda size: lambda: changed_numbers("11 " * size, "X " * size)),
    "end of a subtitle": (8_000, lambda size: lambda: read_subtitles(cue("a" + "." * size + "a"))),
    "break in a subtitle": (
        8_000,
        lambda size: lambda: read_subtitles(cue("a")).rebuild(["a" + " " * size + "b"]),
    ),
    "runs of different style": (
        500,
        lambda size: (
            lambda: read_word(
                word(
                    "".join(
                        f"<w:r><w:rPr><w:sz w:val='{at}'/></w:rPr><w:t>a</w:t></w:r>" for at in range(size)
                    )
                ),
                "fr",
            )
        ),
    ),
    "runs without text": (
        1_000,
        lambda size: lambda: read_word(word("<w:r><w:t>a</w:t></w:r>" + "<w:r><w:br/></w:r>" * size), "fr"),
    ),
    "attributes": (
        8_000,
        lambda size: lambda: Token(TokenKind.OPEN, "", "a", " " + "b" * size).attribute("class"),
    ),
    "lost tags": (
        1_000,
        lambda size: lambda: put_back("a1 <b>b <i>c</i></b> d<img> " * size, "e f g h " * size),
    ),
    "lost tags around equal words": (
        1_000,
        lambda size: lambda: put_back("<b>word word</b> word " * size, "word " * 3 * size),
    ),
    "a word that is searched for": (
        8_000,
        lambda size: lambda: put_back("a <b>b</b> c", "ab" * size, {"b": "ab" * size + "c"}),
    ),
    "many lines": (5_000, lambda size: lambda: prepare("a\n" * size, Preparation(100))),
    "blanks after a sentence": (8_000, lambda size: lambda: SENTENCE_END.findall("a" + " " * size + "b")),
    "blanks after a brace": (8_000, lambda size: lambda: list(placeholders("{" + " " * size + "x"))),
    "line breaks before a note": (8_000, lambda size: lambda: NOTE.search("\n" * size)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COSTS)
def test_time_grows_with_the_size_and_no_faster(name: str) -> None:
    size, make = COSTS[name]

    def least_s(size: int) -> float:
        work, found = make(size), []
        for _ in range(3):
            began_s = time.thread_time()
            work()
            found.append(time.thread_time() - began_s)
            if found[-1] < ENOUGH_S:
                break
        return min(found)

    whole_s = least_s(4 * size)
    assert whole_s < ENOUGH_S or whole_s < 12 * least_s(size)


def test_a_language_tag_that_is_too_long_is_refused_with_the_limit() -> None:
    with pytest.raises(UnknownLanguageError, match="at most 35 characters"):
        language("en-" * 20 + "en")
    with pytest.raises(UnknownLanguageError, match="at most 35 characters"):
        primary("en" + "-abcde" * 20)
    assert not is_tag("en" + "-abcde" * 20)


def test_a_language_name_that_is_too_long_is_refused_with_the_limit() -> None:
    with pytest.raises(UnknownLanguageError, match="at most 100 characters"):
        tag_of_name("German " * 20)


def test_a_locale_that_is_too_long_gives_english_names() -> None:
    assert name_in("de", "fr" + "-abcde" * 20) == "German"


@pytest.mark.parametrize("api", [libretranslate, google])
def test_a_query_has_no_more_fields_than_the_limit(api: Any) -> None:
    request = Request("POST", "/", b"q=a" + b"&to=de" * 2000, [])
    with pytest.raises(CallerError, match="the query has more than 1000 fields"):
        api.READING.read(request, SITE)


def read_native(body: bytes) -> None:
    native.READING.read(Request("POST", "/translate", b"", [], body), SITE)


def test_a_list_of_wrong_items_is_refused_for_the_first() -> None:
    body = b'{"text": "a", "target_lang": "de", "instructions": [' + b"1," * 100_000 + b"1]}"

    with pytest.raises(CallerError, match=r"instructions\[0\] must be a string|more than") as refusal:
        read_native(body)
    assert len(str(refusal.value)) < 200


def test_of_very_many_unknown_fields_the_first_is_named() -> None:
    body = b'{"text": "a", "target_lang": "de"' + b"".join(b',"k%d": 1' % at for at in range(2000)) + b"}"

    with pytest.raises(CallerError, match="'k0' is no field of this request"):
        read_native(body)


def test_a_term_that_is_too_long_is_refused_with_the_limit() -> None:
    body = b'{"text":"a","target_lang":"de","terms":[{"source":"%s","target":"b"}]}' % (b"a" * 1025)

    with pytest.raises(CallerError, match=r"terms\[0\].source must have at most 1024 characters"):
        read_native(body)


def test_references_to_no_character_stay_as_they_are() -> None:
    assert unescaped("&#65;&amp;&#x41;") == "A&A"
    assert unescaped("&#" + "9" * 5000 + ";") == "&#" + "9" * 5000 + ";"


def test_properties_of_a_run_are_bounded() -> None:
    properties = "<w:rPr>" + "<w:b/>" * 5000 + "</w:rPr>"

    with pytest.raises(BrokenFileError, match="properties take more than"):
        read_word(word(f"<w:r>{properties}<w:t>a</w:t></w:r>"), "fr")
