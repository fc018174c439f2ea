"""Terms out of translation memories."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.memories import read_terms, read_units

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


def test_units_are_all_segments_with_a_translation() -> None:
    text = memory(
        unit(en_US="The cat  sleeps.\n", de_DE="Die Katze schläft."),
        unit(en="12.5", de="12,5"),
        unit(en="only English"),
        unit(en="empty", de=" "),
        unit(en="The cat sleeps.", de="Die Katze schläft."),
        unit(en="The cat sleeps.", de="Es schläft die Katze."),
    )
    assert read_units(text, "en", "de") == (("The cat sleeps.", "Die Katze schläft."), ("12.5", "12,5"))
    assert read_units(text, None, "de") == read_units(text, "en", "de")


def test_units_of_the_very_region_come_first() -> None:
    text = memory(unit(en="bus", pt_BR="ônibus", pt_PT="autocarro"))
    assert read_units(text, "en-GB", "pt-PT") == (("bus", "autocarro"),)
    assert read_units(text, "en", "pt-BR") == read_units(text, "en", "pt") == (("bus", "ônibus"),)


def test_codes_of_units_are_what_they_contain_and_without_content_the_unit_is_left_out() -> None:
    text = memory(
        unit(en="Hi <ph>{0}</ph>!", de="Hallo <ph>{0}</ph>!"),
        unit(en='Hi <ph x="1"/>!', de='Hallo <ph x="1"/>!'),
        unit(en="<bpt><sub>&lt;b&gt;</sub></bpt>red<ept>&lt;/b&gt;</ept>", de="<hi>rot</hi>"),
    )
    assert read_units(text, "en", "de") == (("Hi {0}!", "Hallo {0}!"), ("<b>red</b>", "rot"))


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


@pytest.mark.slow
def test_deep_and_long_memories_take_linear_time() -> None:
    began_s = time.thread_time()
    with pytest.raises(ValueError, match="no TMX"):
        read_terms("<tmx>" + "<seg>" * 200_000, "en", "de")
    many = memory(*(unit(en=f"word {n}", de=f"Wort {n}") for n in range(20_000)))
    assert len(read_terms(many, "en", "de")) == 20_000
    assert len(read_units(many, "en", "de")) == 20_000
    nested = unit(en="<ph>a" * 20_000 + "</ph>" * 20_000, de="b")
    ((source, _),) = read_units(memory(nested), "en", "de")
    assert source == "a" * 20_000
    assert time.thread_time() - began_s < 5
