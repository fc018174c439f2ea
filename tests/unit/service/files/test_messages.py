"""Localization files of programs: structure, code and metadata stay, texts are translated."""

import time
from difflib import ndiff
from pathlib import Path

import pytest
from tests.unit.service.files.test_documents import translated

from dragoman_service.files.kinds import read
from dragoman_service.files.messages import Message
from dragoman_service.files.values import is_language
from dragoman_service.text.placeholders import placeholders

CASES = Path(__file__).parent / "cases"
MAX_S = 5.0
"""Of CPU, on a busy machine; most take 0.2 s, and time quadratic in the size minutes."""
RESX = [
    "<value>E&amp;XIT</value>",
    "<value>&amp;FILE</value>",
    "<value>P&amp;RINT...</value>",
    "<value>YES/NO</value><comment>Shown in a list</comment>",
    "<value>LINE ONE",
    "LINE TWO {0:N2}</value>",
    "<value>TYPED STRING HERE</value>",
    "<value>TEXT FILES (*.txt)|*.txt|ALL FILES (*.*)|*.*</value>",
]


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("Form.resx", RESX),
        ("Form2.resx", RESX),
        ("Form3.resx", RESX),
        ("nl.json", ['{"a": "LINE ONE.\\nLINE TWO."}']),
        (
            "tags.json",
            [
                '"THE <b>CAT</b> SLEEPS."',
                '"THE <a href=\\"https://x.example/the-cat\\" title=\\"The farmer\\">CAT</a> SLEEPS."',
                '"THE <0>CAT</0> SLEEPS."',
                '"THE &lt;b&gt;CAT&lt;/b&gt; SLEEPS &amp; EATS."',
            ],
        ),
        (
            "messages.json",
            [
                '"CAT FINDER", "description": "The name of the extension, shown in the store"',
                '"HELLO $USER$, YOU HAVE $COUNT$ CATS"',
            ],
        ),
        (
            "i18n.json",
            [
                'SEE $t(common.help) OR $t(item, {\\"count\\": 3}) NOW',
                "READ @:common.terms OR @.lower:common.name NOW",
                "MAIL {'@'} HOME",
                '"unit": "YES/NO", "menu": "E&XIT", "amp": "DRAG&DROP", "on": "ON/OFF", "slash": "AND/OR"',
                '"ver": "v1.2", "key": "icon.open"',
                "CAF\\u00c9",
                "{{value, number(minimumFractionDigits: 2)}}",
                '"locale": "en"',
                "%(count)d OF %s, 100%",
                "%1$@ HAS %2$lld ITEMS, %#@files@",
                "SET ${HOME} AND $HOME FIRST",
            ],
        ),
        ("octal.strings", ['"CAF\\351 \\u00e9 NOW"']),
        ("unq.strings", ['key1 = "VALUE";', '"TWO WORDS"']),
        (
            "cdata.xml",
            [
                "<![CDATA[THE <b>CAT</b> SLEEPS.]]>",
                "THE &lt;b&gt;CAT&lt;/b&gt; SLEEPS.",
                """<![CDATA[BY CONTINUING YOU ACCEPT OUR <a href="%1$s">TERMS</a> AND <a href='%2$s'>PRIVACY</a>]]>""",
                "THE CAT SLEEPS.\\nTHE FARMER LIKES FISH.",
                '"  SPACED  "',
                'example="Al">%1$s</xliff:g>!',
            ],
        ),
        ("mixq.csv", ["ID,TEXT,NOTE", '1,HELLO WORLD,"FIRST, NOTE"', '2,"BYE",']),
        ("onecol.csv", ["HELLO, WORLD", "THE CAT, THE DOG", "GOOD NIGHT, ALL"]),
        (
            "semi.csv",
            [
                'A;"HELLO, WORLD; AGAIN";=IF(A1>3, "yes", "no")',
                'LINES";"=HYPERLINK(""https://x.example"",""Open the page"")"',
                '"C";"HE SAID ""HI""";=A1&" cats"',
            ],
        ),
        ("q.tsv", ["NAME\tTEXT", 'X\t"UNBALANCED QUOTE INCH 5" WIDE']),
        ("noblank.srt", ["FISH AND BREAD", "THE CAT SLEEPS."]),
        (
            "a.srt",
            [
                "{\\an8}{\\i1}HELLO THERE,{\\i0} MY FRIEND",
                "{\\c&H0000FF&}COLOUR",
                "- IT SLEEPS.",
                "BEFORE ME",
            ],
        ),
        ("crlf.srt", ["{\\an8}{\\i1}HELLO THERE,{\\i0} MY FRIEND\r", "{\\c&H0000FF&}COLOUR"]),
        ("a.vtt", ["<v.loud Anna Lee>HELLO &amp; GOOD <i>DAY</i>,", "- ANOTHER"]),
        (
            "wiki.md",
            [
                "SEE [[Other note|this note]] AND ![[picture.png]] NOW.",
                "AT #123 AND :smile: TODAY.",
                ":   THE DEFINITION OF THE TERM.",
                "*[HTML]: HYPER TEXT MARKUP LANGUAGE",
            ],
        ),
        ("crmd.md", ["AUTO https://example.org/_foo_/bar*baz AND <me@example.org> LINK.", ":tada:"]),
        ("docusaurus.md", ["THE VALUE IS {props.value} AND {frontMatter.title}."]),
    ],
)
async def test_only_texts_change(name: str, added: list[str]) -> None:
    content = (CASES / name).read_bytes()
    file = read(name, content, "de")
    assert file.rebuild(file.texts) == content
    back = await translated(file)
    lines = [
        line[2:] for line in ndiff(content.decode().split("\n"), back.decode().split("\n")) if line[0] == "+"
    ]
    whole = "\n".join(lines)
    assert [part for part in added if part not in whole] == []
    assert back.count(b"\r\n") == content.count(b"\r\n")
    assert content.startswith(b"\xef\xbb\xbf") == back.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    "name", ["rails.yml", "crlf.yaml", "nobom.strings", "loc.strings", "u16.csv", "dita.xml"]
)
def test_what_is_not_translated_comes_back_byte_for_byte(name: str) -> None:
    content = (CASES / name).read_bytes()
    file = read(name, content, "de")
    assert file.texts
    assert name == "dita.xml" or file.rebuild(file.texts) == content


async def test_symbols_and_formats_of_dates_stay() -> None:
    back = (await translated(read("rails.yml", (CASES / "rails.yml").read_bytes(), "de"))).decode()
    kept = (
        "- :year",
        '"%B %d, %Y"',
        '"%a, %d %b %Y %H:%M:%S %z"',
        '"%u%n"',
        ':"errors.format"',
        '"%{attribute} %{message}"',
    )
    assert [part for part in kept if part not in back] == []
    assert "day_names: [SUNDAY, MONDAY]" in back


async def test_every_line_of_yaml_ends_as_before() -> None:
    back = await translated(read("crlf.yaml", (CASES / "crlf.yaml").read_bytes(), "de"))
    assert back.count(b"\n") == back.count(b"\r\n")
    assert b"o: :symbol\r\n" in back


@pytest.mark.parametrize(
    "value", ["Yes/No", "On/Off", "and/or", "he/she", "E&xit", "&Open...", "Username:Password"]
)
def test_short_texts_of_programs_are_language(value: str) -> None:
    assert is_language(value)


@pytest.mark.parametrize("value", ["Europe/Paris", "text/html", "img/bg", "%B %d, %Y", "%u%n", "a&b=c"])
def test_code_is_none(value: str) -> None:
    assert not is_language(value)


async def test_code_of_other_dialects_of_markdown_stays() -> None:
    kept = [
        "import Tabs from '@theme/Tabs';",
        "export const color = 'red';",
        "{/* a comment for writers */}",
        "[[_TOC_]]",
        "[TOC]",
        '--8<-- "shared/notice.md"',
        "$$ x_1 * y $$",
    ]
    inline = [
        "$a_b*c$",
        '{{< ref "a_b" >}}',
        "{% raw a_b %}",
        "\\(x_1\\)",
        "https://x.example/a_b_c?d=*e*f",
        "{>>a *b*<<}",
    ]
    source = "\n\n".join([*kept, *(f"some text {each} goes on" for each in inline)]) + "\n"
    back = (await translated(read("a.md", source.encode(), "de"))).decode()
    assert back == "\n\n".join([*kept, *(f"SOME TEXT {each} GOES ON" for each in inline)]) + "\n"
    critic = await translated(read("a.md", b"a {++new++} {--old--} {~~one~>two~~} {==here==}", "de"))
    assert critic == b"A {++NEW++} {--OLD--} {~~ONE~>TWO~~} {==HERE==}"


async def test_prose_that_begins_with_a_keyword_of_code_is_translated() -> None:
    source = "import taxes are high\n\nIt costs $5 and $6.\n\n\\[not a link\\] here\n"
    assert (await translated(read("a.md", source.encode(), "de"))).decode() == source.upper()


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["&lt;a ", "<a b='", "<b>", "</b><i>", "$t(", "%", "{\\", "*.", "@:a", "\\u00", "\x0c ", "<code>", " "],
)
def test_time_grows_with_the_size(unit: str) -> None:
    value = unit * 30_000
    began_s = time.thread_time()
    message = Message(value, frozenset({"c", "ruby", "java-printf", "boost"}), "&_~")
    assert message.written(message.text) == value
    message.written(f"{message.text}!")
    assert time.thread_time() - began_s < MAX_S


@pytest.mark.parametrize(
    ("family", "placeholder"),
    [("go", "%+v"), ("go", "%q"), ("php", "%b"), ("lua", "%q"), ("ruby", "%08b")],
)
def test_placeholders_that_only_some_families_have(family: str, placeholder: str) -> None:
    message = Message(f'Say "{placeholder}" now', frozenset({family}))
    assert f'Say "{placeholder}' not in message.text
    assert message.written(message.text.replace("Say", "Sag")) == f'Sag "{placeholder}" now'


def test_placeholders_of_python_are_found_in_any_text() -> None:
    assert [each.text for each in placeholders("No %r in @{{x}}, {% set a = {} %}")] == [
        "%r", "{{x}}", "{% set a = {} %}"
    ]  # fmt: skip
