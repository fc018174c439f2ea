"""The table of requests for glossaries, over a store in memory."""

import json
import uuid
from typing import Any
from urllib.parse import urlencode

import pytest

from dragoman_protocols.endpoints import EndpointKind
from dragoman_protocols.errors import InvalidFieldError, MethodNotAllowedError, UnknownGlossaryError
from dragoman_protocols.glossaries.store import MemoryStore
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.routes import recognise

PAIR = {"source_lang": "en", "target_lang": "de"}
ENTRIES = PAIR | {"entries": "cat\tKatze", "entries_format": "tsv"}


async def send(
    store: MemoryStore,
    method: str,
    path: str,
    body: Any = None,
    query: bytes = b"",
    accept: bytes = b"",
    is_form: bool = False,
) -> Answer:
    kind = b"application/x-www-form-urlencoded" if is_form else b"application/json"
    headers = [(b"content-type", kind)] + ([(b"accept", accept)] if accept else [])
    content = b"" if body is None else (urlencode(body) if is_form else json.dumps(body)).encode()
    request = Request(method, path, query, headers, content)
    endpoint = recognise(request)
    assert endpoint.kind is EndpointKind.GLOSSARIES
    assert endpoint.handle is not None
    return await endpoint.handle(request)(store)


async def test_a_glossary_of_one_pair_from_creation_to_deletion() -> None:
    store = MemoryStore()
    created = await send(store, "POST", "/v2/glossaries", {"name": "Animals", **ENTRIES})
    described = json.loads(created.body)
    assert (created.status, described["name"], described["entry_count"]) == (201, "Animals", 1)
    path = f"/v2/glossaries/{described['glossary_id']}"
    assert json.loads((await send(store, "GET", path)).body) == described
    assert json.loads((await send(store, "GET", "/v2/glossaries/")).body) == {"glossaries": [described]}
    entries = await send(store, "GET", f"{path}/entries")
    assert (entries.body, dict(entries.headers)["Content-Type"]) == (
        b"cat\tKatze",
        "text/tab-separated-values; charset=utf-8",
    )
    with pytest.raises(Exception, match="No supported media type"):
        await send(store, "GET", f"{path}/entries", accept=b"application/json")
    assert await send(store, "DELETE", path) == Answer(204, b"")
    with pytest.raises(UnknownGlossaryError):
        await send(store, "GET", path)


async def test_a_glossary_of_several_pairs_is_changed() -> None:
    store = MemoryStore()
    other = ENTRIES | {"target_lang": "fr", "entries": "cat\tchat"}
    created = await send(store, "POST", "/v3/glossaries", {"name": "A", "dictionaries": [ENTRIES, other]})
    path = f"/v3/glossaries/{json.loads(created.body)['glossary_id']}"
    renamed = json.loads((await send(store, "PATCH", path, {"name": "B"})).body)
    assert (renamed["name"], len(renamed["dictionaries"])) == ("B", 2)
    replaced = await send(store, "PUT", f"{path}/dictionaries", other | {"entries": "a\tb\nc\td"})
    assert json.loads(replaced.body)["entry_count"] == 2
    query = b"source_lang=EN&target_lang=FR"
    found = json.loads((await send(store, "GET", f"{path}/entries", query=query)).body)
    assert found["dictionaries"][0]["entries"] == "a\tb\nc\td"
    assert (await send(store, "DELETE", f"{path}/dictionaries", query=query)).status == 204
    (left,) = json.loads((await send(store, "GET", "/v3/glossaries")).body)["glossaries"]
    assert left["dictionaries"] == [{**PAIR, "entry_count": 1}]
    assert (await send(store, "DELETE", path)).status == 204


def indexed(index: int, dictionary: dict[str, str]) -> dict[str, str]:
    return {f"dictionaries[{index}].{name}": value for name, value in dictionary.items()}


async def test_forms_of_deepls_sdks_have_dictionaries_by_index() -> None:
    store = MemoryStore()
    other = ENTRIES | {"target_lang": "fr", "entries": "cat\tchat"}
    form = {"name": "A", **indexed(10, other), **indexed(2, ENTRIES)}
    created = await send(store, "POST", "/v3/glossaries", form, is_form=True)
    described = json.loads(created.body)
    assert created.status == 201
    assert [each["target_lang"] for each in described["dictionaries"]] == ["de", "fr"]
    path = f"/v3/glossaries/{described['glossary_id']}"
    await send(store, "PATCH", path, indexed(0, ENTRIES | {"entries": "dog\tHund"}), is_form=True)
    query = b"source_lang=en&target_lang=de"
    (found,) = json.loads((await send(store, "GET", f"{path}/entries", query=query)).body)["dictionaries"]
    assert found["entries"] == "cat\tKatze\ndog\tHund"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"dictionaries[0].source_lang": "en"}, "Parameter 'target_lang' not specified"),
        (indexed(0, ENTRIES) | indexed(1, ENTRIES), "Value for 'dictionaries' not supported"),
        ({"dictionaries": "x"}, "Value for 'dictionaries' not supported"),
        ({"dictionaries[0]": "x", "others[0].entries": "x", "dictionaries[1000].entries": "x"}, "must be"),
        ({"name": ""}, "Glossary name or dictionaries must be provided"),
    ],
)
async def test_a_change_by_a_form_that_cannot_be_made_is_refused(form: Any, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message):
        await send(MemoryStore(), "PATCH", f"/v3/glossaries/{uuid.UUID(int=0)}", form, is_form=True)


@pytest.mark.parametrize("body", [{}, {"name": None, "dictionaries": []}, {"renamed": "B"}])
async def test_a_change_of_nothing_is_refused(body: Any) -> None:
    with pytest.raises(InvalidFieldError, match="Glossary name or dictionaries must be provided"):
        await send(MemoryStore(), "PATCH", f"/v3/glossaries/{uuid.UUID(int=0)}", body)


async def test_a_glossary_may_begin_without_dictionaries() -> None:
    for fields in ({"name": "A"}, {"name": "A", "dictionaries": []}):
        made = await send(MemoryStore(), "POST", "/v3/glossaries", fields)
        assert (made.status, json.loads(made.body)["dictionaries"]) == (201, [])


async def test_wrong_requests_are_refused() -> None:
    store = MemoryStore()
    with pytest.raises(InvalidFieldError, match="invalid argument: glossary_id"):
        await send(store, "GET", "/v2/glossaries/x")
    with pytest.raises(InvalidFieldError, match="Parameter 'name' not specified"):
        await send(store, "POST", "/v2/glossaries", ENTRIES | {"name": ""})
    with pytest.raises(MethodNotAllowedError) as refused:
        await send(store, "PUT", "/v2/glossaries")
    assert refused.value.allowed == ("GET", "POST")
