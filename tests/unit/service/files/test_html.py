"""HTML files name the language of their translation; ruby and placeholders do not divide a sentence."""

import pytest

from dragoman_protocols.translation import Format
from dragoman_service.files.kinds import read
from dragoman_service.text.restoring import restore
from dragoman_service.text.segmented_text import Preparation, prepare


@pytest.mark.parametrize(
    ("source", "tag", "expected"),
    [
        ("<html>", "de", "<html>"),
        ("<html>", "ar", '<html lang="ar" dir="rtl">'),
        ("<HTML LANG=en>", "pt-BR", '<HTML LANG="pt-BR">'),
        ("<html lang='en' class=\"a\">", "ar", '<html lang=\'ar\' class="a" dir="rtl">'),
        (
            '<html dir="rtl"\r\n lang="he" xml:lang="he">',
            "en",
            '<html dir="ltr"\r\n lang="en" xml:lang="en">',
        ),
        (
            '<html lang=""><link hreflang="en" href="x"><body lang="en"><p lang="fr">',
            "fa",
            '<html lang="fa" dir="rtl"><link hreflang="en" href="x"><body lang="fa"><p lang="fr">',
        ),
        ('<html lang="{{ lang }}">', "de", '<html lang="{{ lang }}">'),
        ('<p lang="en">a', "ar", '<p lang="en">a'),
        ("<!-- <html> --><script>'<html>'</script><body>", "ar", None),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_root_names_language_and_direction(
    source: str, tag: str, expected: str | None, mark: str
) -> None:
    file = read("a.html", (mark + source).encode(), tag)
    assert file.rebuild(file.texts).decode() == mark + (expected or source)


@pytest.mark.parametrize(
    ("source", "segments"),
    [
        (
            "<p>今日<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>は良い。</p>",
            ["今日<x1>漢<x2/><x3/><x4/></x1>は良い。"],
        ),
        ("<p>今日<ruby>漢<rt>kan<rp>)</ruby>は\n良い。</p>", ["今日<x1>漢<x2/></x1>は 良い。"]),
        ("<p>a <rt>b</p><p>c</p>", ["a", "c"]),
    ],
)
def test_readings_are_kept_within_a_sentence(source: str, segments: list[str]) -> None:
    prepared = prepare(source, Preparation(1000, format=Format.HTML))
    assert [each.text for each in prepared.segments] == segments


@pytest.mark.parametrize(
    ("source", "segments", "expected"),
    [
        ("Hi {{ na<b>me }}</b>, you", ["Hi <x1/><x2/>, you"], "HI {{ name }}<b></b>, YOU"),
        ("Hi {{ na<b>me }} and</b> you", ["Hi <x1/><x2> and</x2> you"], "HI {{ name }}<b> AND</b> YOU"),
        ("<b>Hi {{ na</b>me }} you", ["<x1>Hi <x2/></x1> you"], "<b>HI {{ name }}</b> YOU"),
        ("A {{ <b>name</b> }} {<i>x</i>} b", ["A <x1/> <x2/> b"], "A {{ <b>name</b> }} {<i>x</i>} B"),
        (
            "{n, plural, one {<b>#</b> file} other {<b>#</b> files}} here",
            ["<x1/> here"],
            "{n, plural, one {<b>#</b> file} other {<b>#</b> files}} HERE",
        ),
        ("A. Hi {{ na<b>me }}. So</b>. B", ["A. Hi <x1/><x2>. So</x2>. B"], "A. HI {{ name }}<b>. SO</b>. B"),
        ("Hi {{ na<b>me</p><p>}}</b> you", ["Hi {{ na", "me", "you"], "HI {{ NA<b>ME</p><p>}}</b> YOU"),
        ("See http://a<b>b</b> 5%<i>d</i>", ["See <x1/><x2>b</x2> 5%<x3>d</x3>"], "SEE http://a<b>B</b> 5%<i>D</i>"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [Format.HTML, Format.XML])
@pytest.mark.parametrize("by_sentence", [True, False])
def test_placeholders_are_found_across_tags(
    source: str, segments: list[str], expected: str, form: Format, by_sentence: bool
) -> None:
    inline = frozenset({"b", "i"})
    how = Preparation(1000, format=form, by_sentence=by_sentence, non_splitting_tags=inline)
    prepared = prepare(f"<p>{source}</p>", how)
    assert [each.text for each in prepared.segments] == segments
    assert prepared.rejoin([each.source for each in prepared.segments]) == f"<p>{source}</p>"
    upper = [each.text.upper().replace("X", "x") for each in prepared.segments]
    restored = [restore(each, text) for each, text in zip(prepared.segments, upper, strict=True)]
    assert prepared.rejoin(restored) == f"<p>{expected}</p>"
