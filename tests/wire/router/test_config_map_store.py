"""Glossaries in ConfigMaps, against the local cluster's API server."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kubernetes.aio import client, config

from dragoman_contract.glossaries import unpack
from dragoman_protocols.errors import (
    GlossaryStoreError,
    InvalidFieldError,
    InvalidGlossaryError,
    StoreFullError,
    UnknownGlossaryError,
)
from dragoman_protocols.glossaries.document import written
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary
from dragoman_router.glossaries import config_maps, kubernetes_glossaries
from dragoman_router.glossaries.config_maps import KEY, OUTLINE, name_of
from dragoman_router.glossaries.kubernetes_glossaries import ConfigMapStore

MADE = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_glossary(name: str = "Animals", age_s: float = 0) -> StoredGlossary:
    dictionary = Dictionary("en", "de", (Entry("cat", "Katze"), Entry("🪨", "Stein")))
    return StoredGlossary(str(uuid.uuid4()), name, MADE - timedelta(seconds=age_s), (dictionary,))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, routed_cluster: Any) -> Iterator[Any]:
    made = routed_cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def namespace(cluster: Any) -> str:
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
async def stores(cluster: Any, namespace: str) -> AsyncIterator[tuple[ConfigMapStore, ConfigMapStore]]:
    """Those of two routers."""
    made = []
    for _ in range(2):
        loaded = client.Configuration()
        await config.load_kube_config(config_file=str(cluster.kubeconfig), client_configuration=loaded)
        made.append(client.ApiClient(loaded))
    one, other = made
    async with one, other:
        yield ConfigMapStore(one, namespace), ConfigMapStore(other, namespace)


async def test_what_one_adds_is_there_for_the_other_until_it_is_removed(stores: Any) -> None:
    one, other = stores
    young, old = make_glossary("young"), make_glossary("old", age_s=60)
    for glossary in (young, old):
        await one.add(glossary)
        assert await other.get(glossary.glossary_id.upper()) == glossary
        assert unpack((await other.packed(glossary.glossary_id)).content) == written(glossary)
    assert list(await other.all()) == [old.outline, young.outline]
    await one.remove(young.glossary_id)
    assert list(await other.all()) == [old.outline]
    for lookup in (other.get, other.packed, other.remove, one.packed):
        with pytest.raises(UnknownGlossaryError):
            await lookup(young.glossary_id)


@pytest.mark.parametrize("glossary_id", ["", "../../etc/passwd", "a/../b", "9" * 31])
async def test_only_uuids_are_ids(stores: Any, glossary_id: str) -> None:
    for lookup in (stores[0].get, stores[0].packed, stores[0].remove):
        with pytest.raises(InvalidFieldError, match="glossary_id"):
            await lookup(glossary_id)


async def test_changes_side_by_side_are_all_kept(stores: Any) -> None:
    glossary = make_glossary()
    await stores[0].add(glossary)

    async def add(number: int) -> None:
        new = Dictionary("en", "de", (Entry(f"term {number}", "x"),))
        await stores[number % 2].change(glossary.glossary_id, lambda known: known.with_entries(new))

    await asyncio.gather(*map(add, range(12)))
    assert len((await stores[0].get(glossary.glossary_id)).dictionary("en", "de").entries) == 14


async def test_a_change_that_somebody_overtakes_each_time_is_given_up(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    monkeypatch.setattr(kubernetes_glossaries, "CHANGE_ATTEMPTS", 3)
    read, overtaken = one._read, []

    async def read_and_overtaken(glossary_id: str) -> Any:
        found = await read(glossary_id)
        overtaken.append(await other.change(glossary_id, lambda known: known.renamed(f"{len(overtaken)}")))
        return found

    monkeypatch.setattr(one, "_read", read_and_overtaken)
    with pytest.raises(GlossaryStoreError, match="others change the glossary at the same time"):
        await one.change(glossary.glossary_id, lambda known: known.renamed("mine"))
    assert (await other.get(glossary.glossary_id)).name == "2"


async def test_a_change_that_fails_changes_nothing(stores: Any) -> None:
    glossary = make_glossary()
    await stores[0].add(glossary)
    with pytest.raises(InvalidGlossaryError):
        await stores[0].change(glossary.glossary_id, lambda known: known.renamed(""))
    assert await stores[1].get(glossary.glossary_id) == glossary
    with pytest.raises(UnknownGlossaryError):
        await stores[0].change(str(uuid.uuid4()), lambda known: known)


async def test_what_exceeds_a_bound_is_not_added(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidGlossaryError):
        await stores[0].add(make_glossary(name=""))
    monkeypatch.setattr(kubernetes_glossaries, "MOST_GLOSSARIES", 1)
    await stores[0].add(make_glossary())
    with pytest.raises(StoreFullError, match="as many as are kept"):
        await stores[1].add(make_glossary())
    monkeypatch.setattr(kubernetes_glossaries, "MOST_GLOSSARIES", 9)
    monkeypatch.setattr(config_maps, "MOST_PACKED_BYTES", 50)
    with pytest.raises(InvalidGlossaryError, match="a glossary has to fit a ConfigMap, which holds 50"):
        await stores[1].add(make_glossary())
    assert len(await stores[0].all()) == 1


async def test_a_large_glossary_fits(stores: Any) -> None:
    """As large as one may be; without gzip its JSON would be four times what a ConfigMap holds."""
    entries = tuple(Entry(f"{number:x}", "y") for number in range(110_000))
    glossary = StoredGlossary(str(uuid.uuid4()), "Large", MADE, (Dictionary("en", "de", entries),))
    assert len(written(glossary)) > 3_000_000
    await stores[0].add(glossary)
    assert await stores[1].get(glossary.glossary_id) == glossary


async def test_many_are_listed_in_pages(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_glossaries, "PAGE", 2)
    made = [make_glossary(age_s=-number) for number in range(5)]
    for glossary in made:
        await stores[0].add(glossary)
    assert list(await stores[1].all()) == [glossary.outline for glossary in made]


async def test_other_objects_are_left_alone_and_a_spoilt_one_hides_no_other(
    stores: Any, cluster: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster_call = asyncio.to_thread
    await cluster_call(cluster.create, path, {"metadata": {"name": "somebodys"}, "data": {"a": "b"}})
    whole, spoilt = make_glossary(), make_glossary()
    for glossary in (whole, spoilt):
        await stores[0].add(glossary)
    name = name_of(spoilt.glossary_id)
    found = await cluster_call(cluster.call, "GET", f"{path}/{name}")
    found["metadata"]["annotations"][OUTLINE] = "{"
    found["binaryData"][KEY] = "AAAA"
    await cluster_call(cluster.call, "PUT", f"{path}/{name}", found)
    with caplog.at_level(logging.WARNING):
        assert list(await stores[1].all()) == [whole.outline]
    assert name in caplog.text
    for lookup in (stores[1].get, stores[1].packed):
        with pytest.raises(GlossaryStoreError, match=f"{name} is no glossary; restore or remove it"):
            await lookup(spoilt.glossary_id)


async def test_translations_read_entries_once_and_see_every_change(
    stores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    glossary = make_glossary()
    await one.add(glossary)
    whole, read = [], other._read

    async def counted(glossary_id: str) -> Any:
        whole.append(glossary_id)
        return await read(glossary_id)

    monkeypatch.setattr(other, "_read", counted)
    found = {(await other.packed(glossary.glossary_id)).revision for _ in range(3)}
    assert (len(found), len(whole)) == (1, 1)
    await one.change(glossary.glossary_id, lambda known: known.renamed("other"))
    assert (await other.packed(glossary.glossary_id)).revision not in found
    assert len(whole) == 2


async def test_what_is_known_of_many_is_bounded(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [make_glossary() for _ in range(4)]
    for glossary in made:
        await stores[0].add(glossary)
    size = len((await stores[0].packed(made[0].glossary_id)).content)
    monkeypatch.setattr(kubernetes_glossaries, "MOST_KNOWN_BYTES", 3 * size)
    for glossary in made:
        await stores[0].packed(glossary.glossary_id)
    assert len(stores[0]._known) < 4
    assert made[-1].glossary_id in stores[0]._known
    assert stores[0]._known_bytes == sum(len(packed.content) for _, packed in stores[0]._known.values())


async def test_a_namespace_that_is_not_there_is_an_error_that_says_so(cluster: Any, stores: Any) -> None:
    lost = ConfigMapStore(stores[0]._api, "no-such-namespace")
    with pytest.raises(GlossaryStoreError, match="the Kubernetes API answered 404"):
        await lost.add(make_glossary())
