"""PDFs: as reportlab typesets them, and written by hand where something is wrong with them."""

import io
import zlib
from collections.abc import Sequence
from typing import Any

from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Table

STYLES = getSampleStyleSheet()
MUSEUM = (
    "The museum opens at ten o'clock and closes at six. Visitors who want to see the garden should come in the "
    "morning, because the light is then at its best and there are few people on the paths between the old trees."
)
PLAN = (
    "In the second year of the plan the library will move into the east wing, where a reading room with forty seats "
    "and a small workshop for the binding of books are being built by firms of the region."
)


class Report:
    """A typeset document, and the paragraphs that a reader sees in it, in order."""

    def __init__(self, columns: int = 1, *, running: str = "", first_indent: int = 0) -> None:
        self.columns, self.running = columns, running
        self.body = ParagraphStyle(
            "b", STYLES["BodyText"], alignment=TA_JUSTIFY, firstLineIndent=first_indent
        )
        self.story: list[Any] = []
        self.seen: list[tuple[str, str]] = [("Normal", running), ("Normal", "Page 1")] if running else []

    def add(self, style: str, text: str) -> None:
        self.story.append(Paragraph(text, self.body if style == "Normal" else STYLES[style]))
        self.seen.append(("Heading 1" if style == "Title" else style.replace("Heading", "Heading "), text))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.story.append(Table(rows, colWidths=[110] * len(rows[0])))
        self.seen += [("Normal", cell) for row in rows for cell in row]

    def content(self, **options: Any) -> bytes:
        """The file; once, for flowables are used up."""
        written = io.BytesIO()
        width = 490 / self.columns
        frames = [Frame(50 + n * width, 50, width - 10, 740) for n in range(self.columns)]

        def margins(canvas: Canvas, document: BaseDocTemplate) -> None:
            if self.running:
                canvas.setFont("Helvetica", 8)
                canvas.drawString(56, 810, self.running)
                canvas.drawString(280, 20, f"Page {document.page}")

        template = PageTemplate(frames=frames, onPage=margins)
        BaseDocTemplate(written, pagesize=A4, pageTemplates=[template], invariant=1, **options).build(
            self.story
        )
        return written.getvalue()


def report() -> Report:
    made = Report()
    made.add("Title", "Annual report")
    made.add("Heading2", "Opening hours")
    made.add("Normal", MUSEUM)
    made.add("Normal", PLAN)
    made.add("Heading2", "Prices")
    made.table(
        [["Day", "Adults", "Children"], ["Monday", "closed", "closed"], ["Sunday", "nine euros", "free"]]
    )
    made.add("Normal", f"{PLAN} {MUSEUM}")
    return made


def journal() -> Report:
    """Two columns on several pages, with a header and page numbers; paragraphs go over columns and pages."""
    made = Report(2, running="Journal of gardens")
    made.add("Title", "Old trees")
    for number in range(24):
        made.add("Normal", f"Tree {number} is old. {MUSEUM} {PLAN}")
    return made


def novel() -> Report:
    """Paragraphs without space between them, each with its first line indented."""
    made = Report(first_indent=18)
    made.body.spaceBefore = made.body.spaceAfter = 0
    for number in range(8):
        made.add("Normal", f"Chapter {number} was long. {PLAN}")
    return made


def leaflet() -> Report:
    made = Report()
    made.add("Heading1", "Safety instructions for the use of the lift in the north wing of the old building")
    for text in (
        "• Do not use the lift in case of fire.",
        "• Keep the doors free.",
        "1. Press the button.",
        "2. Wait.",
    ):
        made.add("Normal", text)
    return made


REPORTS = {
    name: (made.content(), made.seen)
    for name, made in {
        "report": report(),
        "journal": journal(),
        "novel": novel(),
        "leaflet": leaflet(),
    }.items()
}
"""Documents, and their paragraphs."""


def lines_of(*lines: str, size: int = 12) -> bytes:
    """One page with these lines."""
    return drawn([(50, 700 - n * size * 1.2, size, line) for n, line in enumerate(lines)])


def drawn(texts: Sequence[tuple[float, float, int, str]], font: str = "Helvetica") -> bytes:
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4, invariant=1)
    for left, bottom, size, text in texts:
        canvas.setFont(font, size)
        canvas.drawString(left, bottom, text)
    canvas.save()
    return written.getvalue()


def scan() -> bytes:
    """A page that is one picture."""
    from PIL import Image

    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4, invariant=1)
    canvas.drawImage(ImageReader(Image.new("RGB", (60, 80), "white")), 0, 0, *A4)
    canvas.save()
    return written.getvalue()


def encrypted() -> bytes:
    return report().content(encrypt=StandardEncryption("secret", "owner"))


def by_hand(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A file of these objects, the first of which is its root."""
    content = b"%PDF-1.7\n"
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n" % number + each + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        content + b"xref\n0 %d\n0000000000 65535 f \n" % size + table
        + b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(content))
    )  # fmt: skip


def stream(data: bytes, extra: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n" % (len(data), extra) + data + b"\nendstream"


CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
FLATE = b"/Filter/FlateDecode"
TEXT = b"BT /F 12 Tf 50 700 Td (Hello world) Tj ET"


def page(
    data: bytes, extra: bytes = b"", resources: bytes = b"/Font<</F 5 0 R>>", last: bytes = FONT
) -> bytes:
    described = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<%s>>>>" % resources
    )
    return by_hand(CATALOG, PAGES, described, stream(data, extra), last)


def deflated(data: bytes, times: int = 1) -> bytes:
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data


def form(data: bytes, resources: bytes) -> bytes:
    return stream(data, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%s>>" % resources)


def forms_of_forms() -> bytes:
    """Ten times ten times ten … drawings of one text."""
    depth = 14
    drawing = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</XObject<</A 5 0 R>>>>>>"
    )
    nested = [form(b"/A Do " * 10, b"/XObject<</A %d 0 R>>" % (6 + n)) for n in range(depth)]
    last = form(TEXT, b"/Font<</F %d 0 R>>" % (6 + depth))
    return by_hand(CATALOG, PAGES, drawing, stream(b"/A Do"), *nested, last, FONT)


DESCRIBED = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"


def one_page_100_000_times() -> bytes:
    many = b"<</Type/Pages/Kids[" + b"3 0 R " * 100_000 + b"]/Count 100000>>"
    return by_hand(CATALOG, many, DESCRIBED, stream(TEXT), FONT)


def hostile() -> dict[str, bytes]:
    script = b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(while(1);)>>>>"
    spaces = b" " * 300_000_000
    return {
        "a bomb": page(deflated(spaces), FLATE),
        "a bomb in a bomb": page(deflated(spaces, 2), b"/Filter[/FlateDecode/FlateDecode]"),
        "100,000 lines": page(deflated(b"BT /F 12 Tf 50 700 Td " + b"(a b) Tj 0 -14 Td " * 100_000), FLATE),
        "a line of 80,000 words": page(deflated(b"BT /F 12 Tf 50 700 Td " + b"(a b c d ) Tj " * 20_000), FLATE),
        "one page 100,000 times": one_page_100_000_times(),
        "pages in themselves": by_hand(CATALOG, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 100>>"),
        "a parent in its child": by_hand(
            CATALOG, PAGES, b"<</Type/Pages/Kids[2 0 R]/Parent 2 0 R/Count 9>>"
        ),
        "two billion pages": by_hand(CATALOG, b"<</Type/Pages/Kids[]/Count 2147483647>>"),
        "fewer than no pages": by_hand(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count -1>>"),
        "a root in itself": by_hand(b"1 0 R"),
        "a length in itself": page(TEXT).replace(b"/Length 41", b"/Length 4 0 R"),
        "a form in itself": page(
            b"/A Do", b"", b"/XObject<</A 5 0 R>>", form(b"/A Do /A Do", b"/XObject<</A 5 0 R>>")
        ),
        "forms of forms": forms_of_forms(),
        "deep arrays": by_hand(b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * 500_000 + b"]" * 500_000 + b">>", PAGES),
        "deep dictionaries": by_hand(b"<</Type/Catalog/Pages 2 0 R/X " + b"<</A " * 200_000, PAGES),
        "states without an end": page(b"q " * 1_000_000),
        "texts without an end": page(b"BT " * 300_000 + b"(" * 300_000),
        "a wrong length": page(TEXT).replace(b"/Length 41", b"/Length 99999999999"),
        "an earlier table that is this one": page(TEXT).replace(b"/Root", b"/Prev 9/Root"),
        "no table": page(TEXT).replace(b"startxref", b"startx"),
        "a font in itself": page(TEXT, last=b"<</Type/Font/Subtype/Type0/DescendantFonts[5 0 R]/ToUnicode 5 0 R>>"),
        "an unknown filter": page(TEXT, b"/Filter/Unknown"),
        "a filter a thousand times": page(TEXT, b"/Filter[" + b"/FlateDecode" * 1000 + b"]"),
        "a script": by_hand(script, PAGES, DESCRIBED, stream(TEXT), FONT),
        "a file of the machine": by_hand(
            b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>>>",
            PAGES, DESCRIBED, b"<</Length 0/F(/etc/passwd)>>stream\nendstream", FONT,
        ),
        "huge numbers": page(b"BT /F 99999999999999999999 Tf 1e300 -1e300 Td (Hello) Tj ET"),
        "an empty box": page(TEXT).replace(b"[0 0 600 800]", b"[0 0 0 0]"),
        "encrypted": encrypted(),
        "a scan": scan(),
        "another's head": b"%!PS-Adobe-3.0\n(Hello) show\n" * 100,
        "a head alone": b"%PDF-1.7\n",
    }  # fmt: skip
