"""HEAD works wherever GET does, on pods and on routers in front of them: the same head, and no body."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, START_CACHE_PATH, STARTUP_PATH
from dragoman_protocols.routes import ENDPOINTS
from dragoman_router.routing.deployments import Replica

CONTROL = (LIVE_PATH, READY_PATH, STARTUP_PATH, METRICS_PATH, "/docs")
PATHS = sorted({each.path for each in ENDPOINTS if "GET" in each.methods})
QUERIES = {
    "/language/translate/v2": "?q=Hello&target=de",
    "/language/translate/v2/detect": "?q=Hello",
}
OF_ONE_ANSWER = (b"date", b"content-length", b"transfer-encoding", b"x-dragoman-", b"x-requestid")
"""Headers that may differ between two answers to GET."""
DEADLINE_S = 30


async def answered(port: int, method: str, target: str) -> tuple[bytes, list[bytes], bytes]:
    """Status line, headers and body, on a connection of its own."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    status, *headers = head.lower().split(b"\r\n")
    return status, sorted(each for each in headers if not each.startswith(OF_ONE_ANSWER)), body


async def heads_are_as_of_get(port: int, paths: list[str]) -> None:
    for path in paths:
        target = path.replace("{", "").replace("}", "") + QUERIES.get(path, "")
        status, headers, body = await answered(port, "GET", target)
        found = await answered(port, "HEAD", target)
        assert found == (status, headers, b""), target
        assert body, target
        assert b" 405 " not in status, target


def test_of_a_pod(start_scripted: Any) -> None:
    pod = start_scripted()
    pod.wait_for("/readyz")
    paths = [*PATHS, *CONTROL, START_CACHE_PATH + "0123"]
    asyncio.run(heads_are_as_of_get(pod.port, paths))


async def test_of_a_router_in_front_of_it(router: Any, start_scripted: Any) -> None:
    pod = await asyncio.to_thread(start_scripted)
    await asyncio.to_thread(pod.wait_for, "/readyz")
    router.serve("a", Replica(name="a", host="127.0.0.1", port=pod.port, uid="a"))
    await heads_are_as_of_get(router.port, PATHS)
