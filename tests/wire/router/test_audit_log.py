"""The audit log has a line for each request, also for each that failed, and never a text or a key."""

import asyncio
import fcntl
import io
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.servers import listens
from tests.wire.router.test_command import Process

from dragoman_devcluster.ports import free_port
from dragoman_protocols.served import Need
from dragoman_router.http import audit as module
from dragoman_router.http.audit import MAX_LINES, MAX_PAIRS, AuditLog
from dragoman_router.request import AuditEntry, RoutedRequest

KEY = "a-secret-of-alice"
SENT = {"X-Api-Key": KEY}


@pytest.fixture
async def router(start_router: Any, start_upstream: Any, tmp_path: Path) -> Any:
    (tmp_path / "alice").write_text(KEY)
    started = await start_router(keys_dir=tmp_path, audit_log=True)
    started.upstream = await start_upstream()
    started.serve("a", started.upstream.replica())
    return started


@pytest.fixture
def stream(router: Any) -> io.BytesIO:
    found = io.BytesIO()
    router.state.audit = AuditLog(found)
    return found


async def lines(router: Any, stream: io.BytesIO) -> list[dict[str, Any]]:
    await router.state.audit.flush()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_line_for_each_request(router: Any, stream: io.BytesIO, until: Any) -> None:
    secret = "a text that stays secret"
    await router.translate(text=secret, headers=SENT)
    await router.post(
        "/translate?api-version=3.0&to=de&to=fr&key=" + KEY, [{"Text": secret}], headers={"Accept": "*/*"}
    )
    await router.translate(text=secret)
    await router.post("/v2/translate", {"text": [secret], "target_lang": "DE", "auth_key": "wrong-secret"})
    await router.get("/v2/usage", headers=SENT)
    await router.get(f"/no/{secret}")
    found = await lines(router, stream)
    assert [
        (each["api"], each["caller"], each["status"], each["error"], each["deployment"], each["pairs"])
        for each in found
    ] == [
        ("native", "alice", 200, None, "default/a", [["en", "de"]]),
        ("azure", "alice", 400, "unsupported_pair", None, [["auto", "de"], ["auto", "fr"]]),
        ("native", None, 401, "key_missing", None, []),
        ("deepl", None, 403, "key_refused", None, []),
        ("deepl", "alice", 200, None, None, []),
        ("native", None, 404, "not_found", None, []),
    ]
    assert [each["characters"] for each in found] == [len(secret), 0, 0, 0, 0, 0]
    assert all(0 <= each["duration_s"] < 60 and each["client"] == "127.0.0.1" for each in found)
    assert all(each["time"].endswith("+00:00") for each in found)
    assert b"secret" not in stream.getvalue()


async def test_a_client_that_leaves_before_the_answer(router: Any, stream: io.BytesIO, until: Any) -> None:
    arrived = asyncio.Event()

    async def never(_: Any) -> None:
        arrived.set()
        await asyncio.Event().wait()

    router.upstream.script = never
    sent = asyncio.create_task(router.translate(headers=SENT))
    await asyncio.wait_for(arrived.wait(), 30)
    sent.cancel()
    await until(lambda: router.state.active == 0)
    (line,) = await lines(router, stream)
    assert (line["caller"], line["pairs"], line["status"]) == ("alice", [["en", "de"]], None)


def request() -> RoutedRequest:
    return RoutedRequest("POST", "/translate", b"", [], client="10.0.0.1", key_name="alice")


async def test_a_line_is_bounded() -> None:
    stream = io.BytesIO()
    audit = AuditLog(stream)
    needs = tuple(Need(None, tuple("x" * 500 + str(target) for target in range(500))) for _ in range(500))
    audit.add(request(), AuditEntry(needs=needs), 0.1)
    different = tuple(Need(str(at), tuple(map(str, range(500)))) for at in range(500))
    audit.add(request(), AuditEntry(needs=different), 0.1)
    await audit.flush()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (len(first["pairs"]), len(second["pairs"])) == (1, MAX_PAIRS)
    assert len(stream.getvalue()) < 2000


async def test_a_reader_that_stops_reading_stops_nothing() -> None:
    reading = threading.Event()
    written: list[bytes] = []

    class Pipe(io.BytesIO):
        def write(self, data: Any) -> int:
            assert reading.wait(30)
            written.append(bytes(data))
            return len(data)

    dropped: list[int] = []
    audit = AuditLog(Pipe(), dropped.append)
    audit.add(request(), AuditEntry(), 0.1)
    flushing = asyncio.create_task(audit.flush())
    await asyncio.sleep(0)
    for _ in range(MAX_LINES + 7):
        audit.add(request(), AuditEntry(), 0.1)
    reading.set()
    await flushing
    await audit.flush()
    assert b"".join(written).count(b"\n") == MAX_LINES + 1
    assert dropped == [7]


async def test_an_end_waits_for_the_last_lines_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    reading, arrived = threading.Event(), threading.Event()
    written: list[bytes] = []

    class Pipe(io.BytesIO):
        def write(self, data: Any) -> int:
            arrived.set()
            assert reading.wait(30)
            written.append(bytes(data[:10]))
            return min(10, len(data))

    for patience_s, readable in ((30, True), (0, False)):
        monkeypatch.setattr(module, "END_S", patience_s)
        monkeypatch.setattr(module, "FLUSH_S", 0)
        reading.clear()
        arrived.clear()
        written.clear()
        audit = AuditLog(Pipe())
        audit.add(request(), AuditEntry(), 0.1)
        running = asyncio.create_task(audit.run())
        await until(arrived.is_set)
        audit.add(request(), AuditEntry(), 0.2)
        running.cancel()
        if readable:
            reading.set()
        await asyncio.wait({running}, timeout=30)
        assert running.cancelled()
        durations = [json.loads(line)["duration_s"] for line in b"".join(written).splitlines()]
        assert durations == ([0.1, 0.2] if readable else [])
        reading.set()


async def test_the_command_ends_though_its_lines_are_not_read(tmp_path: Path) -> None:
    port, admin_port = free_port(), free_port()
    static = tmp_path / "static.yaml"
    static.write_text("deployments: []")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    flags = ["--host=127.0.0.1", f"--port={port}", f"--admin-port={admin_port}", f"--static={static}"]
    command = [sys.executable, "-m", "dragoman_router", *flags, "--audit-log", "--lame-duck-s=0"]
    with (tmp_path / "log").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(*command, stdout=writer, stderr=errors)
    os.close(writer)
    try:
        async with asyncio.timeout(30):
            while not listens(port):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as http:
            for _ in range(50):
                async with http.get(f"http://127.0.0.1:{port}/no/path") as got:
                    assert got.status == 404
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0, (tmp_path / "log").read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(reader)


async def test_the_command_writes_lines_until_its_end(start_upstream: Any, tmp_path: Path) -> None:
    one = await start_upstream()
    process = Process(tmp_path, [f"127.0.0.1:{one.port}"], "--audit-log", "--lame-duck-s=0")
    try:
        await process.until("/readyz", 200)
        body = {"text": "Hello", "source_lang": "en", "target_lang": "de"}
        url = f"http://127.0.0.1:{process.port}/translate"
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as got:
            assert got.status == 200
        process.process.send_signal(signal.SIGTERM)
        assert await process.ended() == 0
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()
    (line,) = [each for each in process.log.read_text().splitlines() if each.startswith("{")]
    assert json.loads(line)["characters"] == 5
