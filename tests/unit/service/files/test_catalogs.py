"""Gettext catalogs: only lines of translations change, and gettext's own tools take the result."""

import asyncio
import shutil
import subprocess
from difflib import ndiff
from pathlib import Path

import pytest
from tests.unit.service.files.test_documents import translated

from dragoman_service.files.kinds import read
from dragoman_service.files.messages import Message
from dragoman_service.files.plural_forms import RULES, plural_forms, plural_forms_of

CASES = Path(__file__).parent / "cases"


def checked(content: bytes) -> None:
    """Fails where gettext would not use a catalog."""
    if shutil.which("msgfmt"):
        command = ["msgfmt", "-c", "-o", "/dev/null", "-"]
        run = subprocess.run(command, input=content, capture_output=True, check=False)
        assert run.returncode == 0, run.stderr


async def changes(name: str, target_lang: str = "de") -> list[str]:
    """The lines that a translation into capitals has, and its source has not."""
    content = (CASES / name).read_bytes()
    back = await translated(read(name, content, target_lang))
    await asyncio.to_thread(checked, back)
    before, after = (each.decode().split("\n") for each in (content, back))
    return [line[2:] for line in ndiff(before, after) if line.startswith("+ ")]


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("crlf.po", ['msgstr "SECOND LINE"\r', 'msgstr "THIRD LINE"\r']),
        ("crlf2.po", ['msgstr "SECOND LINE"\r', 'msgstr "THIRD LINE"\r']),
        ("l2028.po", ['msgstr "FIRST LINE\u2028SECOND LINE"']),
        ("l0085.po", ['msgstr "FIRST LINE\x85SECOND LINE"']),
        ("l000c.po", ['msgstr "FIRST\x0cSECOND LINE"']),
        ("lcomment.po", ['msgstr "SECOND LINE"']),
        ("lctx.po", ['msgstr "SECOND LINE"']),
        ("nl.po", ['msgstr ""', '"Language: de\\n"', '"LINE ONE.\\n"', '"LINE TWO."']),
        ("flags.po", ['msgstr "OPEN %s"', 'msgstr "SAVE %s"', 'msgstr "THIRD LINE"']),
        ("flags2.po", ['msgstr "OPEN %s"', 'msgstr "SAVE %s"', 'msgstr "THIRD LINE"']),
        (
            "places.po",
            [
                'msgstr "FIRST LINE SECOND LINE"',
                'msgstr "FORM FEED AND NEXT LINE"',
                'msgstr "%<PRIu64> FILES AND %\'d BYTES AND %1$s"',
                'msgstr "COPYING %1 OF %2 TO %L3"',
                'msgstr "PRICE: %<price>.2f AND %{name}"',
                'msgstr "TOTAL: %1$,d OF %2$,.2f"',
                'msgstr "NEW TEXT"',
                '"\\n"',
                '"USAGE: %s [OPTION]\\n"',
                '"  -H, --HELP   SHOW THIS HELP\\n"',
                '"\\t TAB AND \\"QUOTES\\" AND \\\\ BACKSLASH\\n"',
            ],
        ),
    ],
)
async def test_only_translations_change(name: str, added: list[str]) -> None:
    found = await changes(name)
    assert [line for line in found if "Content-" not in line] == added


MANY = "%d FILES WERE DELETED."


@pytest.mark.parametrize(
    ("name", "target_lang", "forms"),
    [
        ("slovenian.po", "sl", [MANY] * 4),
        ("arabic.po", "ar", [MANY, "ONE FILE WAS DELETED.", *[MANY] * 4]),
        ("start.pot", "sl", [MANY] * 4),
        ("start.pot", "de", ["ONE FILE WAS DELETED.", MANY]),
        ("start.pot", "ja", [MANY]),
        ("start.pot", "pl", ["ONE FILE WAS DELETED.", MANY, MANY]),
        ("start.pot", "ru", [MANY] * 3),
    ],
)
async def test_a_message_has_the_plural_forms_of_the_target(
    name: str, target_lang: str, forms: list[str]
) -> None:
    found = await changes(name, target_lang)
    assert [line for line in found if line.startswith("msgstr[")] == [
        f'msgstr[{number}] "{form}"' for number, form in enumerate(forms)
    ]
    if name == "start.pot":
        assert f'"Plural-Forms: {plural_forms_of(target_lang).header}\\n"' in found
        assert f'"Language: {target_lang}\\n"' in found


def test_the_form_of_one_thing_is_that_of_more_numbers_where_it_has_the_number() -> None:
    source = (
        b'msgid ""\nmsgstr ""\n"Language: ru\\n"\n\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    )
    back = read("a.po", source, "ru").rebuild(["%d one", "%d many"]).decode()
    assert [line for line in back.split("\n") if line.startswith("msgstr[")] == [
        'msgstr[0] "%d one"', 'msgstr[1] "%d many"', 'msgstr[2] "%d many"',
    ]  # fmt: skip


async def test_tags_in_a_message_are_tags() -> None:
    file = read("tags.po", (CASES / "tags.po").read_bytes(), "de")
    assert file.texts == ('The <g id="0">cat</g> sleeps.',) * 2
    assert b'"THE <a href=\\"%s\\">CAT</a> SLEEPS."' in await translated(file)
    assert b'"Weg."' not in file.rebuild(["Weg.", "Weg."])


@pytest.mark.parametrize("language", [language for languages in RULES for language in languages.split()])
def test_every_language_has_a_rule_that_can_be_read(language: str) -> None:
    rule = plural_forms_of(language)
    assert rule.count == 1 or any(rule.with_one)


@pytest.mark.parametrize(
    "header",
    [
        "nplurals=INTEGER; plural=EXPRESSION;",
        "nplurals=0; plural=0;",
        "nplurals=2; plural=n;",
        "nplurals=2; plural=(n!=1",
        "nplurals=2; plural=n/0;",
        "nplurals=2; plural=" + "(" * 300 + "n;",
        "",
    ],
)
def test_a_rule_that_cannot_be_read_is_none(header: str) -> None:
    assert plural_forms(header) is None


@pytest.mark.parametrize(
    ("value", "text", "translation", "written"),
    [
        ("E&xit", "Exit", "Beenden", "&Beenden"),
        ("&File", "File", "Datei", "&Datei"),
        ("Save _As...", "Save As...", "Als speichern...", "_Als speichern..."),
        ("&File", "File", "文件", "文件(&F)"),
        ("&Open...", "Open...", "打开...", "打开(&O)..."),
        ("P&rint", "Print", "Imprimir", "Imp&rimir"),
        ("Drag&Drop", "Drag&amp;Drop", "Ziehen&amp;Ablegen", "Ziehen&Ablegen"),
        ("AT&T", "AT&amp;T", "AT&amp;T!", "AT&T!"),
        ("user_name", "user_name", "a_b", "a_b"),
        ("a<b & c", "a&lt;b &amp; c", "x&lt;y", "x<y"),
        ("One\nTwo", 'One<br id="0"/>Two', 'Eins<br id="0"/>Zwei', "Eins\nZwei"),
        ("One\nTwo", 'One<br id="0"/>Two', "Eins", "One\nTwo"),
        (
            "{n, plural, one{<b>a</b>} other{b}} <0>go</0>",
            '<x id="0"/> <g id="1">go</g>',
            '<g id="1">los</g> <x id="0"/>',
            "<0>los</0> {n, plural, one{<b>a</b>} other{b}}",
        ),
        (
            "<i>a <code>b c</code></i>",
            '<g id="0">a <x id="1"/></g>',
            '<g id="0"><x id="1"/> d</g>',
            "<i><code>b c</code> d</i>",
        ),
    ],
)  # fmt: skip
def test_what_is_no_language_comes_back(value: str, text: str, translation: str, written: str) -> None:
    message = Message(value, signs="&_")
    assert message.text == text
    assert message.written(text) == value
    assert message.written(translation) == written
