"""Glossaries that routers brought."""

import asyncio
import uuid
from datetime import UTC, datetime

import pytest

from dragoman_contract.glossaries import Packed, pack
from dragoman_protocols.errors import GlossaryMissingError
from dragoman_protocols.glossaries.document import written
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary
from dragoman_service.http.held_glossaries import HeldGlossaries

MADE = datetime(2026, 11, 1, tzinfo=UTC)


def make_packed(name: str) -> tuple[StoredGlossary, Packed]:
    dictionaries = (Dictionary("en", "de", (Entry("cat", "Katze"),)),)
    glossary = StoredGlossary(str(uuid.uuid4()), name, MADE, dictionaries)
    return glossary, pack(glossary.glossary_id, written(glossary))


async def test_what_was_brought_is_held() -> None:
    held = HeldGlossaries()
    glossary, packed = make_packed("Animals")
    with pytest.raises(GlossaryMissingError, match="does not have the glossary yet"):
        held.get(packed.revision)
    await asyncio.gather(*(held.put(packed.revision, packed.content) for _ in range(3)))
    assert held.get(packed.revision) == glossary
    assert held.get(packed.revision) is held.get(packed.revision)


async def test_what_was_not_used_for_longest_makes_room() -> None:
    made = [make_packed(f"{number}") for number in range(4)]
    size = len(written(made[0][0]))
    held = HeldGlossaries(most_bytes=3 * size)
    for _, packed in made[:3]:
        await held.put(packed.revision, packed.content)
    held.get(made[0][1].revision)
    await held.put(made[2][1].revision, made[2][1].content)
    await held.put(made[3][1].revision, made[3][1].content)
    with pytest.raises(GlossaryMissingError):
        held.get(made[1][1].revision)
    for glossary, packed in (made[0], made[2], made[3]):
        assert held.get(packed.revision) == glossary


async def test_one_that_is_larger_than_all_may_be_is_held_alone() -> None:
    held = HeldGlossaries(most_bytes=1)
    first, second = make_packed("first")[1], make_packed("second")[1]
    for each in (first, second):
        await held.put(each.revision, each.content)
    held.get(second.revision)
    with pytest.raises(GlossaryMissingError):
        held.get(first.revision)


async def test_what_is_none_is_not_held() -> None:
    held = HeldGlossaries()
    no_glossary = pack(str(uuid.uuid4()), b'{"name": "x"}')
    for revision, content in ((no_glossary.revision, no_glossary.content), ("0" * 64, no_glossary.content)):
        with pytest.raises(ValueError, match=r"validation errors|not what the revision says"):
            await held.put(revision, content)
        with pytest.raises(GlossaryMissingError):
            held.get(revision)
