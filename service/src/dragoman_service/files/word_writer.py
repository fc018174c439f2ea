"""A new Word document of paragraphs and headings.

Written by itself: python-docx, which reads it in the tests, takes time quadratic in the number of paragraphs.

Source: ECMA-376-1:2016, sections 11.3.10 and 17.3.1.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from dragoman_service.files.values import in_xml

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

TYPES = (
    f'{HEAD}<Types xmlns="{PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{WORD_TYPE}.document.main+xml"/>'
    f'<Override PartName="/word/styles.xml" ContentType="{WORD_TYPE}.styles+xml"/></Types>'
)
PACKAGE_RELATIONS = (
    f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{RELATION}/officeDocument" Target="word/document.xml"/></Relationships>'
)
DOCUMENT_RELATIONS = (
    f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{RELATION}/styles" Target="styles.xml"/></Relationships>'
)
HEADING_SIZES = (40, 32, 26)
"""Of the levels, in half points."""


class WordParagraph(NamedTuple):
    """A paragraph to write.

    Args:
        level: Of a heading, from 1 to 3; 0 for a paragraph.
        breaks_page: Whether it begins a page.
    """

    text: str
    level: int = 0
    is_bold: bool = False
    breaks_page: bool = False


def word_document(paragraphs: Iterable[WordParagraph], lang: str, *, right_to_left: bool) -> bytes:
    """A .docx file; the program that shows it has the fonts.

    Args:
        paragraphs: Its content; characters that XML does not have are left out.
        lang: BCP-47 tag of its language.
        right_to_left: Whether its paragraphs run so.
    """
    body = "".join(_paragraph(each, right_to_left=right_to_left) for each in paragraphs)
    document = f'{HEAD}<w:document xmlns:w="{WORD}"><w:body>{body}<w:sectPr/></w:body></w:document>'
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in (
            ("[Content_Types].xml", TYPES),
            ("_rels/.rels", PACKAGE_RELATIONS),
            ("word/_rels/document.xml.rels", DOCUMENT_RELATIONS),
            ("word/styles.xml", _styles(lang)),
            ("word/document.xml", document),
        ):
            # Without a time: equal documents are equal files.
            archive.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _paragraph(paragraph: WordParagraph, *, right_to_left: bool) -> str:
    properties = (
        (f'<w:pStyle w:val="Heading{paragraph.level}"/>' if paragraph.level else "")
        + ("<w:pageBreakBefore/>" if paragraph.breaks_page else "")
        + ("<w:bidi/>" if right_to_left else "")
    )
    run = ("<w:b/>" if paragraph.is_bold and not paragraph.level else "") + (
        "<w:rtl/>" if right_to_left else ""
    )
    return (
        f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr>"
        f'<w:t xml:space="preserve">{escape(in_xml(paragraph.text), quote=False)}</w:t></w:r></w:p>'
    )


def _styles(lang: str) -> str:
    named = f'"{escape(lang)}"'
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        '<w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:qFormat/>'
        f'<w:pPr><w:keepNext/><w:spacing w:before="240"/><w:outlineLvl w:val="{level - 1}"/></w:pPr>'
        f'<w:rPr><w:b/><w:bCs/><w:sz w:val="{size}"/><w:szCs w:val="{size}"/></w:rPr></w:style>'
        for level, size in enumerate(HEADING_SIZES, 1)
    )
    return (
        f'{HEAD}<w:styles xmlns:w="{WORD}"><w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="22"/>'
        f'<w:szCs w:val="22"/><w:lang w:val={named} w:eastAsia={named} w:bidi={named}/></w:rPr></w:rPrDefault>'
        '<w:pPrDefault><w:pPr><w:spacing w:after="120"/></w:pPr></w:pPrDefault></w:docDefaults>'
        '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/>'
        f"</w:style>{headings}</w:styles>"
    )
