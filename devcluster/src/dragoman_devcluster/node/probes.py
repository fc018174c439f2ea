"""Probes of a running container and its hooks: HTTP requests and commands, and what their results mean."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from dragoman_devcluster.errors import StartFailedError
from dragoman_kube.objects import Manifest

Execute = Callable[[list[str]], Awaitable[tuple[int, str]]]
"""Runs a command in a container's surroundings; returns its exit code and output."""


@dataclass(frozen=True)
class Target:
    """What handlers of one container act on."""

    container: Manifest
    address: str
    session: aiohttp.ClientSession
    execute: Execute

    def port(self, port: int | str) -> int:
        """The number of a port given by number or name."""
        if isinstance(port, int) or port.isdigit():
            return int(port)
        for item in self.container.get("ports") or ():
            if item.get("name") == port:
                return int(item["containerPort"])
        raise ValueError(f"couldn't find port: {port!r}")


async def attempt(handler: Manifest, target: Target, timeout_s: float) -> str | None:
    """Try a handler (httpGet, exec or sleep) once; None for success, else what went wrong, as a kubelet words it."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _attempt(handler, target)
    except TimeoutError:
        return f"context deadline exceeded (no answer within {timeout_s:g} s)"
    except aiohttp.ClientConnectorError as error:
        why = os.strerror(error.os_error.errno) if error.os_error.errno else str(error.os_error)
        return f"connect to {error.host}:{error.port}: {why}"
    except (OSError, ValueError, aiohttp.ClientError, StartFailedError) as error:
        return str(error) or repr(error)


async def _attempt(handler: Manifest, target: Target) -> str | None:
    if "httpGet" in handler:
        return await _http_get(handler["httpGet"], target)
    if "exec" in handler:
        code, output = await target.execute(handler["exec"]["command"])
        return None if code == 0 else output.strip() or f"command exited with status {code}"
    if "sleep" in handler:
        await asyncio.sleep(handler["sleep"]["seconds"])
        return None
    return f"the local node does not know this handler: {', '.join(handler)}"


async def _http_get(get: Manifest, target: Target) -> str | None:
    host, port = get.get("host") or target.address, target.port(get["port"])
    scheme = (get.get("scheme") or "HTTP").lower()
    path = get.get("path") or "/"
    url = f"{scheme}://{host}:{port}{path if path.startswith('/') else '/' + path}"
    headers = {"User-Agent": "kube-probe/dragoman-local", "Accept": "*/*"}
    headers |= {item["name"]: item["value"] for item in get.get("httpHeaders") or ()}
    async with target.session.get(url, headers=headers, ssl=False, allow_redirects=False) as response:
        if 200 <= response.status < 400:
            return None
        return f"HTTP probe failed with statuscode: {response.status}"


async def results(probe: Manifest, target: Target) -> AsyncIterator[tuple[str | None, bool | None]]:
    """Probe repeatedly, at the intervals of the probe, which the API has filled in.

    Yields:
        What went wrong (None for success), and the verdict: True or False once as many results in a row as its
        threshold were alike, None before.
    """
    streak, succeeded = 0, False
    await asyncio.sleep(probe.get("initialDelaySeconds") or 0)
    while True:
        failure = await attempt(probe, target, probe["timeoutSeconds"])
        streak = streak + 1 if succeeded == (failure is None) else 1
        succeeded = failure is None
        threshold = probe["successThreshold" if succeeded else "failureThreshold"]
        yield failure, succeeded if streak >= threshold else None
        await asyncio.sleep(probe["periodSeconds"])
