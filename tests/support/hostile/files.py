"""Files of every kind that is translated, with a given content: pure."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A zip archive; the same bytes for the same entries."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


WORD = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
SLIDE = (
    b'<p:sld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    b'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main">%s</p:sld>'
)
OPENDOCUMENT = (
    b'<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    b'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>%s</office:text>'
    b"</office:body></office:document-content>"
)


def _escaped(content: bytes) -> bytes:
    """What XML can carry of it."""
    kept = re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b"", content.decode("utf-8", "ignore").encode())
    return kept.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _document(body: bytes, **entries: bytes) -> bytes:
    return zipped({"word/document.xml": WORD % body, **entries})


def _runs(content: bytes) -> bytes:
    """A paragraph of runs that look different, as many as the content has pieces of 16 bytes."""
    runs = b"".join(
        b"<w:r><w:rPr><w:sz w:val='%d'/></w:rPr><w:t>%s</w:t></w:r>" % (at, _escaped(content[at : at + 4]))
        for at in range(0, len(content) // 16)
    )
    return _document(b"<w:p>" + runs + b"</w:p>")


def _nested(content: bytes) -> bytes:
    depth = len(content) // 16
    return _document(b"<w:p><w:sdt>" * depth + b"</w:sdt></w:p>" * depth)


def _entries(content: bytes) -> bytes:
    """An archive of many entries beside the document."""
    return _document(b"", **{f"word/header{at}.xml": b"<a/>" for at in range(len(content) // 64)})


def _slide(content: bytes) -> bytes:
    text = SLIDE % (b"<a:p><a:r><a:t>%s</a:t></a:r></a:p>" % _escaped(content))
    return zipped({"ppt/presentation.xml": b"<a/>", "ppt/slides/slide1.xml": text})


def _book(content: bytes) -> bytes:
    page = b"<html><body>%s</body></html>" % content
    return zipped({"META-INF/container.xml": b"<a/>", "a.xhtml": page})


def _opendocument(content: bytes) -> bytes:
    return zipped({"content.xml": OPENDOCUMENT % content})


PARAGRAPH = b"<w:p><w:r><w:t>%s</w:t></w:r></w:p>"
FILES: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "text": ("a.txt", bytes),
    "html": ("a.html", bytes),
    "html element": ("a.html", lambda content: b"<html><body><p>%s</p></body></html>" % content),
    "subtitles": ("a.srt", bytes),
    "subtitles text": ("a.srt", lambda content: b"1\n00:00:01,000 --> 00:00:02,000\n%s\n" % content),
    "word text": ("a.docx", lambda content: _document(PARAGRAPH % _escaped(content))),
    "word xml": ("a.docx", lambda content: zipped({"word/document.xml": content})),
    "word body": ("a.docx", _document),
    "word runs": ("a.docx", _runs),
    "word paragraphs": ("a.docx", lambda content: _document(PARAGRAPH % b"a" * (len(content) // 16))),
    "word nested": ("a.docx", _nested),
    "archive entries": ("a.docx", _entries),
    "archive": ("a.docx", bytes),
    "slide": ("a.pptx", _slide),
    "opendocument text": ("a.odt", lambda content: _opendocument(b"<text:p>%s</text:p>" % _escaped(content))),
    "opendocument xml": ("a.odt", _opendocument),
    "book": ("a.epub", _book),
}
"""Kinds of files: a name, and what makes a file with some content."""
