"""Markup, placeholders and white space through the whole core, with a model that copies, spoils, or is silent."""

import random
from collections import Counter
from contextlib import suppress

import regex
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines import AnsweringEngine

from dragoman_protocols.errors import EmptyOutputError, TruncatedOutputError
from dragoman_protocols.markup_tokens import TokenKind, tokens
from dragoman_protocols.translation import Format, Split, TranslationRequest
from dragoman_service.core.translator import Translator
from dragoman_service.engine.protocol import Chunk, Finish
from dragoman_service.prompts.families import prompt_family
from dragoman_service.text.pieces import MARKER_PATTERN

PARTS = [
    "Hello", "world.", "Dr. Who? ", "你好。", "नमस्ते। ", "مرحبا؟", "3.5", "1,000", "👩‍👩‍👧",
    " ", "  ", "\n", "\r\n", "\t",
    "\u00a0", "\u3000", "\u2028", "'", '"', ";", "<think>", "</s>", "<|im_end|>", "**Note:**", "Sure: ", "\ud800",
    "{name}", "{0}", "{}", "{{user}}", "%s", "%d", "%1$s", "%(n)d", "${x}", "{n, plural, one {#} other {# x}}",
    "https://a.b/c?d=1#e", "me@example.org", "`rm -rf`", "100%", "{", "}", "%", "$", "`", "<x1/>", "<x1>", "[[1]]",
]  # fmt: skip
TAGS = [
    "&amp;", "&lt;", "&quot;", "&#233;", "&eacute;", "&nbsp;", "&nosuch;", "<p>", "</p>", "<b>", "</b>",
    "<i class='a'>",
    "</i>", "<br>", "<br/>", '<a href="?a=1&b=2">', "</a>", "<!-- c -->", "<script>", "</script>", "<pre>", "</pre>",
    "<code>", "</code>", "<span translate=no>", "</span>", "<li>", "<![CDATA[", "]]>", "<?pi?>", "<my-tag/>",
    "<x>", "</x>",
]  # fmt: skip
BLOCKS = ["<p>{}</p>", "<li>{}</li>", "a <b>{}</b> c", "<i>{}</i> {{n}}", "{}<br/>x", '<a href="#">{}</a> %s']

plain = st.lists(st.sampled_from(PARTS) | st.text(max_size=3), min_size=1, max_size=20).map("".join)
soup = st.lists(st.sampled_from(PARTS + TAGS) | st.text(max_size=3), min_size=1, max_size=20).map("".join)
well_formed = st.recursive(
    st.lists(
        st.sampled_from(["Hello", " ", "world.", "&amp;", "{name}", "3", "\n"]), min_size=1, max_size=5
    ).map("".join),
    lambda inner: (
        st.builds(str.format, st.sampled_from(BLOCKS), inner) | st.lists(inner, max_size=3).map("".join)
    ),
    max_leaves=8,
)
splits = st.sampled_from([None, *Split])


def model(chance: random.Random | None) -> AnsweringEngine:
    """Copies its segment, or spoils it."""

    def answer(segment: str, _: int) -> Chunk:
        text = segment if chance is None else spoiled(segment, chance)
        return Chunk(text, Finish.LENGTH if chance and chance.random() < 0.1 else Finish.STOP, 1, 1)

    return AnsweringEngine(answer, max_model_len=400)


def spoiled(text: str, chance: random.Random) -> str:
    units = [found[0] for found in regex.finditer(rf"{MARKER_PATTERN}|\w+|\W", text)]
    for _ in range(chance.randint(0, 3)):
        place = chance.randrange(len(units) + 1)
        units[place : place + chance.randrange(2)] = [
            chance.choice(["", "<b>", "</p>", "&", "<x1/>", "x", "<think>", "{name}"])
        ]
    return "".join(units)


def request_for(text: str, form: Format, split: Split | None) -> TranslationRequest:
    # A model that copies is right between regions of one language.
    return TranslationRequest((text,), "en-GB", "en", format=form, split=split)


async def translated(
    text: str, form: Format, split: Split | None, chance: random.Random | None = None
) -> str | None:
    translator = Translator(model(chance), prompt_family("chatml-generic"))
    if not text.strip():
        return None
    (result,) = await translator.translate(request_for(text, form, split))
    deltas = [delta async for delta in translator.stream(request_for(text, form, split))]
    if chance is None:
        assert "".join(delta.text for delta in deltas) == result.text
    return result.text


@given(plain, splits.filter(lambda split: split is not Split.NONE))
async def test_plain_text_comes_back(text: str, split: Split | None) -> None:
    assert await translated(text, Format.PLAIN, split) in (text, None)


@given(soup, st.sampled_from([Format.HTML, Format.XML]))
async def test_any_markup_comes_back(text: str, form: Format) -> None:
    assert await translated(text, form, None) in (text, None)


@given(well_formed, st.integers(0, 2**32))
async def test_no_answer_breaks_a_document(text: str, seed: int) -> None:
    with suppress(TruncatedOutputError, EmptyOutputError):
        result = await translated(text, Format.HTML, None, random.Random(seed))
        assert result is None or tags(result) == tags(text)


@given(plain, st.integers(0, 2**32))
async def test_blanks_and_lines_stay_where_they_were(text: str, seed: int) -> None:
    breaks = r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+"
    with suppress(TruncatedOutputError, EmptyOutputError):
        result = await translated(text, Format.PLAIN, Split.LINES, random.Random(seed))
        if result is not None:
            assert regex.findall(breaks, result) == regex.findall(breaks, text)
            assert result.startswith(text[: len(text) - len(text.lstrip())])


def tags(source: str) -> Counter[str]:
    return Counter(token.raw for token in tokens(source, True) if token.kind is not TokenKind.TEXT)
