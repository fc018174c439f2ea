"""Router processes that share state: killed, restarted, ended, and refused."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.servers import ForkedProcess, bare_environment

from dragoman_devcluster.ports import free_port

KEY = {"Authorization": "DeepL-Auth-Key a-secret-of-alice"}


class Process:
    """One `dragoman router`."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.port, self.admin_port, self.log = free_port(), free_port(), log
        ports = [f"--port={self.port}", f"--admin-port={self.admin_port}"]
        self.process = ForkedProcess([*command, *ports], log, environment)

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                assert self.process.poll() is None, self.log.read_text()
                try:
                    await self.used()
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)
                else:
                    return

    async def translate(self, characters: int) -> tuple[int, Any]:
        body = {"text": ["x" * characters], "source_lang": "EN", "target_lang": "DE"}
        url = f"http://127.0.0.1:{self.port}/v2/translate"
        async with aiohttp.ClientSession(headers=KEY) as http, http.post(url, json=body) as answer:
            return answer.status, await answer.json()

    async def used(self) -> int:
        url = f"http://127.0.0.1:{self.port}/v2/usage"
        async with aiohttp.ClientSession(headers=KEY) as http, http.get(url) as answer:
            return int((await answer.json())["character_count"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 60)


@pytest.fixture
async def replica(start_upstream: Any) -> int:
    return int((await start_upstream()).port)


@pytest.fixture
def start(replica: int, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start a router with one key of a hundred characters a month."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/alice").write_text('{"key": "a-secret-of-alice", "characterLimit": 100}')
    (tmp_path / "static.yaml").write_text(f'deployments: [{{name: a, replicas: ["127.0.0.1:{replica}"]}}]')
    command = ["router", f"--static={tmp_path}/static.yaml"]
    command += [f"--keys-dir={tmp_path}/keys", "--host=127.0.0.1", "--lame-duck-s=0"]
    started: list[Process] = []

    def make(name: str, url: str) -> Process:
        flags = [f"--router-id={name}", "--state-timeout-s=10"]
        variables = bare_environment() | {"DRAGOMAN_ROUTER_STATE_URL": url}
        started.append(Process([*command, *flags], variables, tmp_path / f"{name}.log"))
        return started[-1]

    yield make
    for each in started:
        if each.process.poll() is None:
            each.kill()


async def test_usage_and_quota_are_of_all_routers_and_outlive_each(
    start: Callable[..., Process], redis_server: Any
) -> None:
    one, two = (start(name, redis_server.url) for name in ("one", "two"))
    await asyncio.gather(one.ready(), two.ready())
    assert (await one.translate(30))[0] == 200
    assert (await two.translate(20))[0] == 200
    assert [await one.used(), await two.used()] == [50, 50]
    one.kill()
    assert (await two.translate(10))[0] == 200

    again = start("one", redis_server.url)
    await again.ready()
    assert await again.used() == 60
    assert (await again.translate(40))[0] == 200
    status, message = await two.translate(1)
    assert (status, "100 of 100" in message["detail"]) == (456, True)

    two.process.terminate()
    assert await two.ended() == 0
    log = two.log.read_text()
    assert "Traceback" not in log
    assert f"state is shared through {redis_server.url}" in log
    assert b"secret" not in redis_server.command("KEYS *")


async def test_an_orderly_end_sends_what_is_left(start: Callable[..., Process], own_redis: Any) -> None:
    ending = start("ending", own_redis.url)
    await ending.ready()
    own_redis.kill()
    assert (await ending.translate(10))[0] == 200
    assert (await ending.translate(30))[0] == 200
    own_redis.start()
    ending.process.terminate()
    assert await ending.ended() == 0
    after = start("after", own_redis.url)
    await after.ready()
    # The first one was tried at the server, and counts as made there.
    assert await after.used() == 30


async def test_a_wrong_password_ends_the_start(start: Callable[..., Process], own_redis: Any) -> None:
    own_redis.kill()
    own_redis.start("--requirepass", "right")
    router = start("one", own_redis.url.replace("redis://", "valkey://:wrong@"))
    assert await router.ended() == 1
    log = router.log.read_text()
    assert f"--state-url: {own_redis.url.replace('redis', 'valkey')} refuses this router" in log
    assert "wrong@" not in log
    assert "Traceback" not in log
    allowed = start("two", own_redis.url.replace("redis://", "valkey://:right@"))
    await allowed.ready()
    assert (await allowed.translate(5))[0] == 200
