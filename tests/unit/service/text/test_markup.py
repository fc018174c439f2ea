"""Markup and placeholders as models see them, one example for each rule."""

import time

import pytest

from dragoman_protocols.translation import Format
from dragoman_service.text.placeholders import placeholders
from dragoman_service.text.restoring import BrokenMarkersError, Fault, restore, verify
from dragoman_service.text.segmented_text import Preparation, prepare

HTML = Preparation(1000, format=Format.HTML)
XML = Preparation(1000, format=Format.XML)
PLAIN = Preparation(1000)


@pytest.mark.parametrize(
    ("how", "source", "expected"),
    [
        (HTML, "<p>Hello <b>big</b> world</p><p>Bye</p>", ["Hello <x1>big</x1> world", "Bye"]),
        (HTML, "<p><a href='u'><b>All of it</b></a></p>", ["All of it"]),
        (HTML, "One<br>two<img src=x> three", ["One", "two<x1/> three"]),
        (HTML, "<script>var a = '<b>no</b>';</script>Yes<style>p{}</style>", ["Yes"]),
        (HTML, "<pre>keep</pre> Press <code>x = 1</code> now", ["Press <x1/> now"]),
        (HTML, '<p translate="no">Acme</p><p>The <i translate=no>Acme</i> shop</p>', ["The <x1/> shop"]),
        (HTML, '<span class="a notranslate">Acme</span> is open', ["is open"]),
        (HTML, "Tom &amp; caf&eacute; &lt; 5 &nosuch; end", ["Tom & café <x1/> 5 <x2/> end"]),
        (HTML, "A <!-- note --> comment", ["A <x1/> comment"]),
        (HTML, "<b>unclosed <p>text", ["unclosed", "text"]),
        (HTML, "5 < 6 and a <b", ["5 <x1/> 6 and a <x2/>b"]),
        (HTML, "<table><tr><td>Cell</td><td>42</td></tr></table>", ["Cell"]),
        (HTML, "<P>Case <B>does not</b> matter</p>", ["Case <x1>does not</x1> matter"]),
        (XML, '<d><p>Press <x id="0"></x> now</p><p><r>Only</r></p></d>', ["Press <x1/> now", "Only"]),
        (XML, "<d><t>One</t><t>Two <![CDATA[<z>]]> three</t></d>", ["One", "Two <x1/> three"]),
        (XML, "<?xml version='1.0'?><!DOCTYPE d [<!ENTITY e 'x'>]><d>Say &e; twice</d>", ["Say <x1/> twice"]),
        (PLAIN, "Hi {name}, see https://a.b/c.\n\n%d files", ["Hi <x1/>, see <x2/>.", "<x1/> files"]),
        (PLAIN, "A <b>bold</b> <x1/>", ["A <b>bold</b> <x1/>"]),
        (PLAIN, "{name}\n%s: %d", []),
        (Preparation(1000, format=Format.XML, ignore_tags=frozenset({"x"})), "A <x>b</x> c", ["A <x1/> c"]),
        (
            Preparation(1000, format=Format.XML, splitting_tags=frozenset({"p"})),
            "A <p>b</p> c",
            ["A", "b", "c"],
        ),
        (
            Preparation(1000, format=Format.XML, non_splitting_tags=frozenset({"i"})),
            "<p><i>One</i><i>two</i></p>",
            ["<x1>One</x1><x2>two</x2>"],
        ),
    ],
)
def test_models_see_text_and_markers(how: Preparation, source: str, expected: list[str]) -> None:
    document = prepare(source, how)

    assert [segment.text for segment in document.segments] == expected
    assert document.rejoin([restore(segment, segment.text) for segment in document.segments]) == source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name} {0} {} {user.name!r:>10}", ["{name}", "{0}", "{}", "{user.name!r:>10}"]),
        ("{{ user }} {{{raw}}} {% if x %} <%= y %>", ["{{ user }}", "{{{raw}}}", "{% if x %}", "<%= y %>"]),
        ("${a} #{b} %{c}", ["${a}", "#{b}", "%{c}"]),
        ("%s %1$d %(name)s %-5.2f %% %@", ["%s", "%1$d", "%(name)s", "%-5.2f", "%%", "%@"]),
        ("100% sure, 50%discount, 5 % of it", []),
        ("{n, plural, one {# file} other {{m} files}} left", ["{n, plural, one {# file} other {{m} files}}"]),
        ("{hello world} {foo, bar} { unclosed", []),
        ("(https://a.b/c?d=1&e=2). www.x.org!", ["https://a.b/c?d=1&e=2", "www.x.org"]),
        (
            "见https://a.b/c。https://ne.wikipedia.org/wiki/नेपाल।",
            ["https://a.b/c", "https://ne.wikipedia.org/wiki/नेपाल"],
        ),
        ("Mail <me.you+x@mail.example.org>, not a@b", ["me.you+x@mail.example.org"]),
        ("Run `rm -rf` or ``a`b``; it`s", ["`rm -rf`"]),
    ],
)
def test_placeholders_are_found(text: str, expected: list[str]) -> None:
    assert [found.text for found in placeholders(text)] == expected


SOURCE = "<p>Read <b>this <i>now</i></b>, %s and %s or {x}</p>"


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        ("<x5/>: lies <x1>das <x2>jetzt</x2></x1>, <x3/> und <x4/>", set()),
        ("<x५/> <x1>वह <x2>अब</x2></x1> <x३/> <x４/>", set()),
        ("< X1 >das <x2>jetzt</x2 ></x1> <x3 /> <x4/> <x5/>", set()),
        ("lies das", {Fault.LOST}),
        ("<x1>das <x2>jetzt</x2></x1> <x3/> <x4/> <x5/> <x5/>", {Fault.DUPLICATED}),
        ("<x1>das <x2>jetzt</x2></x1> <x3/> <x4/> <x5/> <x6/>", {Fault.INVENTED}),
        ("<x1>das <x2>jetzt</x2></x1> <x4/> <x3/> <x5/>", {Fault.REORDERED}),
        ("<x1>das <x2>jetzt</x1></x2> <x3/> <x4/> <x5/>", {Fault.REORDERED}),
        ("<x2>das <x1>jetzt</x1></x2> <x3/> <x4/> <x5/>", {Fault.REORDERED}),
        ("</x1>das <x2>jetzt</x2><x1> <x3/> <x4/> <x5/>", {Fault.REORDERED}),
        ("<x1>das jetzt <x2></x2></x1> <x3/> <x4/> <x5/>", {Fault.EMPTIED}),
    ],
)
def test_spoiled_markers_are_named(answer: str, faults: set[Fault]) -> None:
    (segment,) = prepare(SOURCE, HTML).segments

    assert {problem.fault for problem in verify(segment, answer)} == faults
    if faults:
        with pytest.raises(BrokenMarkersError, match=next(iter(faults)).value):
            restore(segment, answer)


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("%{count} of %{total}", set()),
        ("%(count)d of %(total)d", set()),
        ("%1$d of %2$d", set()),
        ("{count} of {total}", set()),
        ("{0:d} of {1!r}", set()),
        ("%d%% of %s", {Fault.REORDERED}),
        ("{} of {}", {Fault.REORDERED}),
        ("{:d} of {:s}", {Fault.REORDERED}),
        ("{!r} of {!s:>10}", {Fault.REORDERED}),
    ],
)
def test_only_what_is_filled_by_its_order_has_to_keep_it(source: str, faults: set[Fault]) -> None:
    (segment,) = prepare(source, Preparation(512)).segments
    first, *_, last = markers = [f"<x{number}/>" for number in range(1, segment.text.count("<x") + 1)]
    answer = " ".join([last, *markers[1:-1], first])

    assert {problem.fault for problem in verify(segment, answer)} == faults


def test_answers_are_escaped_as_the_source_was() -> None:
    (segment,) = prepare("<p>Caf&eacute; &amp; bar</p>", HTML).segments

    assert restore(segment, "<b> é & ü\0") == "&lt;b&gt; &eacute; &amp; ü"


def test_long_runs_are_cut_without_breaking_pairs() -> None:
    source = "<p>" + "One <b>two three. Four</b> five. " * 30 + "</p>"
    document = prepare(source, Preparation(40, format=Format.HTML))

    assert all(len(segment.text) <= 40 for segment in document.segments)
    answers = [segment.text.replace("three", "drei") for segment in document.segments]
    restored = [restore(segment, answer) for segment, answer in zip(document.segments, answers, strict=True)]
    assert document.rejoin(restored) == source.replace("three", "drei")


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "<p>Hello <b>you</b>.</p>\n",
        "<b>",
        '<a b="',
        "<!--",
        "<",
        "<a ",
        "<b>x",
        "{a",
        "&amp;",
        "<?",
        "<script>",
        "`",
    ],
)
def test_time_grows_linearly(unit: str) -> None:
    def cpu_s(characters: int) -> float:
        source = unit * (characters // len(unit))
        before = time.process_time()
        document = prepare(source, Preparation(300, format=Format.HTML))
        assert document.rejoin([segment.source for segment in document.segments]) == source
        return time.process_time() - before

    # 16 times as long if it were quadratic; the least of two, as a collection of garbage may come in between.
    assert min(cpu_s(20_000), cpu_s(20_000)) < 8 * min(cpu_s(5_000), cpu_s(5_000)) + 0.1
