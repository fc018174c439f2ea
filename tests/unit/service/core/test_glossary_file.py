import os
from pathlib import Path

import pytest
from tests.support.clock import Clock

from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import Pair
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.errors import SettingsError
from dragoman_system.live_files import POLL_S

YAML = """
- {source: en, target: de, terms: {invoice: Rechnung, Dragoman: Dragoman}}
- {source: en, target: pt-BR, terms: {bus: ônibus}, case_sensitive: true}
"""
EN_DE = pair_of("en", "de", offer_of([()]))


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def terms_of(glossaries: GlossaryFile, languages: Pair) -> tuple[Term, ...]:
    glossary = glossaries.of(languages)
    assert glossary is not None
    return glossary.terms


def test_terms_hold_for_their_pair_and_its_regions(tmp_path: Path) -> None:
    glossary = GlossaryFile(written(tmp_path / "g.yaml", YAML))
    terms = (Term("invoice", "Rechnung"), Term("Dragoman", "Dragoman"))
    assert terms_of(glossary, EN_DE) == terms
    assert terms_of(glossary, pair_of("en-GB", "de-AT", offer_of([()]))) == terms
    assert terms_of(glossary, pair_of("en", "pt-BR", offer_of([()]))) == (
        Term("bus", "ônibus", case_sensitive=True),
    )
    assert glossary.of(pair_of("en", "pt", offer_of([()]))) is None


def test_tabs_have_the_same_terms(tmp_path: Path) -> None:
    lines = "# terms\nen\tde\tinvoice\tRechnung\n\nen\tfr\tinvoice\tfacture\n"
    glossary = GlossaryFile(written(tmp_path / "g.tsv", lines))
    assert terms_of(glossary, EN_DE) == (Term("invoice", "Rechnung"),)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.yaml", "- {source: en, target: de}", r"0\.terms: Field required"),
        ("g.yaml", "- {source: english, target: de, terms: {}}", r"0\.source"),
        ("g.yaml", "a: [", "no YAML, line"),
        ("g.yaml", "just words", "the list"),
        ("g.yaml", "[" * 20_000, "nested more than 64 deep"),
        ("g.yaml", "[" * 100_000 + "]" * 100_000, "nested more than 64 deep"),
        ("g.yaml", "!!bool maybe", "no YAML"),
        ("g.yaml", "!!timestamp x", "no YAML"),
        ("g.yaml", "2001-99-99", "no YAML"),
        ("g.yaml", ":".join(["1"] * 400) + ".0", "no YAML"),
        ("g.tsv", "en\tde\tinvoice", "line 1: four cells"),
        ("g.tsv", "en\tde\ta\tb\nenglish\tde\ta\tb", "line 2: 'english'"),
    ],
)
def test_a_file_that_is_no_glossary_is_refused_with_the_place(tmp_path, name, text, message) -> None:
    with pytest.raises(SettingsError, match=message):
        GlossaryFile(written(tmp_path / name, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        GlossaryFile(tmp_path / "none.yaml")


class Edited:
    """A glossary whose file is edited, and looked at when its time has come."""

    def __init__(self, directory: Path) -> None:
        self._clock = Clock(0.0)
        self.path = written(directory / "g.yaml", YAML)
        self.glossary = GlossaryFile(self.path, self._clock)

    async def reload(self, text: str | None = None) -> None:
        """Put a file with `text` in the place of the one that is there, as a kubelet does."""
        if text is not None:
            os.replace(written(self.path.with_suffix(".new"), text), self.path)
        self._clock.now_s += POLL_S
        await self.glossary.refresh()

    @property
    def invoice(self) -> str:
        terms = self.glossary.of(EN_DE)
        return terms.terms[0].target if terms else ""


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    return Edited(tmp_path)


FAKTURA = "- {source: en, target: de, terms: {invoice: Faktura}}"


async def test_a_changed_file_is_read_again_when_its_time_has_come(edited: Edited) -> None:
    os.replace(written(edited.path.with_suffix(".new"), FAKTURA), edited.path)
    await edited.glossary.refresh()
    assert (edited.invoice, edited.glossary.terms) == ("Rechnung", 3)
    await edited.reload()
    assert (edited.invoice, edited.glossary.terms) == ("Faktura", 1)


async def test_a_broken_file_leaves_the_last_good_terms_and_is_logged_once(edited: Edited, caplog) -> None:
    await edited.reload(FAKTURA)
    for text in ("broken: [", None, None):
        await edited.reload(text)
        assert (edited.invoice, edited.glossary.terms) == ("Faktura", 1)
        assert edited.glossary.problem.startswith("no YAML, line")
    (logged,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert logged.startswith(
        f"{edited.path}: reload failed, the previous content stays in use: no YAML, line"
    )
    await edited.reload(YAML)
    assert (edited.invoice, edited.glossary.problem) == ("Rechnung", "")


async def test_a_file_that_goes_and_comes_back_is_as_good_as_before(edited: Edited) -> None:
    away = edited.path.with_suffix(".away")
    for text, verdict in ((YAML, ""), ("just words", "the list: ")):
        await edited.reload(text)
        os.replace(edited.path, away)
        await edited.reload()
        assert edited.glossary.problem == "No such file or directory"
        os.replace(away, edited.path)
        await edited.reload()
        assert edited.glossary.problem.startswith(verdict)
        assert bool(edited.glossary.problem) == bool(verdict)
        assert edited.invoice == "Rechnung"


async def test_a_request_s_terms_win_over_the_deployment_s(tmp_path: Path, core) -> None:
    glossary = GlossaryFile(written(tmp_path / "g.yaml", YAML))
    translator = core(lambda text, _: "Die Faktura von Dragoman.", glossary=glossary)
    request = TranslationRequest(
        ("The invoice of Dragoman.",), "de", "en", terms=(Term("Invoice", "Faktura"),)
    )
    (result,) = await translator.translate(request)
    assert "Invoice → Faktura\nDragoman → Dragoman\n" in translator.engine.prompts[0].instruction
    assert result.warnings == ()
