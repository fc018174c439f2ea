"""Glossaries that routers brought to this pod, for as long as there is room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from dragoman_contract.glossaries import MOST_DOCUMENT_BYTES, unpack
from dragoman_protocols.errors import GlossaryMissingError
from dragoman_protocols.glossaries.document import read
from dragoman_protocols.glossaries.values import StoredGlossary

MOST_HELD_BYTES = 5 * MOST_DOCUMENT_BYTES
"""Of their documents; as values they take up to ten times as much. One request names up to five, which all have to be
there at once; most have some kilobytes."""


class HeldGlossaries:
    """Glossaries by revision; those that were not used for longest make room. Used from the event loop alone.

    Args:
        most_bytes: Of all documents together; the newest is held in any case.
    """

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: OrderedDict[str, tuple[StoredGlossary, int]] = OrderedDict()
        self._bytes = 0

    async def put(self, revision: str, content: bytes) -> None:
        """Hold one more.

        Args:
            revision: What it is named by.
            content: As `dragoman_contract.glossaries` packs it.

        Raises:
            ValueError: It is no glossary, or another than `revision` says.
        """
        if revision in self._held:
            self._held.move_to_end(revision)
            return
        glossary, size_bytes = await asyncio.to_thread(_read, revision, content)
        if revision in self._held:
            return  # Another router was faster.
        self._held[revision] = glossary, size_bytes
        self._bytes += size_bytes
        while self._bytes > self._most_bytes and len(self._held) > 1:
            _, (_, gone_bytes) = self._held.popitem(last=False)
            self._bytes -= gone_bytes

    def get(self, revision: str) -> StoredGlossary:
        """One of them.

        Raises:
            GlossaryMissingError: It is not, or no longer, held.
        """
        found = self._held.get(revision)
        if found is None:
            raise GlossaryMissingError("this replica does not have the glossary yet; ask again")
        self._held.move_to_end(revision)
        return found[0]


def _read(revision: str, content: bytes) -> tuple[StoredGlossary, int]:
    document = unpack(content, revision)
    return read(document), len(document)
