"""Terms out of translation memories."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_contract.tmx import read_terms

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
    '<header srclang="en-US" creationtool="x" segtype="sentence" datatype="plaintext"/><body>'
)


def unit(**segments: str) -> str:
    variants = "".join(
        f'<tuv xml:lang="{lang.replace("_", "-")}"><seg>{text}</seg></tuv>' for lang, text in segments.items()
    )
    return f"<tu><prop type='x'>note</prop>{variants}</tu>"


def memory(*units: str) -> str:
    return f"{HEAD}{''.join(units)}</body></tmx>"


def test_short_segments_are_terms() -> None:
    text = memory(
        unit(en_US="invoice", de_DE="Rechnung", fr="facture"),
        unit(en="The cat sleeps.", de="Die Katze schläft."),
        unit(en="a segment of far too many words", de="ein viel zu langes Segment"),
        unit(en="only English"),
        unit(en="12.5", de="12,5"),
        unit(EN="  reading\n room &amp; bar ", DE="Lesesaal"),
    )
    assert read_terms(text, "en", "de-AT") == (("invoice", "Rechnung"), ("reading room & bar", "Lesesaal"))
    assert read_terms(text, None, "fr") == (("invoice", "facture"),)
    assert read_terms(text, "de", "en")[0] == ("Rechnung", "invoice")


def test_the_most_frequent_translation_holds_and_of_equals_the_first() -> None:
    units = [unit(en="order", de=target) for target in ("Ordnung", "Bestellung", "Bestellung")]
    assert read_terms(memory(*units), "en", "de") == (("order", "Bestellung"),)
    assert read_terms(memory(*units[:2]), "en", "de") == (("order", "Ordnung"),)


def test_codes_are_left_out_and_highlighted_text_stays() -> None:
    coded = unit(en='<bpt i="1">&lt;b&gt;</bpt>red<ept i="1">x</ept> <hi>wine</hi>', de="Rotwein<ph>{1}</ph>")
    assert read_terms(memory(coded), "en", "de") == (("red wine", "Rotwein"),)


def test_languages_of_the_first_version_are_read() -> None:
    assert read_terms('<tmx><tu><tuv lang="EN-GB"><seg>tea</seg></tuv><tuv lang="FR"><seg>thé</seg></tuv></tu></tmx>',
        "en", "fr") == (("tea", "thé"),)  # fmt: skip


LAUGHS = "<!DOCTYPE tmx [<!ENTITY a 'haha'><!ENTITY b '&a;&a;&a;'>]><tmx>&b;</tmx>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no element found"),
        ("a\tb", "no TMX: line 1"),
        ("<tmx>\n<tu>", "line 2: no element found"),
        ("<xliff/>", "root is not <tmx>"),
        (LAUGHS, "declares the entity 'a'"),
        ("<!DOCTYPE tmx [<!ENTITY % e SYSTEM 'file:///etc/passwd'> %e;]><tmx/>", "declares the entity 'e'"),
        ("<tmx>\ud800</tmx>\0", "no TMX"),
    ],
)
def test_what_is_no_memory_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_terms(text, "en", "de")


PARTS = ["<tu>", "</tu>", "<tuv>", '<tuv xml:lang="en">', "<seg>", "</seg>", "<ph>", "a", "&b;"]


@given(st.lists(st.sampled_from(PARTS)))
def test_any_text_is_read_or_refused(parts: list[str]) -> None:
    with suppress(ValueError):
        assert isinstance(read_terms(f"<tmx>{''.join(parts)}</tmx>", "en", "de"), tuple)


def test_deep_and_long_memories_take_linear_time() -> None:
    began_s = time.thread_time()
    with pytest.raises(ValueError, match="no TMX"):
        read_terms("<tmx>" + "<seg>" * 200_000, "en", "de")
    many = memory(*(unit(en=f"word {n}", de=f"Wort {n}") for n in range(20_000)))
    assert len(read_terms(many, "en", "de")) == 20_000
    assert time.thread_time() - began_s < 3
