"""What every store of glossaries does: tests that a test module inherits, with a fixture `stores` of its own.

`stores` are two views of one store, as two routers, two pods or two callers have them.
"""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman_protocols.errors import InvalidFieldError, InvalidGlossaryError, UnknownGlossaryError
from dragoman_protocols.glossaries.values import Dictionary, Entry, StoredGlossary

MADE = datetime(2026, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_glossary(name: str = "Animals", age_s: float = 0) -> StoredGlossary:
    dictionary = Dictionary("en", "de", (Entry("cat", "Katze"), Entry("🪨", "Stein")))
    return StoredGlossary(str(uuid.uuid4()), name, MADE - timedelta(seconds=age_s), (dictionary,))


class StoreContract:
    async def test_what_one_adds_is_there_for_the_other_until_it_is_removed(self, stores: Any) -> None:
        one, other = stores
        young, old = make_glossary("young"), make_glossary("old", age_s=60)
        for glossary in (young, old):
            await one.add(glossary)
            assert await other.get(glossary.glossary_id) == glossary
            assert await other.get(glossary.glossary_id.upper()) == glossary
        assert list(await other.all()) == [old.outline, young.outline]
        await one.remove(young.glossary_id)
        assert list(await other.all()) == [old.outline]
        for lookup in (other.get, other.remove):
            with pytest.raises(UnknownGlossaryError):
                await lookup(young.glossary_id)

    @pytest.mark.parametrize(
        "glossary_id", ["", "../../etc/passwd", "a/../b", "a\x00", "9" * 31, "\ud800" * 32]
    )
    async def test_only_uuids_are_ids(self, stores: Any, glossary_id: str) -> None:
        for lookup in (stores[0].get, stores[0].remove):
            with pytest.raises(InvalidFieldError, match="glossary_id"):
                await lookup(glossary_id)

    async def test_changes_side_by_side_are_all_kept(self, stores: Any) -> None:
        glossary = make_glossary()
        await stores[0].add(glossary)

        async def add(number: int) -> None:
            new = Dictionary("en", "de", (Entry(f"term {number}", "x"),))
            await stores[number % 2].change(glossary.glossary_id, lambda known: known.with_entries(new))

        await asyncio.gather(*map(add, range(12)))
        assert len((await stores[0].get(glossary.glossary_id)).dictionary("en", "de").entries) == 14

    async def test_a_change_that_fails_changes_nothing(self, stores: Any) -> None:
        glossary = make_glossary()
        await stores[0].add(glossary)
        with pytest.raises(InvalidGlossaryError):
            await stores[0].change(glossary.glossary_id, lambda known: known.renamed(""))
        assert await stores[1].get(glossary.glossary_id) == glossary
        with pytest.raises(UnknownGlossaryError):
            await stores[0].change(str(uuid.uuid4()), lambda known: known)
