import os
from pathlib import Path

import pytest

from dragoman_service.errors import SettingsError
from dragoman_service.languages import pair
from dragoman_service.text.glossary import Term
from dragoman_service.translate.glossary_file import LOOK_EVERY_S, GlossaryFile
from dragoman_service.translation import TranslationRequest

YAML = """
- {source: en, target: de, terms: {invoice: Rechnung, Dragoman: Dragoman}}
- {source: en, target: pt-BR, terms: {bus: ônibus}, case_sensitive: true}
"""
EN_DE = pair("en", "de", ())


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_terms_hold_for_their_pair_and_its_regions(tmp_path: Path) -> None:
    glossary = GlossaryFile(written(tmp_path / "g.yaml", YAML))
    assert glossary.of(EN_DE).terms == (Term("invoice", "Rechnung"), Term("Dragoman", "Dragoman"))
    assert glossary.of(pair("en-GB", "de-AT", ())).terms == glossary.of(EN_DE).terms
    assert glossary.of(pair("en", "pt-BR", ())).terms == (Term("bus", "ônibus", case_sensitive=True),)
    assert glossary.of(pair("en", "pt", ())) is None


def test_tabs_say_the_same(tmp_path: Path) -> None:
    lines = "# terms\nen\tde\tinvoice\tRechnung\n\nen\tfr\tinvoice\tfacture\n"
    glossary = GlossaryFile(written(tmp_path / "g.tsv", lines))
    assert glossary.of(EN_DE).terms == (Term("invoice", "Rechnung"),)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.yaml", "- {source: en, target: de}", r"0\.terms: Field required"),
        ("g.yaml", "- {source: english, target: de, terms: {}}", r"0\.source"),
        ("g.yaml", "a: [", "no YAML, line"),
        ("g.yaml", "just words", "the list"),
        ("g.tsv", "en\tde\tinvoice", "line 1: four cells"),
        ("g.tsv", "en\tde\ta\tb\nenglish\tde\ta\tb", "line 2: 'english'"),
    ],
)
def test_a_file_that_is_no_glossary_is_refused_with_the_place(tmp_path, name, text, said) -> None:
    with pytest.raises(SettingsError, match=said):
        GlossaryFile(written(tmp_path / name, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        GlossaryFile(tmp_path / "none.yaml")


async def test_a_changed_file_is_read_again_and_a_broken_one_is_not(tmp_path: Path) -> None:
    clock = Clock()
    path = written(tmp_path / "g.yaml", YAML)
    glossary = GlossaryFile(path, clock)
    written(tmp_path / "new", "- {source: en, target: de, terms: {invoice: Faktura}}")
    os.replace(tmp_path / "new", path)
    await glossary.refresh()
    assert glossary.of(EN_DE).terms[0].target == "Rechnung"
    clock.now_s += LOOK_EVERY_S
    await glossary.refresh()
    assert glossary.of(EN_DE).terms == (Term("invoice", "Faktura"),)
    written(path, "broken: [")
    clock.now_s += LOOK_EVERY_S
    await glossary.refresh()
    assert glossary.of(EN_DE).terms == (Term("invoice", "Faktura"),)
    path.unlink()
    clock.now_s += LOOK_EVERY_S
    await glossary.refresh()
    assert glossary.of(EN_DE).terms == (Term("invoice", "Faktura"),)


async def test_a_request_s_terms_win_over_the_deployment_s(tmp_path: Path, core) -> None:
    glossary = GlossaryFile(written(tmp_path / "g.yaml", YAML))
    translator = core(lambda text, _: "Die Faktura von Dragoman.", glossary=glossary)
    asked = TranslationRequest(("The invoice of Dragoman.",), "de", "en", terms=(Term("Invoice", "Faktura"),))
    (result,) = await translator.translate(asked)
    assert "Invoice → Faktura\nDragoman → Dragoman\n" in translator.engine.prompts[0].instruction
    assert result.warnings == ()
