"""Which store a pod keeps its callers' glossaries in."""

from __future__ import annotations

import logging
from pathlib import Path

from dragoman_protocols.errors import GlossaryStoreError
from dragoman_protocols.glossaries.directory import DirectoryStore
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_service.errors import SettingsError

log = logging.getLogger(__name__)


def open_store(asked: Path | None, cache_dir: Path | None) -> GlossaryStore:
    """The directory that was asked for, else one under the cache directory, else memory, which is logged.

    Args:
        asked: Directory of glossaries, if one was named.
        cache_dir: The pod's cache directory, if it has one.

    Raises:
        SettingsError: The directory that was named cannot be used.
    """
    if asked is not None:
        try:
            return DirectoryStore(asked)
        except GlossaryStoreError as error:
            raise SettingsError(f"--glossary-dir: {error}") from error
    why = "no --glossary-dir and no --cache-dir is set"
    if cache_dir is not None:
        try:
            return DirectoryStore(cache_dir / "glossaries")
        except GlossaryStoreError as error:
            why = str(error)
    log.info("glossaries are kept in memory and end with this pod: %s", why)
    return MemoryStore()
