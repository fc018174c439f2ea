"""Translated text names its language and its direction in the terms of its format."""

import io
import re

import docx
import pptx
import pytest
from tests.unit.service.files.documents import saved
from tests.unit.service.files.test_office import shouted
from tests.unit.service.files.test_untranslated_bytes import packed, parts

from dragoman_service.files.kinds import read
from dragoman_service.files.root_language import attribute, with_attributes, with_language


def translated(name: str, content: bytes, lang: str) -> bytes:
    file = read(name, content, lang)
    return file.rebuild([text.replace("cat", "CAT") for text in file.texts])


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def word(paragraph: str) -> bytes:
    return packed({"word/document.xml": f"<w:document xmlns:w='{W}'>{paragraph}</w:document>".encode()})


def in_word(paragraph: str, lang: str) -> str:
    written = parts(translated("a.docx", word(paragraph), lang))["word/document.xml"].decode()
    return re.sub(r" xmlns:w='[^']*'| xmlns:w=\"[^\"]*\"|</?w:document[^>]*>", "", written)


def named(lang: str) -> str:
    return f'<w:lang w:val="{lang}" w:eastAsia="{lang}" w:bidi="{lang}"/>'


TEXT = '<w:t xml:space="preserve">The CAT</w:t>'


@pytest.mark.parametrize(
    ("paragraph", "lang", "expected"),
    [
        (
            "<w:p><w:r><w:t>The cat</w:t></w:r></w:p>",
            "fr",
            f"<w:p><w:r><w:rPr>{named('fr')}</w:rPr>{TEXT}</w:r></w:p>",
        ),
        (
            "<w:p><w:pPr><w:jc w:val='left'/></w:pPr><w:r><w:rPr><w:b/><w:cs/><w:lang w:val='en-US'/><w:oMath/></w:rPr>"
            "<w:t>The cat</w:t></w:r></w:p>",
            "ar",
            '<w:p><w:pPr><w:bidi/><w:jc w:val="left"/></w:pPr>'
            f"<w:r><w:rPr><w:b/><w:rtl/><w:cs/>{named('ar')}<w:oMath/></w:rPr>{TEXT}</w:r></w:p>",
        ),
        (
            "<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:rtl/></w:rPr><w:t>The cat</w:t></w:r></w:p>",
            "de",
            f"<w:p><w:pPr/><w:r><w:rPr>{named('de')}</w:rPr>{TEXT}</w:r></w:p>",
        ),
        (
            "<w:p><w:r><w:t>The cat</w:t></w:r></w:p>",
            "he",
            f"<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:rtl/>{named('he')}</w:rPr>{TEXT}</w:r></w:p>",
        ),
        (
            "<w:p><w:r><w:t>A dog</w:t></w:r></w:p><w:p><w:r><w:t>The cat</w:t></w:r></w:p>",
            "ja",
            f"<w:p><w:r><w:t>A dog</w:t></w:r></w:p><w:p><w:r><w:rPr>{named('ja')}</w:rPr>{TEXT}</w:r></w:p>",
        ),
    ],
)
def test_paragraphs_of_word_that_are_translated(paragraph: str, lang: str, expected: str) -> None:
    assert in_word(paragraph, lang) == expected


def test_word_reads_the_direction() -> None:
    letter = docx.Document()
    letter.add_heading("The cat", 1)
    letter.add_paragraph("A dog")
    file = read("a.docx", saved(letter), "ar")
    back = docx.Document(io.BytesIO(file.rebuild([shouted(text) for text in file.texts])))
    for paragraph in back.paragraphs:
        assert paragraph._p.xpath("w:pPr/w:bidi")
        assert all(run.font.rtl for run in paragraph.runs)


@pytest.mark.parametrize(
    ("before", "lang", "after"),
    [
        ({}, "fr", {}),
        ({}, "ar", {"rtl": "1"}),
        ({"algn": "l"}, "ar", {"algn": "r", "rtl": "1"}),
        ({"algn": "ctr"}, "he", {"algn": "ctr", "rtl": "1"}),
        ({"algn": "r", "rtl": "1"}, "en", {"algn": "l", "rtl": "0"}),
    ],
)
def test_paragraphs_of_slides(before: dict[str, str], lang: str, after: dict[str, str]) -> None:
    show = pptx.Presentation()
    frame = show.slides.add_slide(show.slide_layouts[5]).shapes.title.text_frame
    frame.text = "The cat"
    for name, value in before.items():
        frame.paragraphs[0]._p.get_or_add_pPr().set(name, value)
    frame.paragraphs[0].runs[0]._r.get_or_add_rPr().set("lang", "en-US")
    back = pptx.Presentation(io.BytesIO(translated("a.pptx", saved(show), lang)))
    paragraph = back.slides[0].shapes.title.text_frame.paragraphs[0]._p
    assert dict(paragraph.pPr.attrib if paragraph.pPr is not None else {}) == after
    assert [run.get("lang") for run in paragraph.iter("{*}rPr")] == [lang]


@pytest.mark.parametrize(
    ("before", "lang", "after"),
    [
        ("<w:tblStyle/><w:tblW/>", "ar", "<w:tblStyle/><w:bidiVisual/><w:tblW/>"),
        ("<w:bidiVisual/>", "ar", "<w:bidiVisual/>"),
        ("<w:bidiVisual/><w:tblW/>", "en", "<w:tblW/>"),
    ],
)
def test_tables_of_word_begin_on_the_side_of_the_language(before: str, lang: str, after: str) -> None:
    cell = "<w:tr><w:tc><w:p><w:r><w:t>The cat</w:t></w:r></w:p></w:tc></w:tr>"
    assert f"<w:tblPr>{after}</w:tblPr>" in in_word(f"<w:tbl><w:tblPr>{before}</w:tblPr>{cell}</w:tbl>", lang)


@pytest.mark.parametrize(
    ("before", "lang", "after"), [(None, "ar", "1"), ("1", "en", "0"), (None, "en", None)]
)
def test_tables_of_slides_begin_on_the_side_of_the_language(
    before: str | None, lang: str, after: str | None
) -> None:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    table = slide.shapes.add_table(1, 1, 0, 0, 100, 100).table
    table.cell(0, 0).text = "The cat"
    if before:
        table._tbl.tblPr.set("rtl", before)
    back = pptx.Presentation(io.BytesIO(translated("a.pptx", saved(show), lang)))
    assert next(back.slides[0].element.iter("{*}tblPr")).get("rtl") == after


NAMES = "".join(
    f" xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{of}:1.0'"
    for name, of in {"office": "office", "text": "text", "style": "style", "fo": "xsl-fo-compatible"}.items()
)
STYLES = (
    '<style:default-style style:family="paragraph"><style:paragraph-properties style:writing-mode="page"/>'
    '<style:text-properties fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"/>'
    '</style:default-style><style:style style:name="L"><style:text-properties fo:language="la" fo:country="none"/>'
    '</style:style><style:style style:name="C"><style:text-properties fo:language="zxx"/></style:style>'
    '<style:style style:name="E"><style:text-properties fo:country="GB" fo:language="en"/></style:style>'
    '<style:page-layout><style:page-layout-properties fo:margin="1cm"/></style:page-layout>'
    '<style:page-layout><style:page-layout-properties style:writing-mode="lr-tb"/></style:page-layout>'
)


def opendocument(lang: str) -> tuple[str, str]:
    content = f"<office:document-content{NAMES}><text:p>The cat</text:p></office:document-content>"
    styles = f"<office:document-styles{NAMES}>{STYLES}</office:document-styles>"
    files = {"content.xml": content.encode(), "styles.xml": styles.encode()}
    back = parts(translated("a.odt", packed(files), lang))
    return back["content.xml"].decode(), back["styles.xml"].decode()


def test_styles_of_opendocument_in_the_documents_language_name_the_translations() -> None:
    _, styles = opendocument("pt-BR")
    expected = STYLES.replace('fo:language="en" fo:country="US"', 'fo:language="pt" fo:country="BR"')
    expected = expected.replace('asian="zh"', 'asian="pt"').replace('asian="CN"', 'asian="BR"')
    expected = expected.replace('fo:country="GB" fo:language="en"', 'fo:country="BR" fo:language="pt"')
    assert styles == f"<office:document-styles{NAMES}>{expected}</office:document-styles>"


def test_pages_of_opendocument_run_in_the_direction_of_the_translation() -> None:
    _, styles = opendocument("ar")
    assert styles.count('style:writing-mode="rl-tb"') == 2
    assert 'style:writing-mode="page"' in styles
    assert 'fo:margin="1cm" style:writing-mode="rl-tb"/>' in styles
    assert 'fo:language="ar" fo:country="none"' in styles


@pytest.mark.parametrize(
    ("lang", "territory"), [("zh-Hant", "TW"), ("zh-Hans", "CN"), ("en-GB", "GB"), ("fr", "none")]
)
def test_languages_of_opendocument_have_a_territory_instead_of_a_script(lang: str, territory: str) -> None:
    assert f'fo:language="{lang[:2]}" fo:country="{territory}"' in opendocument(lang)[1]


PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf" xml:lang="en" version="3.0"><metadata xmlns:dc="dc">'
    "<dc:title id='t'>The cat</dc:title><dc:creator>Ann cat</dc:creator><dc:language>en</dc:language>"
    "<dc:language>la</dc:language></metadata><manifest>"
    '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>{spine}</package>'
)
CHAPTER = '<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><body><p>The cat</p></body></html>'


def book(lang: str, spine: str = "<spine><itemref idref='a'/></spine>") -> dict[str, str]:
    files = {
        "META-INF/container.xml": '<c><rootfile full-path="b.opf"/></c>',
        "b.opf": PACKAGE.format(spine=spine),
        "a.xhtml": CHAPTER,
    }
    content = packed({name: text.encode() for name, text in files.items()})
    return {name: part.decode() for name, part in parts(translated("a.epub", content, lang)).items()}


def test_a_book_and_its_chapters_name_the_language() -> None:
    back = book("fr")
    expected = PACKAGE.format(spine="<spine><itemref idref='a'/></spine>").replace("The cat", "The CAT")
    expected = expected.replace("<dc:language>en<", "<dc:language>fr<").replace(
        'xml:lang="en"', 'xml:lang="fr"'
    )
    assert back["b.opf"] == expected
    assert back["a.xhtml"] == CHAPTER.replace("cat", "CAT").replace('lang="en"', 'lang="fr" xml:lang="fr"')


def test_a_book_and_its_chapters_run_in_the_direction_of_the_translation() -> None:
    back = book("ar")
    assert '<spine page-progression-direction="rtl">' in back["b.opf"]
    assert '<html xmlns="http://www.w3.org/1999/xhtml" lang="ar" xml:lang="ar" dir="rtl">' in back["a.xhtml"]
    turned = book("fr", "<spine toc='n' page-progression-direction='rtl'/>")
    assert "<spine toc='n' page-progression-direction=\"ltr\"/>" in turned["b.opf"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- <html> --><HTML>a", '<!-- <html> --><HTML lang="fr">a'),
        ("<html lang=en>", '<html lang="fr">'),
        ("<html data-lang='en'\n>", "<html data-lang='en' lang=\"fr\"\n>"),
        ("<html dir='rtl' lang=''>", '<html dir="ltr" lang="fr">'),
        ("<ncx xml:lang='en'/>", '<ncx xml:lang="fr" lang="fr"/>'),
        ("<p>No root</p>", "<p>No root</p>"),
    ],
)
def test_a_root_names_the_language(text: str, expected: str) -> None:
    assert with_language(text, "fr", added="lang") == expected


def test_attributes_are_set_in_their_places() -> None:
    assert with_attributes("<a b = 'c' d/>", {"b": "1 & 2"}) == '<a b="1 &amp; 2" d/>'
    assert with_attributes("<a/>", {"b": "1"}) == '<a b="1"/>'
    assert attribute("<a xb='1' b=''>", "b") == ""
    assert attribute("<a xb='1'>", "b") is None
