"""Which store a router keeps callers' glossaries in."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from pathlib import Path

from dragoman_protocols.errors import GlossaryStoreError
from dragoman_protocols.glossaries.directory import DirectoryStore
from dragoman_router.errors import SettingsError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.glossaries.shared import PackedStore, SharedGlossaries
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)


async def open_glossaries(settings: Settings, fleet: Fleet, stack: AsyncExitStack) -> SharedGlossaries:
    """The glossaries in the directory, or in the namespace, that the settings name.

    Args:
        settings: One of the two is set.
        fleet: Whose pairs can have glossaries.
        stack: Closes what is opened.

    Raises:
        SettingsError: The directory cannot be used.
        ClusterError: No cluster is named, or its credentials cannot be read.
    """
    if settings.glossary_dir is not None:
        return SharedGlossaries(_in_directory(settings.glossary_dir), fleet)
    return SharedGlossaries(await _in_cluster(settings.glossary_namespace or "", stack), fleet)


def _in_directory(directory: Path) -> PackedStore:
    try:
        store = DirectoryStore(directory)
    except GlossaryStoreError as error:
        raise SettingsError(f"--glossary-dir: {error}") from error
    log.info("glossaries are in the directory %s", directory)
    return store


async def _in_cluster(namespace: str, stack: AsyncExitStack) -> PackedStore:
    # Imported only where it is wanted: the client brings 20 MB along.
    from kubernetes.aio import client

    from dragoman_router.fleet.cluster import configuration
    from dragoman_router.glossaries.kubernetes_glossaries import ConfigMapStore

    api = await stack.enter_async_context(client.ApiClient(await configuration()))
    log.info("glossaries are ConfigMaps in the namespace %s", namespace)
    return ConfigMapStore(api, namespace)
