"""Documents are kept until they are fetched, for a while and up to a size."""

from typing import Any

import pytest

from dragoman_contract.routing import new_document_id
from dragoman_protocols.documents import DELIVERED_KEPT_S, KEPT_S, Document, State
from dragoman_protocols.errors import DocumentNotDoneError, UnknownDocumentError
from dragoman_service.http.documents import MAX_DOCUMENTS, DocumentStore
from dragoman_service.http.lifecycle import Unfetched


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def document(api: str = "native") -> Document:
    return Document(new_document_id(None), api, "a.txt", "de", state=State.TRANSLATING)


def done(store: DocumentStore, content: bytes, **fields: Any) -> Document:
    made = document(**fields)
    store.add(made)
    store.done(made, content)
    return made


def is_known(store: DocumentStore, wanted: Document) -> bool:
    try:
        return store.find(wanted.api, str(wanted.id)) is wanted
    except UnknownDocumentError:
        return False


def test_a_result_is_kept_for_its_time_and_may_be_fetched_again() -> None:
    clock = Clock()
    unfetched = Unfetched()
    store = DocumentStore(unfetched, clock=clock)
    kept = done(store, b"abc")
    assert len(unfetched) == 1
    clock.now_s += KEPT_S - 0.1
    assert is_known(store, kept)
    assert [store.result(kept) for _ in range(2)] == [b"abc"] * 2
    assert len(unfetched) == 1, "a delivery that broke is no delivery"
    clock.now_s += 0.1
    assert not is_known(store, kept)
    assert len(unfetched) == 0


def test_a_delivered_result_is_kept_for_a_shorter_time() -> None:
    clock = Clock()
    unfetched = Unfetched()
    store = DocumentStore(unfetched, clock=clock)
    kept = done(store, b"abc")
    store.delivered(kept)
    assert len(unfetched) == 0
    clock.now_s += DELIVERED_KEPT_S - 1
    assert store.result(kept) == b"abc"
    store.delivered(kept)
    clock.now_s += 1
    assert not is_known(store, kept)


def test_results_beyond_the_maximum_are_dropped_the_delivered_ones_first() -> None:
    store = DocumentStore(Unfetched(), max_bytes=10)
    first, second = done(store, b"1234"), done(store, b"1234")
    store.delivered(second)
    third = done(store, b"1234")
    assert [is_known(store, each) for each in (first, second, third)] == [True, False, True]
    last = done(store, b"x" * 11)
    assert [is_known(store, each) for each in (first, third, last)] == [False, False, True]


def test_the_oldest_that_has_ended_is_dropped_and_none_that_is_translated() -> None:
    store = DocumentStore(Unfetched())
    working = document()
    store.add(working)
    ended = [done(store, b"") for _ in range(MAX_DOCUMENTS - 1)]
    store.add(document())
    assert [is_known(store, each) for each in (working, ended[0], ended[1])] == [True, False, True]


def test_a_document_is_found_by_its_own_api_alone_in_any_form_of_its_id() -> None:
    store = DocumentStore(Unfetched())
    kept = done(store, b"a", api="deepl")
    for form in (str(kept.id), kept.id.hex, kept.id.hex.upper()):
        assert store.find("deepl", form) is kept
        with pytest.raises(UnknownDocumentError):
            store.find("native", form)
    with pytest.raises(UnknownDocumentError):
        store.find("deepl", "no id")


def test_a_cancelled_document_has_no_result_and_stays_known() -> None:
    unfetched = Unfetched()
    store = DocumentStore(unfetched)
    kept = done(store, b"abc")
    store.cancel(kept)
    assert (kept.state, kept.share, len(unfetched)) == (State.CANCELLED, 1.0, 0)
    with pytest.raises(DocumentNotDoneError):
        store.result(kept)
    assert is_known(store, kept)
