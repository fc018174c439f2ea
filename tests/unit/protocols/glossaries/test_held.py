"""Glossaries that routers attached."""

import asyncio
import uuid
from datetime import UTC, datetime

import pytest

from dragoman_protocols.errors import GlossaryMissingError
from dragoman_protocols.glossaries.packed import Packed, pack
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary, written
from dragoman_service.http.glossaries import AttachedGlossaries

MADE = datetime(2026, 11, 1, tzinfo=UTC)


def make_packed(name: str) -> tuple[StoredGlossary, Packed]:
    dictionaries = (Dictionary("en", "de", (Entry("cat", "Katze"),)),)
    glossary = StoredGlossary(str(uuid.uuid4()), name, MADE, dictionaries)
    return glossary, pack(glossary.glossary_id, written(glossary))


async def test_an_attached_glossary_is_kept() -> None:
    attached = AttachedGlossaries()
    glossary, packed = make_packed("Animals")
    with pytest.raises(GlossaryMissingError, match="does not have the glossary yet"):
        attached.get(packed.revision)
    await asyncio.gather(*(attached.put(packed.revision, packed.content) for _ in range(3)))
    assert attached.get(packed.revision) == glossary
    assert attached.get(packed.revision) is attached.get(packed.revision)


async def test_the_least_recently_used_is_dropped() -> None:
    made = [make_packed(f"{number}") for number in range(4)]
    size = len(written(made[0][0]))
    attached = AttachedGlossaries(max_bytes=3 * size)
    for _, packed in made[:3]:
        await attached.put(packed.revision, packed.content)
    attached.get(made[0][1].revision)
    await attached.put(made[2][1].revision, made[2][1].content)
    await attached.put(made[3][1].revision, made[3][1].content)
    with pytest.raises(GlossaryMissingError):
        attached.get(made[1][1].revision)
    for glossary, packed in (made[0], made[2], made[3]):
        assert attached.get(packed.revision) == glossary


async def test_content_that_is_no_glossary_is_not_kept() -> None:
    attached = AttachedGlossaries()
    no_glossary = pack(str(uuid.uuid4()), b'{"name": "x"}')
    for revision, content in ((no_glossary.revision, no_glossary.content), ("0" * 64, no_glossary.content)):
        with pytest.raises(ValueError, match=r"validation errors|does not have this revision"):
            await attached.put(revision, content)
        with pytest.raises(GlossaryMissingError):
            attached.get(revision)
