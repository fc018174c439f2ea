"""Router processes that share keys' usage through the API server: told apart, killed, restarted, ended."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, CoreV1Api

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

KEY = {"Authorization": "DeepL-Auth-Key a-secret-of-alice"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Router:
    """One `dragoman router` process."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.port, self.admin_port, self.log = free_port(), free_port(), log
        ports = [f"--port={self.port}", f"--admin-port={self.admin_port}"]
        with log.open("ab") as output:
            self.process = subprocess.Popen([*command, *ports], env=environment, stdout=output, stderr=output)

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                assert self.process.poll() is None, self.log.read_text()
                try:
                    async with (
                        aiohttp.ClientSession() as http,
                        http.get(f"http://127.0.0.1:{self.port}/v2/usage", headers=KEY),
                    ):
                        return
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    async def translate(self, characters: int) -> tuple[int, Any]:
        body = {"text": ["x" * characters], "source_lang": "EN", "target_lang": "DE"}
        url = f"http://127.0.0.1:{self.port}/v2/translate"
        async with aiohttp.ClientSession(headers=KEY) as http, http.post(url, json=body) as answer:
            return answer.status, await answer.json()

    async def used(self) -> int:
        url = f"http://127.0.0.1:{self.port}/v2/usage"
        async with aiohttp.ClientSession(headers=KEY) as http, http.get(url) as answer:
            said = await answer.json()
            assert said["character_limit"] == 100
            return int(said["character_count"])

    async def until_used(self, characters: int) -> None:
        async with asyncio.timeout(20):
            while (said := await self.used()) != characters:
                assert said <= characters
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        """Without any chance to publish."""
        self.process.kill()
        self.process.wait()

    async def end(self) -> int:
        self.process.terminate()
        return await asyncio.to_thread(self.process.wait, 30)


@pytest.fixture
async def replica() -> AsyncIterator[int]:
    """The port of something that answers every translation."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"translations": []})

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
def start(cluster: Any, namespace: str, replica: int, tmp_path: Path) -> Iterator[Callable[..., Router]]:
    """Start a router on the cluster's API, with one key of a hundred characters a month."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/alice").write_text('{"key": "a-secret-of-alice", "characterLimit": 100}')
    (tmp_path / "static.yaml").write_text(f'deployments: [{{name: a, replicas: ["127.0.0.1:{replica}"]}}]')
    command = [sys.executable, "-m", "dragoman", "router", f"--static={tmp_path}/static.yaml"]
    command += [f"--keys-dir={tmp_path}/keys", f"--usage-configmap={namespace}/usage", "--host=127.0.0.1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    environment["KUBECONFIG"] = str(cluster.kubeconfig)
    started: list[Router] = []

    def make(name: str, interval_s: float = 0.2) -> Router:
        flags = [f"--router-id={name}", f"--usage-interval-s={interval_s}", "--lame-duck-s=0"]
        started.append(Router([*command, *flags], environment, tmp_path / f"{name}.log"))
        return started[-1]

    yield make
    for each in started:
        if each.process.poll() is None:
            each.kill()


async def test_usage_and_quota_are_of_all_routers_and_outlive_each(
    start: Callable[..., Router], api: ApiClient, namespace: str
) -> None:
    one, two = start("one"), start("two")
    await asyncio.gather(one.ready(), two.ready())
    assert await one.translate(30) == (200, {"translations": []})
    assert (await two.translate(20))[0] == 200
    await asyncio.gather(one.until_used(50), two.until_used(50))

    one.kill()
    assert (await two.translate(10))[0] == 200
    await two.until_used(60)

    async def published() -> Any:
        data = (await CoreV1Api(api).read_namespaced_config_map("usage", namespace)).data
        (period,) = [entry for entry in data if entry != "routers"]
        assert "secret" not in json.dumps(data)
        return json.loads(data[period])

    async with asyncio.timeout(20):
        while await published() != {"alice": [60, 3]}:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)

    again = start("one")
    await again.ready()
    assert await again.used() == 60, "known before the first request is answered"
    assert (await again.translate(40))[0] == 200
    await two.until_used(100)
    status, said = await two.translate(1)
    assert status == 456
    assert "100 of 100" in said["message"]
    # Every run has an entry, the killed one's included; none is counted twice.
    assert await published() == {"alice": [100, 4]}

    assert await two.end() == 0
    assert "Traceback" not in two.log.read_text()
    data = (await CoreV1Api(api).read_namespaced_config_map("usage", namespace)).data
    assert not [run for run in json.loads(data["routers"]) if run.startswith("two.")]


async def test_an_orderly_end_loses_nothing(start: Callable[..., Router]) -> None:
    ending = start("ending", interval_s=60)
    await ending.ready()
    assert (await ending.translate(30))[0] == 200
    assert await ending.end() == 0
    after = start("after")
    await after.ready()
    assert await after.used() == 30
    assert "keys' usage is shared in ConfigMap" in after.log.read_text()


async def test_an_object_that_was_deleted_comes_back(
    start: Callable[..., Router], api: ApiClient, namespace: str
) -> None:
    one, two = start("one"), start("two")
    await asyncio.gather(one.ready(), two.ready())
    await one.translate(30)
    await two.until_used(30)
    await CoreV1Api(api).delete_namespaced_config_map("usage", namespace)
    await two.translate(5)
    await asyncio.gather(one.until_used(35), two.until_used(35))
