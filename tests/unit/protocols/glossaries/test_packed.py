"""How routers and pods hand each other glossaries."""

import gzip
import uuid

import pytest

from dragoman_protocols.glossaries import packed as glossaries
from dragoman_protocols.glossaries.packed import Packed, named, pack, revisions, unpack

ID = str(uuid.uuid4())
DOCUMENT = '{"name": "Grüße"}'.encode()
PACKED = gzip.compress(DOCUMENT, mtime=0)


def test_what_is_packed_is_named_by_what_it_holds() -> None:
    packed = pack(ID, DOCUMENT)
    assert packed == pack(ID, DOCUMENT)
    assert unpack(packed.content, packed.revision) == unpack(packed.content) == DOCUMENT
    assert pack(ID, DOCUMENT + b" ").revision != packed.revision
    assert len(packed.revision) == 64


@pytest.mark.parametrize(
    ("content", "revision", "words"),
    [
        (b"no gzip", None, "not gzip"),
        (b"", None, "ends too early"),
        (PACKED[:-4], None, "ends too early"),
        (PACKED + b"x", None, "something follows"),
        (PACKED, "0" * 64, "does not have this revision"),
        (PACKED, "ß", "does not have this revision"),
    ],
    ids=["text", "nothing", "cut", "followed", "other revision", "no revision"],
)
def test_what_is_not_packed_so_is_refused(content: bytes, revision: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        unpack(content, revision)


def test_little_that_unpacks_to_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries, "MAX_DOCUMENT_BYTES", 1000)
    assert unpack(gzip.compress(bytes(1000))) == bytes(1000)
    with pytest.raises(ValueError, match="more than 1000 bytes unpacked"):
        unpack(gzip.compress(bytes(1001)))


def test_a_header_names_what_it_is_made_of() -> None:
    packed = [Packed(str(uuid.uuid4()), f"{number:064x}", b"") for number in range(5)]
    header = named(packed)
    assert revisions(header) == {each.glossary_id: each.revision for each in packed}


@pytest.mark.parametrize("header", [None, "", ",", "a", "a=", "=b", " , a , b "])
def test_a_header_that_names_nothing_is_as_none(header: str | None) -> None:
    assert revisions(header) == {}
