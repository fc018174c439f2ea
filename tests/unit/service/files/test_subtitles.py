import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.subtitles import read_subtitles, read_vtt

CUES = """1
00:00:01,000 --> 00:00:02,000 X1:40 X2:600
{\\an8}<i>I think we should
go to the store.</i>

2
00:00:03,000 --> 00:00:04,000
- Hi, Tom & Jerry!
– Hello.

3
00:00:05.000 --> 00:00:06.000
♪ 12
4

4
00:00:07,000 --> 00:00:08,000
It is 2 < 3. Is it?
Yes.
"""


def translated(source: str, *translations: str) -> str:
    return read_subtitles(source.encode()).rebuild(translations).decode()


def test_speech_becomes_texts_and_all_else_stays() -> None:
    assert read_subtitles(CUES.encode()).texts == (
        "<i>I think we should go to the store.</i>",
        "Hi, Tom &amp; Jerry!",
        "Hello.",
        "It is 2 &lt; 3. Is it?",
        "Yes.",
    )


def test_translations_take_their_places_in_as_many_lines() -> None:
    result = translated(
        CUES, "<i>Ich denke, wir gehen in den Laden.</i>", "Hallo, T &amp; J!", "Hallo.", "2 &lt; 3?", "Ja."
    )
    assert result == (
        CUES.replace("I think we should\ngo to the store.", "Ich denke, wir\ngehen in den Laden.")
        .replace("Hi, Tom & Jerry!", "Hallo, T & J!")
        .replace("Hello.", "Hallo.")
        .replace("It is 2 < 3. Is it?", "2 < 3?")
        .replace("Yes.", "Ja.")
    )


def test_a_translation_with_fewer_words_than_lines_leaves_no_empty_line() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\nand so\nit\ngoes\n\n"
    assert translated(cue, "weiter") == "1\n00:00:01,000 --> 00:00:02,000\nweiter\n\n"


def test_a_model_s_own_line_breaks_do_not_end_a_cue() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\nHello\n"
    assert translated(cue, "Guten\n\nTag") == "1\n00:00:01,000 --> 00:00:02,000\nGuten Tag\n"


def test_lines_are_not_broken_within_tags() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n<font color='red'>a\nb</font>\n"
    assert "<font color='red'>x\ny</font>" in translated(cue, "<font color='red'>x y</font>")


@pytest.mark.parametrize(
    "content", [b"", b"no subtitles at all\n", CUES.replace("\n", "\r\n").encode(), CUES.encode("utf-16")]
)
def test_a_file_comes_back_byte_for_byte_where_every_text_is_one_line(content: bytes) -> None:
    document = read_subtitles(content)
    encoding = "utf-16" if content[:2] == b"\xff\xfe" else "utf-8"
    assert document.rebuild(document.texts).decode(encoding) == content.decode(encoding)


def test_another_encoding_is_refused() -> None:
    with pytest.raises(BrokenFileError):
        read_subtitles(b"1\n00:00:01,000 --> 00:00:02,000\nGr\xf6\xdfe\n")


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "1", "00:00:01,000 --> 00:00:02,000", "<i>", "</i>", "- a", "{\\an8}b", "c.", "&amp;", "<"]
        ),
        st.text(alphabet="ab <>&;/i-.{}\\\n\r", max_size=20),
    ),
    max_size=30,
)


@given(LINES)
def test_untranslated_every_file_keeps_its_words_and_its_times(lines: list[str]) -> None:
    source = "\n".join(lines)
    document = read_subtitles(source.encode())
    back = document.rebuild(document.texts).decode()
    assert "".join(back.split()) == "".join(source.split())
    assert [line for line in back.splitlines() if "-->" in line] == [
        line for line in source.splitlines() if "-->" in line
    ]


def test_voices_stay_apart() -> None:
    cue = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Bob>What do you think\n<v Ann>I do not know at all, my dear\n"
    )
    document = read_vtt(cue.encode())
    assert document.texts == ("<v Bob>What do you think", "<v Ann>I do not know at all, my dear")


def test_lines_are_not_broken_within_voices() -> None:
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Mary Ann Smith>Yes\nplease</v>\n"
    document = read_vtt(cue.encode())
    assert document.rebuild(["<v Mary Ann Smith>Ja bitte</v>"]).decode() == (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Mary Ann Smith>Ja\nbitte</v>\n"
    )
