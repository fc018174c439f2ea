"""Language and direction of translated text in Word and PowerPoint: of its runs and paragraphs.

What stays untranslated keeps its own language, and so do the defaults in other parts.

Source: ECMA-376-1:2016, sections 17.3.1.6 (`w:bidi`), 17.3.2.20 (`w:lang`), 17.3.2.30 (`w:rtl`), 17.4.1
(`w:bidiVisual`), 21.1.2.2.7 (`a:pPr`) and 21.1.2.3.9 (`a:rPr`).
"""

from __future__ import annotations

from lxml import etree

from dragoman_protocols.scripts import is_right_to_left

BEHIND_LANG = frozenset({"eastAsianLayout", "specVanish", "oMath", "rPrChange"})
BEHIND_RTL = BEHIND_LANG | {"cs", "em", "lang"}
# fmt: off
BEHIND_BIDI = frozenset({
    "adjustRightInd", "snapToGrid", "spacing", "ind", "contextualSpacing", "mirrorIndents", "suppressOverlap", "jc",
    "textDirection", "textAlignment", "textboxTightWrap", "outlineLvl", "divId", "cnfStyle", "rPr", "sectPr",
    "pPrChange",
})
BEHIND_VISUAL = frozenset({
    "tblStyleRowBandSize", "tblStyleColBandSize", "tblW", "jc", "tblCellSpacing", "tblInd", "tblBorders", "shd",
    "tblLayout", "tblCellMar", "tblLook", "tblCaption", "tblDescription", "tblPrChange",
})
# fmt: on
"""What stands behind them: the schemas prescribe the order of properties."""

OTHER_SIDE = {True: ("l", "r"), False: ("r", "l")}
"""Alignment in DrawingML names sides; in WordprocessingML, beginning and end of a line."""


def run_properties(namespace: str, properties: etree._Element | None, lang: str) -> etree._Element | None:
    """The properties of a translated run.

    Args:
        namespace: Of the run.
        properties: Of the run whose style it has, a copy that is changed; None: it has none.
        lang: BCP-47 tag of the translation.
    """
    if "wordprocessingml" not in namespace and "drawingml" not in namespace:
        return properties  # Excel has no language.
    if properties is None:
        properties = etree.Element(f"{{{namespace}}}rPr")
    if "drawingml" in namespace:
        properties.set("lang", lang)
        properties.attrib.pop("altLang", None)
        return properties
    for old in properties.xpath("*[local-name()='lang' or local-name()='rtl']"):
        properties.remove(old)
    named = etree.Element(f"{{{namespace}}}lang")
    for kind in ("val", "eastAsia", "bidi"):
        named.set(f"{{{namespace}}}{kind}", lang)
    _insert(properties, named, BEHIND_LANG)
    if is_right_to_left(lang):
        _insert(properties, etree.Element(f"{{{namespace}}}rtl"), BEHIND_RTL)
    return properties


def set_direction(paragraph: etree._Element, lang: str) -> None:
    """Make a paragraph, `w:p` or `a:p`, and the tables in which it is, run in the direction of its language."""
    namespace = etree.QName(paragraph).namespace or ""
    properties = paragraph.find(f"{{{namespace}}}pPr")
    is_rtl = is_right_to_left(lang)
    for table in paragraph.iterancestors("{*}tbl"):
        _turn(table.find("{*}tblPr"), is_rtl=is_rtl)
    if properties is None:
        if not is_rtl or ("wordprocessingml" not in namespace and "drawingml" not in namespace):
            return
        properties = etree.Element(f"{{{namespace}}}pPr")
        paragraph.insert(0, properties)
    if "wordprocessingml" in namespace:
        for old in properties.findall(f"{{{namespace}}}bidi"):
            properties.remove(old)
        if is_rtl:
            _insert(properties, etree.Element(f"{{{namespace}}}bidi"), BEHIND_BIDI)
    elif is_rtl != (properties.get("rtl") in ("1", "true")):
        properties.set("rtl", str(int(is_rtl)))
        before, after = OTHER_SIDE[is_rtl]
        if properties.get("algn") == before:
            properties.set("algn", after)


def _turn(table: etree._Element | None, *, is_rtl: bool) -> None:
    """Make the columns of a table begin on the side of the language; without properties it stays."""
    if table is None:
        return
    namespace = etree.QName(table).namespace or ""
    if "wordprocessingml" not in namespace:
        if is_rtl != (table.get("rtl") in ("1", "true")):
            table.set("rtl", str(int(is_rtl)))
        return
    old = table.find(f"{{{namespace}}}bidiVisual")
    if is_rtl and old is None:
        _insert(table, etree.Element(f"{{{namespace}}}bidiVisual"), BEHIND_VISUAL)
    elif old is not None and not is_rtl:
        table.remove(old)


def _insert(properties: etree._Element, added: etree._Element, behind: frozenset[str]) -> None:
    """Insert a property in front of those that have to stand behind it."""
    places = (
        place
        for place, each in enumerate(properties)
        if isinstance(each.tag, str) and etree.QName(each).localname in behind
    )
    properties.insert(next(places, len(properties)), added)
