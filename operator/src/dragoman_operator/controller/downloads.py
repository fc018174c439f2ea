"""Progress of the init containers that download models, read from the pods themselves.

The API server knows that an init container runs, and no more. To read its log takes the right to read the logs of all
pods, which hold more than this; to write its progress somewhere, the pod would need a right and a token. The port is
that at which engines are scraped; the pods' NetworkPolicies open it to the operator.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp

from dragoman_contract.http import ENGINE_PORT, STARTUP_PATH
from dragoman_kube.objects import Key, is_deleting, uid_of
from dragoman_operator.api.labels import FETCH_CONTAINER
from dragoman_operator.observed.snapshot import Download, Manifest
from dragoman_operator.scraping.pods import read_body

log = logging.getLogger(__name__)

INTERVAL_S = 10.0
"""Each change of an object's progress is a write of its status."""
MAX_CONCURRENT = 64
MAX_BYTES = 1 << 14
MAX_CHARS = 120


class Downloads:
    """Reads the progress of all pods that download.

    Args:
        pods: Dragoman's engine pods, by object, regardless of their owner.
        enqueue: Called with the object whose progress has changed.
        timeout_s: Of one pod.

    Attributes:
        progress: By the pod's uid.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        pods: Callable[[], Iterable[tuple[Key, Manifest]]],
        enqueue: Callable[[Key], None],
        timeout_s: float,
        port: int = ENGINE_PORT,
    ) -> None:
        self._http = http
        self._pods = pods
        self._enqueue = enqueue
        self._timeout_s = timeout_s
        self._port = port
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self.progress: dict[str, Download] = {}

    async def run(self) -> None:
        """Read at an interval until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            await self.read()

    async def read(self) -> None:
        """Read the progress of every pod that downloads now, concurrently."""
        found = {uid_of(pod): (key, pod) for key, pod in self._pods() if is_downloading(pod)}
        self.progress = {uid: download for uid, download in self.progress.items() if uid in found}
        await asyncio.gather(*(self._read(uid, key, pod) for uid, (key, pod) in found.items()))

    async def _read(self, uid: str, key: Key, pod: Manifest) -> None:
        address = pod["status"]["podIP"]
        host = f"[{address}]" if ":" in address else address
        try:
            async with self._slots, asyncio.timeout(self._timeout_s):
                url = f"http://{host}:{self._port}{STARTUP_PATH}"
                async with self._http.get(url, allow_redirects=False) as response:
                    download = download_of(await read_body(response, MAX_BYTES))
        except Exception as error:
            # The answer may be of any program: a malformed one must not end the operator.
            log.debug("no progress of %s: %s", pod["metadata"]["name"], error, extra={"key": str(key)})
            return
        if self.progress.get(uid) != download:
            self.progress[uid] = download
            self._enqueue(key)


def is_downloading(pod: Manifest) -> bool:
    """Whether the pod's init container downloads the model now."""
    status: Any = pod.get("status") or {}
    return (
        not is_deleting(pod)
        and bool(status.get("podIP"))
        and any(
            container.get("name") == FETCH_CONTAINER and "running" in (container.get("state") or {})
            for container in status.get("initContainerStatuses") or ()
        )
    )


def download_of(page: bytes) -> Download:
    """The progress in a pod's answer, which may be of any program: one line of bounded length.

    Raises:
        ValueError: It has none.
    """
    found = json.loads(page)
    sentence = found.get("reason") if isinstance(found, dict) else None
    if not isinstance(sentence, str):
        raise ValueError("no progress in the answer")
    ratio = found.get("progress")
    return Download(
        "".join(each for each in sentence if each.isprintable())[:MAX_CHARS],
        float(ratio) if isinstance(ratio, int | float) and 0 <= ratio <= 1 else None,
    )
