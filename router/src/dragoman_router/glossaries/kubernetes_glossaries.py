"""Glossaries in ConfigMaps, one each: what all routers of a cluster keep them in."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import aiohttp
from kubernetes.aio import client

from dragoman_contract.glossaries import Packed, pack, unpack
from dragoman_protocols.errors import GlossaryStoreError, RequestError, StoreFullError
from dragoman_protocols.glossaries.document import read, written
from dragoman_protocols.glossaries.store import MOST_GLOSSARIES, Change, canonical_id, full, in_order, unknown
from dragoman_protocols.glossaries.values import Outline, StoredGlossary
from dragoman_router.glossaries.config_maps import (
    SELECTOR,
    Manifest,
    config_map,
    name_of,
    no_glossary,
    outline_of,
    packed_of,
    too_large,
    version_of,
)
from dragoman_router.glossaries.fresh_reads import FreshReads

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""For one call: clients wait for it, and a server that takes longer is in trouble."""
PAGE = 250
CHANGE_ATTEMPTS = 20
"""Of a change that others are faster than each time; each attempt lets one of them through."""
LONGEST_PAUSE_S = 0.05
MOST_KNOWN_BYTES = 8 * 1024 * 1024
"""Packed, of those that translations name: what is not read again while it stays as it is."""

WHOLE = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches"""


class UnreachableError(GlossaryStoreError):
    """The API server could not be asked, or could not answer."""


class ConflictError(GlossaryStoreError):
    """Somebody else was faster."""


class ConfigMapStore:
    """A `GlossaryStore` over the ConfigMaps of a namespace.

    Every read asks the API server for what is there now, without a `resourceVersion`, so that what one router has
    written is there for all others as soon as the write was answered.

    Args:
        api: An open client.
        namespace: Where the ConfigMaps are.
    """

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._chance = Random()
        self._known: OrderedDict[str, tuple[tuple[str, str], Packed]] = OrderedDict()
        self._known_bytes = 0
        self._reads = FreshReads(self._packed)

    async def add(self, glossary: StoredGlossary) -> None:
        """See `GlossaryStore.add`; two routers that add at once may come to one more than the most."""
        checked = glossary.checked()
        if len(await self._list()) >= MOST_GLOSSARIES:
            raise full()
        await self._call("POST", self._path, body=await asyncio.to_thread(_manifest, checked))

    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`."""
        return await asyncio.to_thread(_glossary, await self._read(canonical_id(glossary_id)))

    async def all(self) -> Sequence[Outline]:
        """See `GlossaryStore.all`; an object that somebody else has spoilt is passed over and logged."""
        found = []
        for each in await self._list():
            try:
                found.append(outline_of(each))
            except GlossaryStoreError as error:
                log.warning("passed over: %s", error)
        return in_order(found)

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """See `GlossaryStore.change`."""
        glossary_id = canonical_id(glossary_id)
        for _ in range(CHANGE_ATTEMPTS):
            found = await self._read(glossary_id)
            changed, body = await asyncio.to_thread(_changed, found, change)
            try:
                await self._call("PUT", self._path_of(glossary_id), body=body)
            except ConflictError:
                await asyncio.sleep(self._chance.uniform(0, LONGEST_PAUSE_S))
            else:
                return changed
        raise GlossaryStoreError("others change the glossary at the same time; ask again")

    async def remove(self, glossary_id: str) -> None:
        """See `GlossaryStore.remove`."""
        glossary_id = canonical_id(glossary_id)
        await self._call("DELETE", self._path_of(glossary_id))
        self._forget(glossary_id)

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary as routers bring it to pods, as it is now.

        Where the API server cannot be asked, what was last known holds: without it nobody can change anything either.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be read, and is not known.
        """
        return await self._reads.get(canonical_id(glossary_id))

    async def _packed(self, glossary_id: str) -> Packed:
        known = self._known.get(glossary_id)
        try:
            state = await self._call("GET", self._path_of(glossary_id), accept=METADATA)
            if known is not None and version_of(state) == known[0]:
                self._known.move_to_end(glossary_id)
                return known[1]
            if "binaryData" not in state:
                state = await self._read(glossary_id)
        except UnreachableError as error:
            if known is None:
                raise
            log.warning("a glossary is used as it was last known: %s", error)
            return known[1]
        except RequestError:
            self._forget(glossary_id)
            raise
        packed = await asyncio.to_thread(packed_of, state)
        self._remember(glossary_id, version_of(state), packed)
        return packed

    def _remember(self, glossary_id: str, version: tuple[str, str], packed: Packed) -> None:
        self._forget(glossary_id)
        self._known[glossary_id] = version, packed
        self._known_bytes += len(packed.content)
        while self._known_bytes > MOST_KNOWN_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, glossary_id: str) -> None:
        gone = self._known.pop(glossary_id, None)
        if gone is not None:
            self._known_bytes -= len(gone[1].content)

    async def _read(self, glossary_id: str) -> Manifest:
        return await self._call("GET", self._path_of(glossary_id))

    async def _list(self) -> list[Manifest]:
        """The metadata of all."""
        found: list[Manifest] = []
        query = [("labelSelector", SELECTOR), ("limit", str(PAGE))]
        following = ""
        while True:
            more = [("continue", following)] if following else []
            page = await self._call("GET", self._path, query=query + more, accept=METADATA_LIST)
            found += page.get("items") or []
            following = page["metadata"].get("continue") or ""
            if not following:
                return found

    def _path_of(self, glossary_id: str) -> str:
        return f"{self._path}/{name_of(glossary_id)}"

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Manifest | None = None,
        accept: str = WHOLE,
    ) -> Manifest:
        """What the API server answers.

        Raises:
            UnknownGlossaryError: It knows no such object.
            ConflictError: The object has changed.
            InvalidGlossaryError: The object is too large for it.
            StoreFullError: The namespace's quota is used up.
            GlossaryStoreError: Anything else.
        """
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": "application/json"})
        request = await self._api.param_serialize(
            method, path, {}, list(query), headers, body, auth_settings=["BearerToken"]
        )
        try:
            response = await self._api.call_api(
                *request, _request_timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
            )
            raw = response.response
            try:
                status, content = raw.status, await raw.read()
            finally:
                raw.close()
        except (aiohttp.ClientError, OSError, TimeoutError, client.ApiException) as error:
            raise UnreachableError(f"the Kubernetes API cannot be asked ({type(error).__name__})") from error
        if status >= 300:
            raise _refused(method, path, status, content, body)
        answered: Manifest = json.loads(content)
        return answered


def _manifest(glossary: StoredGlossary, version: str | None = None) -> Manifest:
    return config_map(glossary, pack(glossary.glossary_id, written(glossary)), version)


def _changed(found: Manifest, change: Change) -> tuple[StoredGlossary, Manifest]:
    changed = change(_glossary(found)).checked()
    return changed, _manifest(changed, version_of(found)[1])


def _glossary(manifest: Manifest) -> StoredGlossary:
    try:
        return read(unpack(packed_of(manifest).content))
    except ValueError as error:
        raise no_glossary(str(manifest["metadata"]["name"])) from error


def _refused(method: str, path: str, status: int, content: bytes, body: Manifest | None) -> RequestError:
    """What the API server's no means for a glossary; its words, which name accounts and quotas, are for the log."""
    said = content[:500].decode("utf-8", "replace")
    if status == 404 and method != "POST":
        return unknown()
    if status == 409:
        return ConflictError("the glossary has changed meanwhile; ask again")
    if status == 413 or (status == 422 and "Too long" in said):
        return too_large(sum(len(each) for each in (body or {}).get("binaryData", {}).values()) * 3 // 4)
    log.warning("%s %s: status %d: %s", method, path, status, said)
    if status == 403 and "exceeded quota" in said:
        return StoreFullError("the namespace's quota for glossaries is used up; delete one first")
    kind = UnreachableError if status == 429 or status >= 500 else GlossaryStoreError
    return kind(f"the Kubernetes API answered {status}; the router's log has more")
