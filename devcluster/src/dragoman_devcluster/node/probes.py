"""Probes of a running container and its hooks: HTTP requests and commands, and what their results mean."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

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
    except (OSError, ValueError, aiohttp.ClientError) as error:
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


@dataclass(frozen=True)
class Health:
    """Health of a running container, from its probes."""

    started: bool = False
    ready: bool = False

    @classmethod
    def at_start(cls, container: Manifest) -> Health:
        """The state before any probe: without a probe, a container is healthy."""
        started = "startupProbe" not in container
        return cls(started, started and "readinessProbe" not in container)


class Probed(Protocol):
    """The container that is probed."""

    def set_health(self, health: Health) -> None:
        """Record the container's health."""

    def report(self, reason: str, message: str) -> None:
        """Write a warning event."""

    def restart(self, grace_s: float, message: str) -> None:
        """End the container's process, so that it is started again."""


async def run_probes(container: Manifest, target: Target, probed: Probed, grace_s: float) -> None:
    """Run the startup probe, then the others, until cancelled or the container has to end.

    `grace_s` is the pod's termination grace period.
    """
    if "startupProbe" in container:
        if not await _passes(container, "Startup", target, probed, grace_s):
            return
        probed.set_health(Health(started=True, ready="readinessProbe" not in container))
    checks: list[Coroutine[Any, Any, object]] = []
    if "readinessProbe" in container:
        checks.append(_follow_readiness(container, target, probed))
    if "livenessProbe" in container:
        checks.append(_passes(container, "Liveness", target, probed, grace_s))
    await asyncio.gather(*checks)


async def _follow_readiness(container: Manifest, target: Target, probed: Probed) -> None:
    ready = False
    async for failure, verdict in results(container["readinessProbe"], target):
        if failure is not None:
            probed.report("Unhealthy", f"Readiness probe failed: {failure}")
        if verdict is not None and verdict != ready:
            ready = verdict
            probed.set_health(Health(started=True, ready=ready))


async def _passes(container: Manifest, kind: str, target: Target, probed: Probed, grace_s: float) -> bool:
    """Whether the startup probe has succeeded; False once the container has to be restarted."""
    async for failure, verdict in results(container[f"{kind.lower()}Probe"], target):
        if kind == "Startup" and verdict:
            return True
        if failure is not None:
            probed.report("Unhealthy", f"{kind} probe failed: {failure}")
        if verdict is False:
            message = f"Container {container['name']} failed {kind.lower()} probe, will be restarted"
            probed.restart(grace_s, message)
            return False
    return False
