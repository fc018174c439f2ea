"""Asking a container how it is: HTTP, TCP and commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from dragoman_devcluster.node.probe import ProbeTiming, Streak
from dragoman_kube.objects import Manifest

Execute = Callable[[list[str]], Awaitable[tuple[int, str]]]
"""Runs a command in a container's surroundings; returns its exit code and output."""


@dataclass(frozen=True)
class Target:
    """What handlers of one container act on.

    Args:
        container: The container of the pod's spec, for its named ports.
        address: The pod's address.
        session: HTTP client.
        execute: Runs commands.
    """

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
    """Try a probe's or hook's handler once.

    Args:
        handler: httpGet, tcpSocket, exec or sleep.
        target: The container in question.
        timeout_s: When to give up.

    Returns:
        None for success, else what went wrong, in the words of a kubelet.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await _attempt(handler, target)
    except TimeoutError:
        return f"context deadline exceeded (no answer within {timeout_s:g} s)"
    except aiohttp.ClientConnectorError as error:
        why = os.strerror(error.os_error.errno) if error.os_error.errno else str(error.os_error)
        return f"connect to {error.host}:{error.port}: {why}"
    except (OSError, ValueError, aiohttp.ClientError) as error:
        return str(error) or repr(error)


async def _attempt(handler: Manifest, target: Target) -> str | None:
    if "httpGet" in handler:
        return await _http_get(handler["httpGet"], target)
    if "tcpSocket" in handler:
        tcp = handler["tcpSocket"]
        host = tcp.get("host") or target.address
        _, writer = await asyncio.open_connection(host, target.port(tcp["port"]))
        writer.close()
        return None
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


@dataclass(frozen=True)
class ProbeResult:
    """One result of a probe.

    Args:
        failure: None for success, else what went wrong.
        verdict: True or False if this result settles how the container is, else None.
    """

    failure: str | None
    verdict: bool | None


async def results(probe: Manifest, target: Target) -> AsyncIterator[ProbeResult]:
    """Probe repeatedly, at the intervals of the probe."""
    timing = ProbeTiming.of(probe)
    streak = Streak()
    await asyncio.sleep(timing.initial_delay_s)
    while True:
        failure = await attempt(probe, target, timing.timeout_s)
        streak = streak.then(failure is None)
        yield ProbeResult(failure, streak.verdict(timing))
        await asyncio.sleep(timing.period_s)
