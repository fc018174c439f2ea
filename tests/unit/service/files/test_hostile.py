"""Broken and hostile files of every kind: each is read within bounds or refused with its cause."""

import asyncio
import io
import random
import re
import resource
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from tests.unit.service.files.documents import DOCUMENTS
from tests.unit.service.files.pdfs import hostile

from dragoman_protocols.errors import BrokenFileError, GenerationError
from dragoman_protocols.files import FILE_ENDINGS
from dragoman_service.files.archives import MAX_UNPACKED_BYTES
from dragoman_service.files.document import MAX_TEXTS
from dragoman_service.files.file_process import CPU_S
from dragoman_service.files.kinds import read
from dragoman_service.files.parsing import FileParser

SEED = 20_240_611
DAMAGED = 240
MAX_S = 6.0
"""Of CPU, on a slow and busy machine; a table of 30,000 cells takes 2 to 4 s, most files take milliseconds."""
EMPTY = ("empty paragraphs.docx", "empty strings.xlsx", "many strings.xlsx")
MAX_EMPTY_S = 2.0
"""Of CPU for 8 MB of elements without text, which are 12 KB of an archive."""
MAX_PDF_S = 2 * (CPU_S + 2.0)
"""Of the processes that parse and rebuild one: what the kernel allows them, and their start before that."""
MAX_GROWTH_BYTES = 400 * 1024 * 1024
"""Of the process's peak, by all files together."""

ZIPPED = (".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub")
XML = (".xml", ".xlf", ".resx")
PARTS = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/slides/slide1.xml",
    ".xlsx": "xl/sharedStrings.xml",
    ".odt": "content.xml",
    ".odp": "content.xml",
    ".ods": "content.xml",
    ".epub": "a.xhtml",
}
NEEDED = {".pptx": "ppt/presentation.xml", ".xlsx": "xl/workbook.xml", ".epub": "META-INF/container.xml"}

LAUGHS = "<!DOCTYPE a [<!ENTITY b0 'ha'>" + "".join(
    f"<!ENTITY b{n} '{f'&b{n - 1};' * 10}'>" for n in range(1, 10)
)
XMLS = {
    "laughs": f"{LAUGHS}]><{{root}}>&b9;</{{root}}>",
    "a file's text": "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><{root}>&e;</{root}>",
    "a remote entity": "<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/a.dtd'><{root}>text</{root}>",
    "a parameter entity": "<!DOCTYPE a [<!ENTITY % e SYSTEM 'file:///etc/passwd'> %e;]><{root}/>",
    "deep": "<{root}>" + "<string>" * 30_000 + "a" + "</string>" * 30_000 + "</{root}>",
    "wide": "<{root}>" + "<string name='a'>two words</string>" * (MAX_TEXTS + 1) + "</{root}>",
    "attributes": "<{root} " + " ".join(f"a{n}='b'" for n in range(50_000)) + "/>",
    "not closed": "<{root}><string>text",
    "a namespace": "<{root} xmlns='urn:x'><a:b/></{root}>",
    "an include": "<{root} xmlns:i='http://www.w3.org/2001/XInclude'><i:include href='file:///etc/passwd'/></{root}>",
    "no character": "<{root}><string>&#0; \ufffe</string></{root}>",
}
WORD = (
    b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'>"
    b"<w:body>%s</w:body></w:document>"
)
ROOTS = {".xml": "resources", ".xlf": "xliff", ".resx": "root"}


MARKDOWN_SIGNS = (
    *(
        "[",
        "![",
        "[a](",
        "*a ",
        "*",
        "_a_ ",
        "`a``",
        ">",
        "<a ",
        "<!--",
        "~~a",
        "&a",
        "- ",
        "\\",
        "[a]: b\n",
        "|a",
    ),
    *("[^a", "[^a]", "[^a]: b\n", "- [ ] ", "- [ ] a\n", "> [!N]\n"),
    *(" a\n", "**a *b", "<http:", "# a\n", "1. "),
)


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def bombs() -> Iterator[tuple[str, str, bytes]]:
    for ending in ZIPPED:
        frame = {NEEDED[ending]: b"<workbook/>"} if ending in NEEDED else {}
        part, root = PARTS[ending], "sst" if ending == ".xlsx" else "a"
        yield f"bomb{ending}", ending, zipped({**frame, part: b"<a>" + b"a" * MAX_UNPACKED_BYTES + b"</a>"})
        yield f"text bomb{ending}", ending, zipped({**frame, part: b"<a>" + b"a b " * 5_000_000 + b"</a>"})
        yield f"encrypted{ending}", ending, _encrypted(zipped({**frame, part: b"<a/>"}))
        yield (
            f"parts{ending}",
            ending,
            zipped({**frame, part: b"<a/>"} | {f"x{n}": b"" for n in range(10_001)}),
        )
        yield f"lzma{ending}", ending, zipped({**frame, part: b"<a>a</a>"}, zipfile.ZIP_LZMA)
        yield (
            f"outside{ending}",
            ending,
            zipped({**frame, part: b"<a>text</a>", "../../etc/x": b"a", "/abs": b"b"}),
        )
        yield f"laughs{ending}", ending, zipped({**frame, part: XMLS["laughs"].format(root=root).encode()})
        yield f"deep{ending}", ending, zipped({**frame, part: XMLS["deep"].format(root=root).encode()})
    many = b"<w:p/>" * 1_390_000
    yield (
        "empty paragraphs.docx",
        ".docx",
        zipped({"word/document.xml": WORD % (many + b"<w:p><w:r><w:t>The cat sleeps.</w:t></w:r></w:p>")}),
    )
    strings = b"<sst xmlns='urn:x'>%s<si><t>The cat sleeps.</t></si></sst>"
    yield (
        "empty strings.xlsx",
        ".xlsx",
        zipped({"xl/workbook.xml": b"<a/>", "xl/sharedStrings.xml": strings % (b"<si/>" * 1_600_000)}),
    )
    full = zipped(
        {"xl/workbook.xml": b"<a/>", "xl/sharedStrings.xml": strings % (b"<si><t>a b</t></si>" * 430_000)}
    )
    yield "many strings.xlsx", ".xlsx", full
    runs = b"<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r><w:r><w:t>b</w:t></w:r>" * 60_000
    yield "runs.docx", ".docx", zipped({"word/document.xml": WORD % (b"<w:p>" + runs + b"</w:p>")})
    sheets = {
        f"xl/worksheets/sheet{n}.xml": b"<worksheet>inlineStr<is><t>a b</t></is></worksheet>"
        for n in range(9_990)
    }
    yield "10,000 sheets", ".xlsx", zipped({"xl/workbook.xml": b"<a/>", **sheets})
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 4096
    yield "an old or encrypted workbook", ".xlsx", old
    yield "an old or encrypted letter", ".docx", old


def _encrypted(content: bytes) -> bytes:
    """With the mark of encryption on every entry."""
    changed = bytearray(content)
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(sign)
        while at >= 0:
            changed[at + offset] |= 1
            at = content.find(sign, at + 4)
    return bytes(changed)


def texts() -> Iterator[tuple[str, str, bytes]]:
    for ending in XML:
        for name, text in XMLS.items():
            yield f"{name}{ending}", ending, text.replace("{root}", ROOTS[ending]).encode()
    yield "deep.json", ".json", b"[" * 200_000 + b"]" * 200_000
    yield "deep objects.json", ".json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "digits.json", ".json", b'{"a": ' + b"9" * 500_000 + b', "b": "two words"}'
    yield "quotes.json", ".json", b'"' + b'\\"' * 500_000
    yield "lone surrogate.json", ".json", b'{"a": "some text \\ud800"}'
    yield "not a number.json", ".json", b'{"a": NaN, "b": Infinity, "c": "some text"}'
    yield "many.json", ".json", b"[" + b",".join([b'"two words"'] * (MAX_TEXTS + 1)) + b"]"
    yield "zero.json", ".json", b'{"a": "some \\u0000 text"}'
    aliases = "a: &a [lol text]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    )
    yield "aliases.yaml", ".yaml", aliases.encode()
    yield "recursion.yaml", ".yaml", b"a: &a\n  b: *a\n  c: some text\n"
    yield "deep.yaml", ".yaml", b"[" * 100_000
    yield "deep blocks.yaml", ".yaml", b"- " * 100_000 + b"a"
    yield "objects.yaml", ".yaml", b"a: !!python/object/apply:os.system ['false']\nb: some text\n"
    yield "anchors.yaml", ".yaml", b"a: " + b"&a " * 50_000 + b"text"
    yield "tabs.yaml", ".yaml", b"a:\n\t- b c\n"
    yield "a key.yaml", ".yaml", b"? " * 50_000 + b"a"
    for sign in MARKDOWN_SIGNS:
        yield f"{sign!r}.md", ".md", (sign * (30_000 // len(sign))).encode()
    yield (
        "table.md",
        ".md",
        ("|a b" * 300 + "|\n" + "|-" * 300 + "|\n" + ("|a b" * 300 + "|\n") * 100).encode(),
    )
    yield "large.md", ".md", b"a b\n" * 300_000
    yield "quote.csv", ".csv", b'a,"b c\n' * 1000
    yield "zero.csv", ".csv", b"a b,\0\n"
    yield "columns.csv", ".csv", b"a b," * 100_000
    yield "cell.csv", ".csv", b'"' + b"a b " * 100_000 + b'"'
    yield "quotes.csv", ".csv", b'"' * 200_001
    yield "name.po", ".po", b"/etc/passwd"
    yield "keywords.po", ".po", b"msgid " * 100_000
    yield "open.po", ".po", b'msgid "a b\nmsgstr ""\n'
    yield "order.po", ".po", b'msgstr "a"\nmsgid "b c"\nmsgstr[9999999] "x"\n'
    yield "lines.po", ".po", b'msgid ""\n' + b'"a b\\n"\n' * 50_000 + b'msgstr ""\n'
    yield "plural.po", ".po", b'msgid "a b"\nmsgid_plural "c d"\nmsgstr[x] ""\n'
    yield (
        "encoding.po",
        ".po",
        b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-7\\n"\n\nmsgid "a b"\nmsgstr ""\n',
    )
    yield "backslashes.po", ".po", b'msgid "' + b"\\" * 99_999 + b'"\nmsgstr ""\n'
    yield "comment.strings", ".strings", b"/*" * 100_000
    yield "stars.strings", ".strings", b"/" + b"*" * 200_000
    yield "quotes.strings", ".strings", b'"a" = "' + b'\\"' * 100_000
    yield "no value.strings", ".strings", b'"a" = ;'
    yield "gaps.strings", ".strings", b'"a"' + b" /**/" * 50_000 + b"x"
    yield "plist.strings", ".strings", b'<?xml version="1.0"?><plist/>'
    yield "binary.strings", ".strings", b"bplist00\xff\xfe"
    yield "no head.vtt", ".vtt", b"00:01.000 --> 00:02.000\nHello\n"
    yield "tags.vtt", ".vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\n" + b"<c.a" * 50_000
    yield "moments.vtt", ".vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\na " + b"<00:01." * 50_000
    yield "arrows.vtt", ".vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\na --> b\n"
    for ending in FILE_ENDINGS:
        yield f"nothing{ending}", ending, b""
        yield f"zeros{ending}", ending, b"\0" * 1000
        yield f"no text{ending}", ending, bytes(range(128, 256)) * 40


def damaged() -> Iterator[tuple[str, str, bytes]]:
    """Documents that are cut off, changed or mixed."""
    chance = random.Random(SEED)
    names = sorted(DOCUMENTS)
    for number in range(DAMAGED):
        name = names[number % len(names)]
        content = bytearray(DOCUMENTS[name][0])
        how = chance.choice(("cut", "change", "repeat", "mix"))
        at = chance.randrange(len(content))
        if how == "cut":
            del content[at:]
        elif how == "change":
            for _ in range(chance.randint(1, 20)):
                content[chance.randrange(len(content))] = chance.choice(b"<>&\"'{}[]:,\\\n\0\xff|*`-=%; \t")
        elif how == "repeat":
            content[at:at] = content[at : at + chance.randrange(1, 200)] * chance.randrange(1, 30)
        else:
            other = DOCUMENTS[chance.choice(names)][0]
            content[at : at + chance.randrange(200)] = other[: chance.randrange(1, 400)]
        yield f"{number} {how} {name}", f".{name.rpartition('.')[2]}", bytes(content)


def truncated() -> Iterator[tuple[str, str, bytes]]:
    """Each document, cut off at a third and at two thirds, and PDFs at more places."""
    for name, (content, _) in DOCUMENTS.items():
        parts = 12 if name.endswith(".pdf") else 3
        for part in range(1, parts):
            yield (
                f"{part}/{parts} of {name}",
                f".{name.rpartition('.')[2]}",
                content[: len(content) * part // parts],
            )


def pdfs() -> Iterator[tuple[str, str, bytes]]:
    for name, content in hostile().items():
        yield f"{name}.pdf", ".pdf", content


def tried(ending: str, content: bytes) -> BrokenFileError | None:
    """The refusal of a file; one that is read is also written. A PDF is read in a process, as in a pod."""
    try:
        if ending == ".pdf":
            asyncio.run(in_processes(content))
            return None
        file = read(f"a{ending}", content, "de")
        file.words()
        with suppress(GenerationError):
            file.rebuild(file.texts)
            file.rebuild([text.replace("a", "b <&> ]]>") for text in file.texts])
    except BrokenFileError as error:
        return error
    return None


async def in_processes(content: bytes) -> None:
    parser = FileParser()
    file = await parser.parse("a.pdf", content, "de")
    assert await parser.rebuild(file, "a.pdf", content, "de", file.texts)


CAUSES = {
    "bomb.xlsx": "unpacks to more than",
    "encrypted.docx": "damaged or encrypted",
    "parts.pptx": "at most 10000 are read",
    "laughs.xlf": "document type|not well-formed",
    "laughs.xlsx": "document type|not well-formed",
    "a file's text.resx": "document type",
    "deep.json": "nested more than 100 deep",
    "deep.yaml": "nested more than",
    "many strings.xlsx": "at most 50000 are translated",
    "many.json": "at most 50000 are translated",
    "wide.xml": "at most 50000 are translated",
    "quote.csv": "no table of text",
    "plural.po": "no gettext catalog: line 3",
    "no value.strings": "line 1",
    "no head.vtt": "WEBVTT",
    "large.md": "split it",
    "encrypted.pdf": "is encrypted",
    "a scan.pdf": "run OCR first",
    "a bomb in a bomb.pdf": "cannot be read within",
    "forms of forms.pdf": "cannot be read within",
    "a form in itself.pdf": "cannot be read within|has no text",
    "nothing.pdf": "is no PDF",
}
"""What some refusals say."""
READ = (
    *("100,000 lines.pdf", "a line of 80,000 words.pdf"),
    *("empty paragraphs.docx", "empty strings.xlsx", "runs.docx"),
)
"""Long, and harmless."""

GROUPS: dict[str, Callable[[], Iterator[tuple[str, str, bytes]]]] = {
    "bombs": bombs,
    "texts": texts,
    "damaged": damaged,
    "truncated": truncated,
    "pdfs": pdfs,
}


def _children_s() -> float:
    """CPU time of processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_there_are_hundreds_of_broken_files_and_some_of_each_kind() -> None:
    numbers = Counter(ending for group in GROUPS.values() for _, ending, _ in group())
    assert numbers.total() >= 300
    assert {ending for ending in FILE_ENDINGS if numbers[ending] < 3} == set()


@pytest.mark.slow
@pytest.mark.timeout(600)  # What counts is the CPU time, which is checked below.
@pytest.mark.parametrize("group", GROUPS)
def test_no_file_harms_the_process(group: str) -> None:
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slow: dict[str, float] = {}
    for name, ending, content in GROUPS[group]():
        began_s, children_s = time.thread_time(), _children_s()
        error = tried(ending, content)
        slow[name] = time.thread_time() - began_s
        assert _children_s() - children_s <= MAX_PDF_S, name
        assert error is None or len(str(error)) < 500, name
        assert name not in READ or error is None, name
        assert name not in CAUSES or re.search(CAUSES[name], str(error)), name
    assert {name: took for name, took in slow.items() if took > MAX_S} == {}
    assert {name: took for name, took in slow.items() if name in EMPTY and took > MAX_EMPTY_S} == {}
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib
    assert grown_kib * 1024 < MAX_GROWTH_BYTES


def test_no_file_of_the_machine_is_read() -> None:
    for name in ("/etc/passwd", "/etc/hostname"):
        with suppress(BrokenFileError):
            assert read("a.po", name.encode(), "de").texts == ()
