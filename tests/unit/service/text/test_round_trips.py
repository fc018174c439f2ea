"""Properties of markup, placeholders and white space on their way through a model and back."""

import random
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace

import regex
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.markup_tokens import TokenKind, tokens
from dragoman_protocols.translation import Format
from dragoman_service.core.evaluate import evaluate, segment_result
from dragoman_service.core.stages import GeneratedText, Outcome
from dragoman_service.engine.protocol import Finish
from dragoman_service.text.pieces import MARKER_PATTERN
from dragoman_service.text.restoring import restore, verify
from dragoman_service.text.segmented_text import Preparation, SegmentedText, _with_pieces, prepare

WORDS = [
    "Hello", "world.", "Dr. Who?", "你好。", "今日は！", "नमस्ते।", "مرحبا؟", "3.5", "1,000", "–", "👩‍👩‍👧", "é",
    " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u200b", "'", '"', ";",
]  # fmt: skip
PLACEHOLDERS = [
    "{name}", "{0}", "{}", "{{user}}", "%s", "%d", "%1$s", "%(n)d", "${x}", "{n, plural, one {#} other {# x}}",
    "https://a.b/c?d=1#e", "me@example.org", "`rm -rf`", "100%", "{", "}", "%", "$", "`", "@",
]  # fmt: skip
LOOKALIKES = ["<x1/>", "<x1>", "</x1>", "[[1]]", "[[2+]]", "< X 3 / >", "<", ">", "&", "[", "]", "x1/>"]
ENTITIES = ["&amp;", "&lt;", "&gt;", "&quot;", "&#233;", "&#x4e2d;", "&#32;", "&#49;"]
NAMED = ["&eacute;", "&nbsp;", "&hellip;", "&nosuch;", "&copy", "&NotEqualTilde;", "&#0;", "&#xff1c;"]
TAGS = [
    "<p>", "</p>", "<b>", "</b>", "<i class='a'>", "</i>", "<br>", "<br/>", "<img src=x>", "<a href=\"?a=1&b=2\">",
    "</a>", "<!-- c -->", "<!--", "-->", "<script>", "</script>", "<pre>", "</pre>", "<code>", "</code>", "<x id=1>",
    "</x>", "<span translate=no>", "<div class=notranslate>", "</span>", "</div>", "<li>", "<a b='", "<![CDATA[", "]]>",
    "<?pi?>", "<!DOCTYPE html>", "<title>", "</TITLE>", "<svg>", "</svg>", "<my-tag/>",
]  # fmt: skip
SIGNS = ["{", "%", "@", "`", "://", "www.", "<", ">", "&", "12", "One. Two."]
GARBAGE = [
    "<x99/>",
    "<x1>",
    "</x1>",
    "<x2/>",
    "[[1]]",
    "<b>",
    "</p>",
    "&",
    "<script>",
    "]]>",
    "<!--",
    "\0",
    " ",
    "x",
]


def soup(*kinds: list[str]) -> st.SearchStrategy[str]:
    known = st.sampled_from([part for kind in kinds for part in kind])
    return st.lists(known | st.text(max_size=3), max_size=25).map("".join)


words = st.lists(st.sampled_from([*WORDS, *PLACEHOLDERS, *ENTITIES]), max_size=6)
texts = words.map(lambda parts: "".join(parts).replace("<", ""))
inline = st.sampled_from(["b", "i", "a", "span", "code", "x"])
block = st.sampled_from(["p", "div", "li", "td", "x", "pre"])


def element(names: st.SearchStrategy[str], inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    attributes = st.sampled_from(["", ' class="a b"', ' translate="no"', " id='1>2'"])
    return st.builds(
        lambda name, attribute, body: f"<{name}{attribute}>{body}</{name}>", names, attributes, inner
    )


well_formed = st.recursive(
    texts | st.sampled_from(["<br/>", "<!-- c -->", "<img src='x'/>"]),
    lambda inner: st.lists(inner, max_size=4).map("".join) | element(inline, inner) | element(block, inner),
    max_leaves=12,
)
ways = st.builds(
    Preparation,
    budget_tokens=st.integers(1, 60) | st.just(1000),
    lang=st.sampled_from(["en", "zh-Hant", "ne"]),
    by_line=st.booleans(),
    by_sentence=st.booleans(),
    ignore_tags=st.sampled_from([frozenset(), frozenset({"x"})]),
)


def returned(source: str, how: Preparation) -> SegmentedText:
    """The document of `source`, once it is clear that it comes back as it was."""
    document = prepare(source, how)
    assert document.rejoin([restore(segment, segment.text) for segment in document.segments]) == source
    assert document.rejoin([segment.source for segment in document.segments]) == source
    for segment in document.segments:
        assert not verify(segment, segment.text)
        assert segment.text == segment.text.strip() != ""
    return document


def with_format(how: Preparation, form: Format) -> Preparation:
    return replace(how, format=form)


@given(soup(WORDS, PLACEHOLDERS, LOOKALIKES), ways)
def test_plain_text_comes_back(source: str, how: Preparation) -> None:
    returned(source, how)


@given(soup(WORDS, PLACEHOLDERS, LOOKALIKES, ENTITIES, NAMED, TAGS, TAGS), ways)
def test_any_html_comes_back(source: str, how: Preparation) -> None:
    returned(source, with_format(how, Format.HTML))


@given(soup(WORDS, PLACEHOLDERS, LOOKALIKES, ENTITIES, NAMED, TAGS, TAGS), ways)
def test_any_xml_comes_back(source: str, how: Preparation) -> None:
    returned(source, with_format(how, Format.XML))


@given(well_formed, ways, st.integers(0, 2**32))
def test_html_survives_any_answer(source: str, how: Preparation, seed: int) -> None:
    document = returned(source, with_format(how, Format.HTML))

    result = document.rejoin(answers(document, random.Random(seed)))

    assert tags(result, html=True) == tags(source, html=True)
    assert nests(result)


@given(well_formed, ways, st.integers(0, 2**32))
def test_xml_survives_any_answer(source: str, how: Preparation, seed: int) -> None:
    source = f"<doc>{source}</doc>"
    document = returned(source, with_format(how, Format.XML))

    result = document.rejoin(answers(document, random.Random(seed)))

    parsed = ElementTree.fromstring(result)
    assert shape(parsed) == shape(ElementTree.fromstring(source))


@given(soup(WORDS, PLACEHOLDERS), ways, st.integers(0, 2**32))
def test_placeholders_survive_any_answer(source: str, how: Preparation, seed: int) -> None:
    chance = random.Random(seed)
    document = prepare(source, with_format(how, Format.PLAIN))
    for segment in document.segments:
        answer = spoiled(segment.text, MARKER_PATTERN, chance)
        if not verify(segment, answer):
            raws = [piece.raw for piece in segment.pieces if piece.role]
            result = restore(segment, answer)
            assert all(result.count(raw) >= raws.count(raw) for raw in raws)


def test_answers_that_break_a_document_exist() -> None:
    """The properties above would hold of a model that never errs; this one does err."""
    chance = random.Random(7)
    segment = prepare(
        "<p>One <b>two</b> {three} four</p>",
        Preparation(100, format=Format.HTML),
    ).segments[0]
    faults = Counter(
        problem.fault.value
        for _ in range(300)
        for problem in verify(segment, spoiled(segment.text, MARKER_PATTERN, chance))
    )

    assert set(faults) == {"lost", "duplicated", "invented", "reordered", "emptied"}


def answers(document: SegmentedText, chance: random.Random) -> list[str]:
    """What the core makes of a model that spoils most of what it is given."""
    restored = []
    for segment in document.segments:
        answer = spoiled(segment.text, MARKER_PATTERN, chance)
        restored.append(segment.source if verify(segment, answer) else restore(segment, answer))
    return restored


def spoiled(text: str, pattern: str, chance: random.Random) -> str:
    units = [found[0] for found in regex.finditer(rf"{pattern}|\w+|\W", text)]
    for _ in range(chance.randint(0, 3)):
        place = chance.randrange(len(units) + 1)
        match chance.randrange(5):
            case 0:
                units[place:] = units[place + 1 :]
            case 1:
                units[place:place] = units[place : place + 1]
            case 2:
                units[place:place] = [chance.choice(GARBAGE)]
            case 3 if units:
                other = chance.randrange(len(units))
                place %= len(units)
                units[place], units[other] = units[other], units[place]
            case _:
                units[place : place + 1] = ["Übersetzt & <"]
    return "".join(units)


def tags(source: str, html: bool) -> Counter[str]:
    return Counter(token.raw for token in tokens(source, html) if token.kind is not TokenKind.TEXT)


def nests(source: str) -> bool:
    stack: list[str] = []
    for token in tokens(source, html=True):
        if token.kind is TokenKind.OPEN:
            stack.append(token.name)
        elif token.kind is TokenKind.CLOSE and (not stack or stack.pop() != token.name):
            return False
    return not stack


def shape(element: ElementTree.Element) -> tuple[object, ...]:
    """An element's name and attributes, and the shapes within, in any order."""
    return (element.tag, tuple(element.items()), tuple(sorted(map(shape, element), key=repr)))


@given(soup(WORDS, SIGNS), ways, soup(WORDS, LOOKALIKES))
def test_text_with_nothing_to_protect_is_cut_as_with_pieces(
    source: str, how: Preparation, answer: str
) -> None:
    short, long = prepare(source, how), _with_pieces(source, how)
    assert [(each.text, each.source, each.format) for each in short.segments] == [
        (each.text, each.source, each.format) for each in long.segments
    ]
    assert short.between == long.between
    for one, other in zip(short.segments, long.segments, strict=True):
        generated = GeneratedText(answer, Finish.STOP)
        found = [evaluate(each, generated, (), answer.strip(), ()) for each in (one, other)]
        assert found[0] == found[1]
        if found[0].is_usable:
            results = [segment_result(0, each, Outcome(found[0]), strict=True) for each in (one, other)]
            assert results[0] == results[1]
