"""Glossaries in Redis, as two routers see them."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.glossary_stores import MADE, StoreContract, make_glossary

from dragoman_protocols.errors import (
    GlossaryStoreError,
    InvalidFieldError,
    InvalidGlossaryError,
    StoreFullError,
    UnknownGlossaryError,
)
from dragoman_protocols.glossaries.packed import unpack
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary, written
from dragoman_router.state import glossaries
from dragoman_router.state.glossaries import RedisGlossaries
from dragoman_router.state.kept_glossaries import KeptGlossaries
from dragoman_router.state.redis import StateClient, StateMetrics


async def opened(url: str) -> StateClient:
    client = StateClient(url, "test:", 10, StateMetrics())
    await client.connect()
    return client


@pytest.fixture
async def stores(redis_server: Any) -> AsyncIterator[list[RedisGlossaries]]:
    """Those of two routers."""
    clients = [await opened(redis_server.url) for _ in range(2)]
    yield [RedisGlossaries(client) for client in clients]
    for client in clients:
        await client.aclose()


class TestRedisGlossaries(StoreContract):
    """With those of two routers."""


async def test_entries_are_packed_as_they_are_written(stores: Any) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    assert unpack((await other.packed(glossary.glossary_id)).content) == written(glossary)
    await one.remove(glossary.glossary_id)
    for store in stores:
        with pytest.raises(UnknownGlossaryError):
            await store.packed(glossary.glossary_id)
    with pytest.raises(InvalidFieldError, match="glossary_id"):
        await one.packed("../../etc/passwd")


async def test_an_owner_is_known_to_all_routers_and_to_no_pod(stores: Any, redis_server: Any) -> None:
    one, other = stores
    own, common = replace(make_glossary("own"), owner="oidc/alice"), make_glossary("common", age_s=60)
    for glossary in (own, common):
        await one.add(glossary)
        assert await other.get(glossary.glossary_id) == glossary
        packed = await other.packed(glossary.glossary_id)
        assert packed.owner == glossary.owner
        assert unpack(packed.content) == written(replace(glossary, owner=None))
        changed = await other.change(glossary.glossary_id, lambda known: known.renamed(f"{known.name}!"))
        assert changed.owner == glossary.owner
        assert (await one.packed(glossary.glossary_id)).owner == glossary.owner
    assert [(each.name, each.owner) for each in await one.all()] == [
        ("common!", None),
        ("own!", "oidc/alice"),
    ]
    # As routers wrote it that knew no owners.
    assert b"owner" not in redis_server.command(f"HGETALL test:glossary:{common.glossary_id}")
    assert b"owner" not in redis_server.command(f"HGET test:glossaries {common.glossary_id}")


async def test_a_change_that_others_overtake_each_time_is_given_up(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    monkeypatch.setattr(glossaries, "CHANGE_ATTEMPTS", 3)
    read = one._get
    overtaken: list[int] = []

    async def read_and_overtaken(glossary_id: str) -> Any:
        found = await read(glossary_id)
        overtaken.append(await other.change(glossary_id, lambda known: known.renamed(f"{len(overtaken)}")))
        return found

    monkeypatch.setattr(one, "_get", read_and_overtaken)
    with pytest.raises(GlossaryStoreError, match="changed by others at the same time"):
        await one.change(glossary.glossary_id, lambda known: known.renamed("mine"))
    assert (await other.get(glossary.glossary_id)).name == "2"


async def test_what_was_removed_meanwhile_is_not_made_again(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    read = one._get

    async def read_and_removed(glossary_id: str) -> Any:
        found = await read(glossary_id)
        await other.remove(glossary_id)
        return found

    monkeypatch.setattr(one, "_get", read_and_removed)
    with pytest.raises(UnknownGlossaryError):
        await one.change(glossary.glossary_id, lambda known: known.renamed("mine"))
    assert list(await other.all()) == []


async def test_what_exceeds_a_maximum_is_not_added(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidGlossaryError):
        await stores[0].add(make_glossary(name=""))
    monkeypatch.setattr(glossaries, "MAX_GLOSSARIES", 3)
    added = await asyncio.gather(
        *(stores[at % 2].add(make_glossary()) for at in range(8)), return_exceptions=True
    )
    assert [type(each) for each in added].count(StoreFullError) == 5, "exact for any number of routers"
    monkeypatch.setattr(glossaries, "MAX_GLOSSARIES", 9)
    monkeypatch.setattr(glossaries, "MAX_PACKED_BYTES", 50)
    with pytest.raises(InvalidGlossaryError, match="at most 50 are kept"):
        await stores[1].add(make_glossary())
    assert len(await stores[0].all()) == 3


async def test_a_large_glossary_fits(stores: Any) -> None:
    entries = tuple(Entry(f"{number:x}", "y") for number in range(110_000))
    glossary = StoredGlossary(str(uuid.uuid4()), "Large", MADE, (Dictionary("en", "de", entries),))
    assert len(written(glossary)) > 3_000_000
    await stores[0].add(glossary)
    assert await stores[1].get(glossary.glossary_id) == glossary


async def test_a_spoilt_entry_hides_no_other(
    stores: Any, redis_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    whole, spoilt = make_glossary(), make_glossary()
    for glossary in (whole, spoilt):
        await stores[0].add(glossary)
    redis_server.command(f"HSET test:glossary:{spoilt.glossary_id} document AAAA")
    redis_server.command(f"HSET test:glossaries {spoilt.glossary_id} {{")
    with caplog.at_level(logging.WARNING):
        assert list(await stores[1].all()) == [whole.outline]
    assert spoilt.glossary_id in caplog.text
    for lookup in (stores[1].get, stores[1].packed):
        with pytest.raises(
            GlossaryStoreError, match=f"{spoilt.glossary_id} is no glossary; restore or remove"
        ):
            await lookup(spoilt.glossary_id)


async def test_a_spoilt_entry_can_be_removed_by_its_owner(stores: Any, redis_server: Any) -> None:
    common = make_glossary()
    own, gone = (replace(make_glossary(), owner=owner) for owner in ("alice", "bob"))
    for glossary in (own, common, gone):
        await stores[0].add(glossary)
        redis_server.command(f"HSET test:glossary:{glossary.glossary_id} document AAAA")
    redis_server.command(f"DEL test:glossary:{gone.glossary_id}")
    kept = KeptGlossaries(stores[1])
    with pytest.raises(UnknownGlossaryError):
        await kept.of("bob").remove(own.glossary_id)
    await kept.of("alice").remove(own.glossary_id)
    for glossary in (common, gone):
        await kept.of("bob").remove(glossary.glossary_id)
    assert list(await stores[0].all()) == []
    for glossary in (own, common):
        with pytest.raises(UnknownGlossaryError):
            await kept.of("alice").remove(glossary.glossary_id)


async def test_translations_read_entries_once_and_see_every_change(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    whole, read = [], other._document

    async def counted(glossary_id: str) -> Any:
        whole.append(glossary_id)
        return await read(glossary_id)

    monkeypatch.setattr(other, "_document", counted)
    found = {(await other.packed(glossary.glossary_id)).revision for _ in range(3)}
    assert (len(found), len(whole)) == (1, 1)
    await one.change(glossary.glossary_id, lambda known: known.renamed("other"))
    assert (await other.packed(glossary.glossary_id)).revision not in found
    assert len(whole) == 2


async def test_an_outage_leaves_what_was_used(own_redis: Any) -> None:
    client = await opened(own_redis.url)
    store = RedisGlossaries(client)
    used, unused = make_glossary(), make_glossary()
    for glossary in (used, unused):
        await store.add(glossary)
    packed = await store.packed(used.glossary_id)
    own_redis.kill()
    assert await store.packed(used.glossary_id) == packed
    for lookup in (store.packed(unused.glossary_id), store.get(used.glossary_id), store.add(make_glossary())):
        with pytest.raises(GlossaryStoreError, match="Redis does not answer"):
            await lookup
    await client.aclose()


async def test_a_full_server_takes_no_more(stores: Any, redis_server: Any) -> None:
    glossary = make_glossary()
    await stores[0].add(glossary)
    redis_server.command("CONFIG SET maxmemory 1")
    try:
        with pytest.raises(StoreFullError, match="used up; delete one first"):
            await stores[0].add(make_glossary())
        assert await stores[1].get(glossary.glossary_id) == glossary
        await stores[1].remove(glossary.glossary_id)
    finally:
        redis_server.command("CONFIG SET maxmemory 0")
