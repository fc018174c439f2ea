"""The requests at the paths of DeepL's glossaries, v2 and v3, over any store: one table for pod and router."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.deepl import glossaries, types
from dragoman_protocols.deepl.errors import API, MediaTypeError
from dragoman_protocols.deepl.fields import Fields, bounded_fields
from dragoman_protocols.endpoints import Endpoint, EndpointKind, Operation
from dragoman_protocols.glossaries.entries import to_tsv
from dragoman_protocols.glossaries.store import Change, GlossaryStore, unknown
from dragoman_protocols.glossaries.values import Dictionary, StoredGlossary
from dragoman_protocols.messages import Answer, Request, json_answer

TSV = "text/tab-separated-values"

NO_CONTENT = Answer(204, b"")

Value = TypeVar("Value")
Pair = tuple[str, str]


async def create_v2(store: GlossaryStore, _: Request, new: StoredGlossary) -> Answer:
    """Create a glossary for one language pair."""
    await store.add(new)
    return json_answer(glossaries.monolingual_json(new.outline), 201)


async def list_v2(store: GlossaryStore, *_: object) -> Answer:
    """List the glossaries with exactly one language pair."""
    found = glossaries.monolingual(await store.all())
    return json_answer({"glossaries": [glossaries.monolingual_json(each) for each in found]})


async def describe_v2(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Get the properties of a glossary with exactly one language pair."""
    return json_answer(glossaries.monolingual_json((await store.get(_id(request))).outline))


async def entries_v2(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Get the entries of a glossary as tab-separated text."""
    accepted = request.header(b"accept") or b"*/*"
    if not any(kind in accepted for kind in (TSV.encode(), b"text/*", b"*/*")):
        raise MediaTypeError("No supported media type specified in Accept header")
    dictionary = glossaries.only_dictionary((await store.get(_id(request))).dictionaries)
    return Answer(200, to_tsv(dictionary.entries).encode(), (("Content-Type", f"{TSV}; charset=utf-8"),))


async def delete(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Delete a glossary."""
    await store.remove(_id(request))
    return NO_CONTENT


async def create_v3(store: GlossaryStore, _: Request, new: StoredGlossary) -> Answer:
    """Create a glossary with a dictionary for each of several language pairs."""
    await store.add(new)
    return json_answer(glossaries.multilingual_json(new.outline), 201)


async def list_v3(store: GlossaryStore, *_: object) -> Answer:
    """List all glossaries."""
    found = [each for each in await store.all() if each.style is None]
    return json_answer({"glossaries": [glossaries.multilingual_json(each) for each in found]})


async def describe_v3(store: GlossaryStore, request: Request, _: None) -> Answer:
    """Get the properties of a glossary."""
    return json_answer(glossaries.multilingual_json(_checked(await store.get(_id(request))).outline))


async def change_v3(store: GlossaryStore, request: Request, change: Change) -> Answer:
    """Rename a glossary, or add entries to one of its dictionaries."""
    changed = await store.change(_id(request), lambda glossary: change(_checked(glossary)))
    return json_answer(glossaries.multilingual_json(changed.outline))


async def entries_v3(store: GlossaryStore, request: Request, pair: Pair) -> Answer:
    """Get the entries of one dictionary of a glossary."""
    return json_answer(glossaries.entries_json((await store.get(_id(request))).dictionary(*pair)))


async def replace_dictionary(store: GlossaryStore, request: Request, new: Dictionary) -> Answer:
    """Replace the dictionary of a language pair, or add one."""
    await store.change(_id(request), lambda glossary: _checked(glossary).with_dictionary(new))
    return json_answer(glossaries.dictionary_json(new.outline))


async def delete_dictionary(store: GlossaryStore, request: Request, pair: Pair) -> Answer:
    """Delete one dictionary of a glossary."""
    await store.change(_id(request), lambda glossary: glossary.without_dictionary(*pair))
    return NO_CONTENT


def _checked(found: StoredGlossary) -> StoredGlossary:
    """A glossary; a list of style rules, which the store keeps too, is none."""
    if found.style is not None:
        raise unknown()
    return found


def _id(request: Request) -> str:
    return request.variables["glossary_id"]


def nothing(_: Fields) -> None:
    """Of a request whose path has all that counts."""


def stored(
    method: str,
    path: str,
    read: Callable[[Fields], Value],
    act: Callable[[GlossaryStore, Request, Value], Awaitable[Answer]],
    shape: type | None = None,
) -> Endpoint:
    """A request that is answered over the store.

    Args:
        method: Of the request.
        path: See `Endpoint`.
        read: Reads the fields of the request.
        act: Answers with what was read; the first line of its docstring describes the endpoint.
        shape: Type of the body, or of the query.
    """

    def handle(request: Request) -> Callable[[GlossaryStore], Awaitable[Answer]]:
        value = read(bounded_fields(request))
        return lambda store: act(store, request, value)

    has_body = method in ("POST", "PUT", "PATCH")
    operation = Operation(
        (act.__doc__ or "").partition("\n")[0],
        {JSON_TYPE: shape} if has_body else {},
        None if has_body else shape,
    )
    return Endpoint(
        API, EndpointKind.GLOSSARIES, path, frozenset({method}), handle=handle, operation=operation
    )


def _endpoints() -> Iterator[Endpoint]:
    all_of_v2, one_of_v2 = "/v2/glossaries", "/v2/glossaries/{glossary_id}"
    all_of_v3, one_of_v3 = "/v3/glossaries", "/v3/glossaries/{glossary_id}"
    dictionaries = f"{one_of_v3}/dictionaries"
    pair, dictionary = glossaries.read_pair, glossaries.read_dictionary
    yield stored("POST", all_of_v2, glossaries.read_monolingual, create_v2, types.GlossaryShape)
    yield stored("GET", all_of_v2, nothing, list_v2)
    yield stored("GET", one_of_v2, nothing, describe_v2)
    yield stored("GET", f"{one_of_v2}/entries", nothing, entries_v2)
    yield stored("DELETE", one_of_v2, nothing, delete)
    yield stored("POST", all_of_v3, glossaries.read_multilingual, create_v3, types.MultilingualShape)
    yield stored("GET", all_of_v3, nothing, list_v3)
    yield stored("GET", one_of_v3, nothing, describe_v3)
    yield stored("PATCH", one_of_v3, glossaries.read_change, change_v3, types.ChangeShape)
    yield stored("DELETE", one_of_v3, nothing, delete)
    yield stored("GET", f"{one_of_v3}/entries", pair, entries_v3, types.PairShape)
    yield stored("PUT", dictionaries, dictionary, replace_dictionary, types.DictionaryShape)
    yield stored("DELETE", dictionaries, pair, delete_dictionary, types.PairShape)


ENDPOINTS = tuple(_endpoints())
