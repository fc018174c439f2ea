"""What every store does, and what the one over a directory does besides."""

import asyncio
import logging
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dragoman_protocols.errors import (
    GlossaryStoreError,
    InvalidFieldError,
    InvalidGlossaryError,
    StoreFullError,
    UnknownGlossaryError,
)
from dragoman_protocols.glossaries import store
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary
from dragoman_service.errors import SettingsError
from dragoman_service.http.glossaries import open_store
from dragoman_system import glossary_directory
from dragoman_system.glossary_directory import DirectoryStore

MADE = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_glossary(name: str = "Animals", age_s: float = 0) -> StoredGlossary:
    dictionary = Dictionary("en", "de", (Entry("cat", "Katze"), Entry("🪨", "Stein")))
    return StoredGlossary(str(uuid.uuid4()), name, MADE - timedelta(seconds=age_s), (dictionary,))


@pytest.fixture(params=[lambda path: MemoryStore(), DirectoryStore], ids=["memory", "directory"])
def glossaries(request: pytest.FixtureRequest, tmp_path: Path) -> GlossaryStore:
    make: Callable[[Path], GlossaryStore] = request.param
    return make(tmp_path / "new" / "glossaries")


async def test_what_is_added_is_there_until_it_is_removed(glossaries: GlossaryStore) -> None:
    young, old = make_glossary("young"), make_glossary("old", age_s=60)
    for glossary in (young, old):
        await glossaries.add(glossary)
    assert await glossaries.get(young.glossary_id) == young
    assert await glossaries.get(young.glossary_id.upper()) == young
    assert list(await glossaries.all()) == [old.outline, young.outline]
    await glossaries.remove(young.glossary_id)
    assert list(await glossaries.all()) == [old.outline]
    for lookup in (glossaries.get, glossaries.remove):
        with pytest.raises(UnknownGlossaryError):
            await lookup(young.glossary_id)


@pytest.mark.parametrize("glossary_id", ["", "../../etc/passwd", "a\x00", "9" * 31, "\ud800" * 32])
async def test_only_uuids_are_ids(glossaries: GlossaryStore, glossary_id: str) -> None:
    for lookup in (glossaries.get, glossaries.remove):
        with pytest.raises(InvalidFieldError, match="glossary_id"):
            await lookup(glossary_id)


async def test_changes_side_by_side_are_all_kept(glossaries: GlossaryStore) -> None:
    glossary = make_glossary()
    await glossaries.add(glossary)

    async def add(number: int) -> None:
        new = Dictionary("en", "de", (Entry(f"term {number}", "x"),))
        await glossaries.change(glossary.glossary_id, lambda known: known.with_entries(new))

    await asyncio.gather(*map(add, range(20)))
    assert len((await glossaries.get(glossary.glossary_id)).dictionary("en", "de").entries) == 22


async def test_a_change_that_fails_changes_nothing(glossaries: GlossaryStore) -> None:
    glossary = make_glossary()
    await glossaries.add(glossary)
    with pytest.raises(InvalidGlossaryError):
        await glossaries.change(glossary.glossary_id, lambda known: known.renamed(""))
    assert await glossaries.get(glossary.glossary_id) == glossary
    with pytest.raises(UnknownGlossaryError):
        await glossaries.change(str(uuid.uuid4()), lambda known: known)


async def test_what_exceeds_a_bound_is_not_added(
    glossaries: GlossaryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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
