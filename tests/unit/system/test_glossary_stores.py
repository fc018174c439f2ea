"""Glossaries in memory and in a directory."""

import logging
import os
import uuid
from pathlib import Path

import pytest
from tests.support.glossary_stores import StoreContract, make_glossary

from dragoman_protocols.errors import GlossaryStoreError, InvalidGlossaryError, StoreFullError
from dragoman_protocols.glossaries import store
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_service.errors import SettingsError
from dragoman_service.http.glossaries import open_store
from dragoman_system import glossary_directory
from dragoman_system.glossary_directory import DirectoryStore


@pytest.fixture(params=[lambda path: MemoryStore(), DirectoryStore], ids=["memory", "directory"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[GlossaryStore, GlossaryStore]:
    """One store twice: changes by two of one directory at the same time may be lost."""
    made: GlossaryStore = request.param(tmp_path / "new" / "glossaries")
    return made, made


class TestStores(StoreContract):
    """In memory and in a directory."""


async def test_what_exceeds_a_bound_is_not_added(
    stores: tuple[GlossaryStore, GlossaryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    glossaries, _ = stores
    with pytest.raises(InvalidGlossaryError):
        await glossaries.add(make_glossary(name=""))
    for module in (store, glossary_directory):
        monkeypatch.setattr(module, "MAX_GLOSSARIES", 1)
    await glossaries.add(make_glossary())
    with pytest.raises(StoreFullError, match="1 glossaries, as many as are kept"):
        await glossaries.add(make_glossary())
    assert len(await glossaries.all()) == 1


async def test_stores_of_one_directory_see_the_same(tmp_path: Path) -> None:
    one, other = DirectoryStore(tmp_path), DirectoryStore(tmp_path)
    glossary = make_glossary()
    await one.add(glossary)
    assert await other.get(glossary.glossary_id) == glossary
    for name in ("first", "second"):
        await one.change(glossary.glossary_id, lambda known, name=name: known.renamed(name))  # type: ignore[misc]
        assert (await other.get(glossary.glossary_id)).name == name
    assert os.listdir(tmp_path) == [f"{glossary.glossary_id}.json"]


async def test_a_damaged_file_is_logged_and_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    glossaries = DirectoryStore(tmp_path)
    glossary, damaged = make_glossary(), str(uuid.uuid4())
    await glossaries.add(glossary)
    (tmp_path / f"{damaged}.json").write_text('{"name": "half')
    with caplog.at_level(logging.WARNING):
        assert list(await glossaries.all()) == [glossary.outline]
    assert damaged in caplog.text
    with pytest.raises(GlossaryStoreError, match=f"{damaged}.json is no glossary; restore or remove it"):
        await glossaries.get(damaged)


async def test_a_write_that_fails_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glossaries = DirectoryStore(tmp_path)
    glossary = make_glossary()
    await glossaries.add(glossary)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GlossaryStoreError, match="could not be kept: No space left on device"):
        await glossaries.change(glossary.glossary_id, lambda known: known.renamed("other"))
    assert await glossaries.get(glossary.glossary_id) == glossary
    assert os.listdir(tmp_path) == [f"{glossary.glossary_id}.json"]


async def test_a_directory_that_is_gone_is_an_error_that_says_so(tmp_path: Path) -> None:
    glossaries = DirectoryStore(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for requested in (glossaries.add(make_glossary()), glossaries.all()):
        with pytest.raises(GlossaryStoreError, match="No such file or directory"):
            await requested


def test_the_configured_directory_has_to_be_usable(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(SettingsError, match=r"--glossary-dir: cannot keep glossaries in .*/file: "):
        open_store(taken, None)


def test_a_pod_without_a_directory_says_that_it_forgets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with caplog.at_level(logging.INFO):
        assert isinstance(open_store(None, None), MemoryStore)
        assert isinstance(open_store(None, taken), MemoryStore)
        assert caplog.text.count("kept in memory and end with this pod") == 2
        assert isinstance(open_store(None, tmp_path), DirectoryStore)
        assert isinstance(open_store(tmp_path / "requested", taken), DirectoryStore)
    assert caplog.text.count("kept in memory") == 2
