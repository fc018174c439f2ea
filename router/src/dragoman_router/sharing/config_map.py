"""The ConfigMap in which routers share what keys have used: read whole, written only where it is as it was read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes.aio import client

from dragoman_router.errors import ClusterError, ClusterRefusedError

REQUEST_TIMEOUT_S = 5.0
NOT_FOUND, CONFLICT, TOO_MANY = 404, 409, 429


@dataclass(frozen=True, slots=True)
class Found:
    """What was read.

    Args:
        version: Of the object.
        data: Its entries.
    """

    version: str
    data: Mapping[str, str]


class ConfigMap:
    """One ConfigMap, which need not be there yet.

    Args:
        api: An open client.
        name: NAMESPACE/NAME.
    """

    def __init__(self, api: client.ApiClient, name: str) -> None:
        self._core = client.CoreV1Api(api)
        self._namespace, _, self._name = name.partition("/")
        self._metadata = self._bare = client.V1ObjectMeta(name=self._name, namespace=self._namespace)

    async def read(self) -> Found | None:
        """As it is now; None where there is none.

        Raises:
            ClusterError: Nobody knows.
        """
        try:
            found = await self._asked(self._core.read_namespaced_config_map(self._name, self._namespace))
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                self._metadata = self._bare
                return None
            raise self._failed("read", error) from error
        # Labels and annotations are somebody's.
        self._metadata = found.metadata
        return Found(found.metadata.resource_version, found.data or {})

    async def write(self, base: str | None, data: Mapping[str, str]) -> str | None:
        """Replace what was read.

        Args:
            base: The version that has to be there; None where there has to be none.
            data: All entries.

        Returns:
            The version now; None where another was there, and nothing was written.

        Raises:
            ClusterError: It may have been written, or not.
        """
        body = client.V1ConfigMap(metadata=self._metadata, data=dict(data))
        try:
            if base is None:
                made = self._core.create_namespaced_config_map(self._namespace, body)
            else:
                made = self._core.replace_namespaced_config_map(self._name, self._namespace, body)
            written = await self._asked(made)
        except client.ApiException as error:
            if error.status == CONFLICT or (base is not None and error.status == NOT_FOUND):
                return None
            raise self._failed("create" if base is None else "update", error) from error
        self._metadata = written.metadata
        return str(written.metadata.resource_version)

    async def _asked(self, asking: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                return await asking
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            reason = f"{type(error).__name__} {error}".strip()[:200]
            raise ClusterError(f"ConfigMap {self._namespace}/{self._name}: {reason}") from error

    def _failed(self, verb: str, error: client.ApiException) -> ClusterError:
        said = f"cannot {verb} ConfigMap {self._namespace}/{self._name}: {error.status} {error.reason}"
        definite = error.status is not None and 400 <= error.status < 500 and error.status != TOO_MANY
        if definite:
            return ClusterRefusedError(f"{said}; the router's Role has to allow get, create and update")
        return ClusterError(said)
