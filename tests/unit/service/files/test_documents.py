"""Documents of every kind through the core and back: for others' libraries only their texts have changed."""

import json
import re
import xml.etree.ElementTree as ET
from typing import Any
from xml.sax.saxutils import escape

import polib
import pytest
import yaml
from markdown_it import MarkdownIt
from tests.support.engines import AnsweringEngine
from tests.unit.service.files.documents import DOCUMENTS

from dragoman_protocols.documents import result_name
from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.files import FILE_ENDINGS
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.translator import Translator
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import read
from dragoman_service.prompts.families import prompt_family
from dragoman_service.text.pieces import MARKER


def shouted(text: str) -> str:
    parts: list[str] = []
    position = 0
    for marker in MARKER.finditer(text):
        parts += (text[position : marker.start()].upper(), marker[0])
        position = marker.end()
    return "".join([*parts, text[position:].upper()])


async def translated(file: FileDocument) -> bytes:
    # The texts stay in one language, so that nothing is found wrong with them.
    request = TranslationRequest(
        file.texts,
        "en-GB",
        "en",
        format=file.format,
        ignore_tags=file.ignore_tags,
        splitting_tags=file.splitting_tags,
        non_splitting_tags=file.non_splitting_tags,
    )
    results = await Translator(
        AnsweringEngine(lambda segment, _: shouted(segment)), prompt_family("chatml-generic")
    ).translate(request)
    return file.rebuild([result.text for result in results])


def folded(value: Any) -> str:
    return repr(value).casefold()


def test_there_are_sixty_documents_and_some_of_each_kind() -> None:
    assert len(DOCUMENTS) >= 60
    assert {f".{name.rpartition('.')[2]}" for name in DOCUMENTS} == set(FILE_ENDINGS)


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_only_the_texts_change(name: str) -> None:
    content, seen = DOCUMENTS[name]
    file = read(name, content, "en-GB")
    assert file.rebuild(file.texts)
    assert folded(seen(file.rebuild(file.texts))) == folded(seen(content))
    back = await translated(file)
    assert folded(seen(back)) == folded(seen(content))
    assert back != content
    after = read(result_name(name), back, "en-GB").words()
    if not name.endswith((".po", ".pot", ".xlf", ".xliff")):
        assert folded(after) == folded(file.words())
        shown = [re.sub(r"<[^<>]*>|&\w+;|\{+\w+\}+|%\S+|https?:\S+", "", text) for text in after]
        assert not any(map(str.islower, "".join(shown)))
        assert any(map(str.isupper, "".join(shown)))


@pytest.mark.parametrize(
    "name", [n for n in DOCUMENTS if n.endswith((".json", ".arb", ".yaml", ".strings", ".md"))]
)
def test_what_is_not_translated_comes_back_byte_for_byte(name: str) -> None:
    content, _ = DOCUMENTS[name]
    file = read(name, content, "en")
    assert file.rebuild(file.texts) == content


async def test_a_catalog_gets_what_it_lacks() -> None:
    def back(name: str, translations: list[str]) -> list[Any]:
        file = read("a.po", DOCUMENTS[f"{name}.po"][0], "pt-BR")
        catalog = polib.pofile(file.rebuild(translations).decode() + "\n")
        assert catalog.metadata["Language"] == "pt_BR"
        return [(e.msgstr or sorted(e.msgstr_plural.items()), e.fuzzy) for e in catalog if not e.obsolete]

    assert back("template", ["Abrir %s", "Um ficheiro", "%d ficheiros"]) == [
        ("Abrir %s", False),
        ([(0, "Um ficheiro"), (1, "%d ficheiros")], False),
    ]
    assert back("started", ["Incerto", "Novo"]) == [("Fertig", False), ("Incerto", False), ("Novo", False)]


CATALOG = """msgid ""
msgstr ""
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset={}\\n"
"Content-Transfer-Encoding: 7bit\\n"

# {}
msgid "Size"
msgstr ""
"""


@pytest.mark.parametrize(
    ("charset", "comment", "encoding"),
    [
        ("CHARSET", "Größe", "utf-8"),
        ("ISO-8859-1", "size", "ascii"),
        ("ISO-8859-1", "Größe", "utf-8"),
        ("ISO-8859-1", "Größe", "iso-8859-1"),
        ("windows-1251", "Размер", "cp1251"),
        ("Shift_JIS", "表の大きさ", "shift_jis"),
    ],
)
def test_a_catalog_is_read_in_its_charset_and_names_the_one_in_which_it_is_written(
    charset: str, comment: str, encoding: str
) -> None:
    file = read("a.po", CATALOG.format(charset, comment).encode(encoding), "de")
    catalog = polib.pofile(file.rebuild(["Größe"]).decode() + "\n")
    assert (catalog[0].tcomment, catalog[0].msgstr) == (comment, "Größe")
    assert catalog.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert catalog.metadata["Content-Transfer-Encoding"] == "8bit"


@pytest.mark.parametrize(
    ("charset", "cause"), [("CHARSET", "CHARSET"), ("UTF-8", "not utf-8"), ("UTF-7", "UTF-7")]
)
def test_a_catalog_in_no_charset_that_it_names_is_refused(charset: str, cause: str) -> None:
    with pytest.raises(BrokenFileError, match=cause):
        read("a.po", CATALOG.format(charset, "Größe").encode("iso-8859-1"), "de")


def test_a_catalog_without_a_header_gets_none() -> None:
    back = read("a.po", b'msgid "Size"\nmsgstr ""\n', "de").rebuild(["Größe"])
    assert b"charset" not in back


def targets(name: str) -> list[Any]:
    file = read("a.xlf", DOCUMENTS[f"{name}.xlf"][0], "de")
    root = ET.fromstring(
        file.rebuild(
            [
                text.upper().replace("<G ID", "<g id").replace("</G", "</g").replace("<X ID", "<x id")
                for text in file.texts
            ]
        )
    )
    assert (root.get("trgLang") or root[0].get("target-language")) == "de"
    return [
        re.sub(r"ns0:| xmlns:\w+=\"[^\"]*\"", "", ET.tostring(each, encoding="unicode")).strip()
        for each in root.iter()
        if each.tag.endswith("}target")
    ]


def test_xliff_gets_targets() -> None:
    mt = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert targets("inline") == [
        f'<target {mt}>A <g id="1">BOLD</g> WORD<x id="2" /> AND <ph id="3">{{0}}</ph></target>'
    ]
    assert targets("kept") == ['<target state="final">Fertig</target>', f"<target {mt}>NEW TEXT</target>"]
    assert targets("segmented") == [
        f'<target {mt}><mrk mtype="seg" mid="1">ONE.</mrk> <mrk mtype="seg" mid="2">TWO.</mrk></target>'
    ]
    assert targets("two-inline") == ['<target>A <pc id="1">BOLD</pc> WORD<ph id="2" /></target>']
    assert targets("two-kept") == ["<target>Fertig</target>", "<target>NEW ONE</target>"]


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("a.xml", "<resources><string name='a'>{}</string></resources>"),
        (
            "a.xlf",
            "<xliff><file><body><trans-unit id='1'><source>{}</source></trans-unit></body></file></xliff>",
        ),
    ],
)
def test_comments_within_a_text_stay_in_its_translation(name: str, around: str) -> None:
    file = read(name, around.format("Open <!-- verb --> all<?a b?>").encode(), "de")
    assert file.texts == ('Open <x id="0"/> all<x id="1"/>',)
    assert b"Alle <!-- verb --> auf<?a b?>" in file.rebuild(['Alle <x id="0"/> auf<x id="1"/>'])


def test_arb_names_its_language_and_keeps_its_metadata() -> None:
    file = read("a.arb", DOCUMENTS["app.arb"][0], "pt-BR")
    assert file.texts == ("Hello {name}", "Bye now")
    back = json.loads(file.rebuild(["Olá {name}", "Tchau"]))
    assert (back["@@locale"], back["hello"], back["@hello"]["description"]) == (
        "pt_BR",
        "Olá {name}",
        "A greeting",
    )


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "12: a",
        "- x",
        "a # b",
        "it's",
        'a "b"',
        " x ",
        "a\nb",
        "",
        "\n\na",
        "a\n\nb",
        "b ?",
        "# no",
        "é: ü",
        "{a}",
        "*x",
        "null",
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        "a: some text\nb: 1\n",
        "a: 'some text'\nb: 1\n",
        'a: "some text"\nb: 1\n',
        "a: |-\n  some text\nb: 1\n",
        "{a: some text, b: 1}\n",
        "a: >-\n  some text\nb: 1\n",
    ],
)
def test_yaml_has_any_translation_as_it_is(source: str, text: str) -> None:
    file = read("a.yml", source.encode(), "de")
    assert file.texts == ("some text",)
    assert yaml.safe_load(file.rebuild([text])) == {"a": text, "b": 1}


@pytest.mark.parametrize(
    "text",
    [
        "*a*",
        "# a",
        "1. a",
        "- a",
        "a_b_ _c_",
        "<b>",
        "[a](b)",
        "a | b",
        "> a",
        "`a",
        "&amp;",
        "\\",
        "a\nb",
        "+ a",
        "***",
        "==",
    ],
)
@pytest.mark.parametrize(
    "source",
    ["some text\n", "- some text\n- x1\n", "| a1 | b1 |\n|---|---|\n| some text | 1 |\n", "> some text\n"],
)
def test_markdown_has_any_translation_as_text(source: str, text: str) -> None:
    file = read("a.md", source.encode(), "de")
    place = file.texts.index("some text")
    texts = list(file.texts)
    texts[place] = escape(text)
    render = MarkdownIt("commonmark").enable("table").render
    assert render(file.rebuild(texts).decode()) == render(source).replace(
        "some text", escape(text.replace("\n", " "))
    )


@pytest.mark.parametrize("mark", ["`a \\| b`", "![a \\| b](c)", '<i title="a \\| b">'])
def test_vertical_bars_in_marks_do_not_end_a_cell(mark: str) -> None:
    file = read("a.md", f"| A | B |\n|---|---|\n| {mark} one | two |\n".encode(), "de")
    translations = [text.upper().replace("<X ID", "<x id") for text in file.texts]
    assert f"| {mark} ONE | TWO |" in file.rebuild(translations).decode()


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("A **bold** word\n", '这是<g id="0">“粗体”</g>字', "这是<strong>“粗体”</strong>字\n"),
        ("A _soft_ word\n", 'ein weich<g id="0">es</g> Wort', "ein weich<em>es</em> Wort\n"),
        ("A **bold** word\n", 'Ein <g id="0"> fettes </g>Wort', "Ein  **fettes** Wort\n"),
        ("# C one\n", "Eins C #", "# Eins C \\#\n"),
        ("See <https://a.b> now\n", 'Jetzt <x id="0"/> sehen', "Jetzt <https://a.b> sehen\n"),
    ],
)
def test_marks_in_markdown_are_read_as_such(source: str, translation: str, expected: str) -> None:
    file = read("a.md", source.encode(), "de")
    assert file.rebuild([translation]).decode() == expected


@pytest.mark.parametrize(
    ("source", "texts", "expected"),
    [
        ("- [ ] write it\n- [x] x\n", ["write it", "x"], "- [ ] WRITE IT\n- [x] X\n"),
        ("1. [X] one\n   two\n\n   * [ ] *a*\n", ["one\ntwo", None], "1. [X] ONE\n   TWO\n\n   * [ ] *A*\n"),
        ("- one\n  [x] two\n", ["one\n[x] two"], "- ONE\n  [X] TWO\n"),
        ("- [a](b) c\n", [None], "- [A](b) C\n"),
        ("> [!NOTE]\n> be\n> good\n", ["be\ngood"], "> [!NOTE]\n> BE\n> GOOD\n"),
        ("> [!tip]- Title\n> be good\n", ["Title", "be good"], "> [!tip]- TITLE\n> BE GOOD\n"),
        ("> [!WARNING]\n>\n> - [ ] a\n", ["a"], "> [!WARNING]\n>\n> - [ ] A\n"),
        ("> [!a](b)\n", [None], "> [!A](b)\n"),
        ("A note[^1] and[^b-c].\n", ['A note<x id="0"/> and<x id="1"/>.'], "A NOTE[^1] AND[^b-c].\n"),
        ("A *b[^1]* [c[^2]](d)\n", [None], "A *B[^1]* [C[^2]](d)\n"),
        ("Is `[^1]` \\[^1]\n", ['Is <x id="0"/> [^1]'], "IS `[^1]` \\[^1]\n"),
        ("[^1]: One.\n[^2]: Word\n[^3]:\tof\n  two\n", ["One.", "Word", "of\ntwo"], None),
        ("a b\n[^a]: a\n", ["a b", "a"], "A B\n[^a]: A\n"),
        ("Some [text]\n\n[text]: url\n", [None], "SOME [TEXT]\n\n[text]: url\n"),
        ("- one is\n\ttwo\n- three\n", ["one is\ntwo", "three"], "- ONE IS\n\tTWO\n- THREE\n"),
        ("1.\tone\n\ttwo\n\n\tthree\n", ["one\ntwo", "three"], "1.\tONE\n\tTWO\n\n\tTHREE\n"),
        ('+++\ntitle = "a b"\n+++\n\nc d\n', ["c d"], '+++\ntitle = "a b"\n+++\n\nC D\n'),
        (":::note\nbe\ngood\n:::\nnow\n", ["be\ngood", "now"], ":::note\nBE\nGOOD\n:::\nNOW\n"),
        ("::: {.tip}\n- a\n- b\n:::\n", ["a", "b"], "::: {.tip}\n- A\n- B\n:::\n"),
        ('a b\n!!! tip "a b"\n    c d\n', ["a b"], 'A B\n!!! tip "a b"\n    c d\n'),
        ('=== "Tab"\n\nc d\n', ["c d"], '=== "Tab"\n\nC D\n'),
        ("a b\n===\n", ["a b"], "A B\n===\n"),
        ("# One {#one .two}\n", ['One <x id="0"/>'], "# ONE {#one .two}\n"),
        ("a *b*{: .c } d\n", ['a <g id="0">b</g><x id="1"/> d'], "A *B*{: .c } D\n"),
        ("{{#if a}} one :::\n", ["{{#if a}} one :::"], "{{#if a}} ONE :::\n"),
    ],
)
async def test_marks_of_other_markdown_keep_their_function(
    source: str, texts: list[str | None], expected: str | None
) -> None:
    file = read("a.md", source.encode(), "en-GB")
    assert [None if wanted is None else text for text, wanted in zip(file.texts, texts, strict=True)] == texts
    assert file.rebuild(file.texts).decode() == source
    back = (await translated(file)).decode()
    assert back == (expected or "[^1]: ONE.\n[^2]: WORD\n[^3]:\tOF\n  TWO\n")


@pytest.mark.parametrize(
    "value",
    ["on\\/off \\(name) \\U00e9 it's", 'a\\n\\tb \\"c\\" \\\\ d'],
)
def test_strings_keep_the_escapes_of_the_source(value: str) -> None:
    content = f'/* c */ "a\\/b" = "{value}";\n'.encode()
    document = read("a.strings", content, "de")
    back = document.rebuild([text + "!" for text in document.texts])
    assert back == content.replace(b'";', b'!";')


@pytest.mark.parametrize("declaration", ["", "<?xml version='1.0' encoding=\"UTF-8\" standalone='no'?>\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_xliff_keeps_every_byte_but_targets_and_languages(declaration: str, mark: str, quote: str) -> None:
    one = (
        mark + declaration + "<x:xliff xmlns:x='urn:oasis:names:tc:xliff:document:1.2' version='1.2' >\r\n"
        "<x:file  source-language='en' original='a'\r\n datatype='b'><!-- c --><x:body>\r\n"
        "  <x:trans-unit id='1'>\r\n    <x:source>A &quot;b&quot; > <x:g id='2' >c</x:g>&#233;</x:source>\r\n"
        "    <x:note/></x:trans-unit>\r\n"
        "  <x:trans-unit id='2'><x:source>d</x:source><x:target state = 'new'/></x:trans-unit>\r\n"
        "  <x:trans-unit id='3'><x:source><![CDATA[e]]></x:source><x:target>f</x:target></x:trans-unit>\r\n"
        "</x:body></x:file></x:xliff>\r\n"
    ).replace("'", quote)
    file = read("a.xlf", one.encode(), "pt-BR")
    back = file.rebuild([text + "!" for text in file.texts]).decode()
    state = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert back == one.replace(
        f" datatype={quote}b{quote}", f' datatype={quote}b{quote} target-language="pt-BR"'
    ).replace(
        "&#233;</x:source>",
        f"&#233;</x:source>\r\n    <x:target {state}>A &quot;b&quot; > "
        f"<x:g id={quote}2{quote} >c</x:g>&#233;!</x:target>",
    ).replace(
        f"<x:target state = {quote}new{quote}/>",
        f'<x:target state = {quote}needs-review-translation{quote} state-qualifier="mt-suggestion">d!</x:target>',
    )


def test_strings_are_escaped_and_captions_keep_their_notes() -> None:
    file = read("a.strings", DOCUMENTS["app.strings"][0], "de")
    assert file.texts == ('Some "text" here', 'Line<br id="0"/>break %@')
    assert b'"Ein \\"Text\\"\\n\\\\";' in file.rebuild(['Ein "Text"\n\\', file.texts[1]])
    assert read("a.vtt", DOCUMENTS["captions.vtt"][0], "de").texts == (
        "<v Anna>Hello &amp; welcome, all of you.",
        'One <c classes="loud">speaker</c>.',
        'Another <wbr at="00:00:03.500">one.',
    )


YAML = """a: about %{count} hours # c
b: one two
  three
c: >-
  One two
  three.

  Four
  five.
d: 'it''s
  here'
e: "a \\u00d7 \\"b\\"
  c
  d"
f: &x !!str >
    six
    seven
g: |
  eight

  nine
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_yaml_keeps_styles_escapes_and_lines(end: str) -> None:
    content = YAML.replace("\n", end).encode()
    file = read("a.yaml", content, "en-GB")
    back = await translated(file)
    assert back.decode().lower() == content.decode().lower()
    assert yaml.safe_load(back)["c"] == "ONE TWO THREE.\nFOUR FIVE."
    longer = file.rebuild([re.sub("(two|Four|six)", r"\1 and more", text) for text in file.texts])
    assert [len(text.split(end)) for text in (longer.decode(), content.decode())] == [22, 22]
    assert yaml.safe_load(longer)["b"] == "one two and more three"


def test_protected_text_of_xliff_is_not_translated() -> None:
    unit = (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file><body><trans-unit id="1">'
        '<source>Start <mrk mtype="protected">Word</mrk> or a <mrk mtype="term">mail</mrk></source>'
        "</trans-unit></body></file></xliff>"
    )
    assert read("a.xlf", unit.encode(), "de").texts == ('Start <x id="0"/> or a <g id="1">mail</g>',)


@pytest.mark.parametrize(
    "source",
    [
        "This is a long\n        text.",
        "First\\n\n        second",
        '"  two  blanks "',
        "It\\'s &#8230; &quot;so&quot; \\? &gt; > \\u00e9 <b id='x' >y</b> z",
    ],
)
def test_android_s_blanks_escapes_and_tags_stay(source: str) -> None:
    """Outside of quotes, Android shows any blanks and line breaks as one blank."""
    content = f"<resources>\r\n<string name='a'>{source}</string><!-- c --></resources>".encode()
    document = read("a.xml", content, "de")
    end = '"' if source.endswith('"') else ""
    expected = content.replace(f"{end}</string>".encode(), f"!{end}</string>".encode())
    assert document.rebuild([text + "!" for text in document.texts]) == expected.replace(b"\n   ", b"\r\n   ")


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("a.xml", "<rss>\r\n<title>{}</title> <!-- <![CDATA[ a ]]> --> </rss >"),
        ("a.xml", "<resources>\r\n<string name='a'>{}</string></resources>"),
        ("a.resx", "<root>\r\n<data name='a'><value>{}</value></data></root>"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "<![CDATA[A <b>cat</b> & a dog.]]>",
        "\n <![CDATA[A cat]]>\n",
        "A &lt;b&gt; &#233; cat > 1",
    ],
)
def test_sections_and_references_of_xml_stay(name: str, frame: str, text: str) -> None:
    content = frame.format(text).encode()
    file = read(name, content, "de")
    assert file.rebuild(file.texts) == content
    back = file.rebuild([text.replace("cat", "KAT") for text in file.texts])
    assert back.replace(b"\r\n", b"\n") == content.replace(b"cat", b"KAT").replace(b"\r\n", b"\n")


def test_android_s_locale_is_that_of_the_target() -> None:
    tools = "xmlns:tools='http://schemas.android.com/tools' tools:locale='{}'"
    content = f"<resources {tools}><string name='a'>B</string></resources>"
    back = read("a.xml", content.format("en").encode(), "pt-BR").rebuild(["C"]).decode()
    assert back == content.format("pt-BR").replace("B<", "C<")


def test_android_s_escaped_blanks_stay() -> None:
    frame = '<resources><string name="a">{}</string></resources>'
    document = read("a.xml", frame.format("\\u0020Your name:\\u0020").encode(), "de")
    result = document.rebuild([text.upper() for text in document.texts]).decode()
    assert frame.format("\\u0020YOUR NAME:\\u0020") in result
