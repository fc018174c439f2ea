"""Glossaries belong to the caller who created them; those without an owner to all."""

import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman_protocols.errors import GlossaryStoreError, UnknownGlossaryError
from dragoman_protocols.glossaries.packed import unpack
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary, written
from dragoman_router.state.kept_glossaries import KeptGlossaries
from dragoman_system.glossary_directory import DirectoryStore

ENTRIES = Dictionary("en", "de", (Entry("cat", "Katze"),))


def make_glossary(name: str) -> StoredGlossary:
    return StoredGlossary(str(uuid.uuid4()), name, datetime(2026, 11, 1, tzinfo=UTC), (ENTRIES,))


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path)


async def listed(store: GlossaryStore) -> list[str]:
    return sorted(outline.name for outline in await store.all())


ACCESSES: list[Callable[[KeptGlossaries, str, str], Awaitable[object]]] = [
    lambda kept, caller, glossary_id: kept.of(caller).get(glossary_id),
    lambda kept, caller, glossary_id: kept.of(caller).change(glossary_id, lambda known: known.renamed("x")),
    lambda kept, caller, glossary_id: kept.of(caller).remove(glossary_id),
    lambda kept, caller, glossary_id: kept.named([glossary_id], caller),
]


@pytest.mark.parametrize("access", ACCESSES)
async def test_to_other_callers_a_glossary_does_not_exist(store: Any, access: Any) -> None:
    kept = KeptGlossaries(store)
    glossary = make_glossary("mine")
    await kept.of("alice").add(glossary)
    refusals = []
    for glossary_id in (glossary.glossary_id, str(uuid.uuid4())):
        with pytest.raises(UnknownGlossaryError) as refused:
            await access(kept, "oidc/alice", glossary_id)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
    assert await kept.of("alice").get(glossary.glossary_id) == await store.get(glossary.glossary_id)
    await access(kept, "alice", glossary.glossary_id)


async def test_lists_have_a_callers_own_and_those_without_an_owner(store: Any) -> None:
    kept = KeptGlossaries(store)
    await store.add(make_glossary("common"))
    for caller in ("alice", "bob"):
        await kept.of(caller).add(make_glossary(f"of {caller}"))
    assert await listed(kept.of("alice")) == ["common", "of alice"]
    assert await listed(kept.of("carol")) == ["common"]
    assert await listed(kept.of(None)) == ["common", "of alice", "of bob"]
    assert await listed(KeptGlossaries(store, common=True).of("carol")) == ["common", "of alice", "of bob"]


@pytest.mark.parametrize("access", ACCESSES)
async def test_a_glossary_without_an_owner_is_each_callers(store: Any, access: Any) -> None:
    glossary = make_glossary("common")
    await store.add(glossary)
    await access(KeptGlossaries(store), "alice", glossary.glossary_id)


async def test_a_change_changes_no_owner(store: Any) -> None:
    kept = KeptGlossaries(store)
    own, common = make_glossary("mine"), make_glossary("common")
    await kept.of("alice").add(own)
    await store.add(common)
    for glossary, owner in ((own, "alice"), (common, None)):
        await kept.of("alice").change(glossary.glossary_id, lambda known: known.renamed("renamed"))
        assert (await store.get(glossary.glossary_id)).owner == owner


@pytest.mark.parametrize(("document", "owner"), [(b'{"owner": "alice"}', "alice"), (b"{}", None)])
async def test_a_damaged_glossary_can_be_removed_by_those_who_saw_it(
    tmp_path: Path, document: bytes, owner: str | None
) -> None:
    glossary_id = str(uuid.uuid4())
    file = tmp_path / f"{glossary_id}.json"
    file.write_bytes(document)
    kept = KeptGlossaries(DirectoryStore(tmp_path))
    with pytest.raises(GlossaryStoreError, match="restore or remove"):
        await kept.of("alice").get(glossary_id)
    if owner is not None:
        with pytest.raises(UnknownGlossaryError):
            await kept.of("bob").remove(glossary_id)
    assert file.exists()
    await kept.of("alice").remove(glossary_id)
    assert not file.exists()


@pytest.mark.parametrize("document", [b"", b"[]", b'{"owner": 1}'])
async def test_without_a_readable_owner_a_glossary_can_be_removed_by_no_caller_with_a_name(
    tmp_path: Path, document: bytes
) -> None:
    glossary_id = str(uuid.uuid4())
    (tmp_path / f"{glossary_id}.json").write_bytes(document)
    kept = KeptGlossaries(DirectoryStore(tmp_path))
    with pytest.raises(GlossaryStoreError, match="restore or remove"):
        await kept.of("alice").remove(glossary_id)
    await kept.of(None).remove(glossary_id)


async def test_pods_do_not_learn_who_owns_a_glossary(store: Any) -> None:
    kept = KeptGlossaries(store)
    glossary = make_glossary("mine")
    await kept.of("alice").add(glossary)
    (packed,) = await kept.named([glossary.glossary_id], "alice")
    assert unpack(packed.content) == written(glossary)
    assert b"owner" not in unpack(packed.content)


async def test_callers_without_names_share_all(store: Any) -> None:
    kept = KeptGlossaries(store)
    glossary = make_glossary("mine")
    await kept.of(None).add(glossary)
    assert (await kept.of(None).get(glossary.glossary_id)).owner is None
    assert await kept.named([glossary.glossary_id], None)
