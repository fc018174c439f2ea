"""A translation is written to a file unchanged, also if it contains signs of the format."""

import csv
import io
import json
import re
from xml.sax.saxutils import escape

import polib
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dragoman_service.files.kinds import read

SIGNS = [
    "a", "b ", "word", " ", "*", "_", "`", "[", "]", "(", ")", "<", ">", "&", "#", "-", "1.", "+", "|", "\\", "!", "~",
    "\n", "'", '"', ":", ": ", " #", "{", "}", "é", "猫", "%", "@", "?", ",", "=", "\t", "&amp;", "http://x.y",
    "&lt;", "<b>", "***",
]  # fmt: skip
translations = st.just("\\") | st.lists(st.sampled_from(SIGNS), min_size=1, max_size=8).map("".join).filter(
    str.strip
)

RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render


def rebuilt(name: str, source: str, translation: str) -> str:
    file = read(name, source.encode(), "de")
    return file.rebuild([text.replace("some text", translation) for text in file.texts]).decode()


def shape(html: str) -> str:
    """Without the blanks that do not show."""
    return re.sub(r"\s+", " ", re.sub(r"\s*(</?(?:p|li|h1|td|th|ul|ol|tr)[^>]*>)\s*", r"\1", html))


@given(
    st.sampled_from(
        [
            "{}\n",
            "- {}\n- 1\n",
            "> {}\n\n1\n",
            "|1|2|\n|---|---|\n|{}|1|\n",
            "# {}\n",
            "1. {}\n2. 3\n",
            "{}\n===\n",
        ]
    ),
    translations,
)
def test_markdown(frame: str, translation: str) -> None:
    source = frame.format("some text")
    back = rebuilt("a.md", source, escape(translation))
    shown = escape(translation, {'"': "&quot;"})
    assert shape(RENDER(back)) == shape(RENDER(source).replace("some text", shown))


@given(
    st.sampled_from(
        [
            "{}\n",
            "{} # remark\n",
            "|\n  {}\n\n",
            ">\n  {}\n",
            "|-\n  {}\n",
            "'{}'\n",
            '"{}"\n',
            "&x {}\n",
            "!!str {}\n",
        ]
    ),
    translations,
)
def test_yaml(frame: str, translation: str) -> None:
    back = yaml.safe_load(rebuilt("a.yaml", f"a: {frame.format('some text')}b: 1\n", escape(translation)))
    assert back["b"] == 1
    assert back["a"].rstrip("\n") == translation.rstrip("\n")
    flow = yaml.safe_load(rebuilt("a.yaml", "[some text, {a: 1}]", escape(translation)))
    assert flow == [translation, {"a": 1}]


@given(translations)
def test_others(translation: str) -> None:
    assert json.loads(rebuilt("a.json", '{"a": "some text"}', escape(translation))) == {"a": translation}
    table = rebuilt("a.csv", "1,some text\n", escape(translation))
    assert list(csv.reader(io.StringIO(table, newline=""))) == [["1", translation]]
    assert (
        polib.pofile(rebuilt("a.po", 'msgid "some text"\nmsgstr ""\n', escape(translation)) + "\n")[0].msgstr
        == translation
    )
    strings = rebuilt("a.strings", '"a" = "some text";', escape(translation))
    value = strings.removeprefix('"a" = "').removesuffix('";')
    assert re.sub(r"\\(.)", lambda sign: {"n": "\n"}.get(sign[1], sign[1]), value) == translation


@pytest.mark.parametrize("text", ["@string/a", "it's", 'a "b" \\n', "?"])
def test_android_s_escapes(text: str) -> None:
    back = rebuilt("a.xml", '<resources><string name="a">some text</string></resources>', escape(text))
    texts = read("a.xml", back.encode(), "de").texts
    assert texts in ((escape(text),), ())
