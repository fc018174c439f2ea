import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from dragoman_devcluster.ports import free_port
from dragoman_tune.client import connections
from dragoman_tune.errors import ServerError
from dragoman_tune.scrape import scrape
from dragoman_tune.server import Server, running, session_members, settled

SERVE = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()"
HANDLER = (
    "import http.server\n"
    "class H(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self): self.send_response(200); self.send_header('Content-Length', '0'); self.end_headers()\n"
)
CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"


def server(tmp_path: Path, program: str) -> Server:
    port = free_port()
    return Server("it", [sys.executable, "-c", program, str(port)], port, "/readyz", tmp_path / "log", {})


def leader(one: Server) -> int:
    return one._process.pid


async def test_what_a_server_started_ends_with_it(tmp_path: Path) -> None:
    one = server(tmp_path, CHILD + HANDLER + SERVE)
    async with running(one, 30):
        assert len(session_members(leader(one))) == 2
        assert one.memory_bytes() > 0
        own_s, others_s = one.cpu_s()
        assert own_s > 0
        assert others_s >= 0
        assert one.ended() is None
    assert session_members(leader(one)) == []


async def test_children_that_outlive_a_killed_server_end_too(tmp_path: Path) -> None:
    one = server(tmp_path, CHILD + HANDLER + SERVE)
    async with running(one, 30):
        os.kill(leader(one), signal.SIGKILL)
        one._process.wait(10)
        assert "was killed by signal 9" in (one.ended() or "")
    assert session_members(leader(one)) == []


async def test_a_measurement_waits_until_all_cuda_graphs_are_captured(tmp_path: Path) -> None:
    handler = (
        "import http.server, time\n"
        "began_s = time.monotonic()\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        body = b'dragoman_cuda_graphs_deferred %d.0' % (time.monotonic() - began_s < 1.5)\n"
        "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
        "        self.wfile.write(body)\n"
    )
    async with running(server(tmp_path, handler + SERVE), 30) as one:
        await settled(one)
        async with connections() as session:
            assert (await scrape(session, one.url))["dragoman_cuda_graphs_deferred"] == 0


async def test_a_server_without_that_metric_is_measured_at_once(tmp_path: Path) -> None:
    async with running(server(tmp_path, HANDLER + SERVE), 30) as one, asyncio.timeout(5):
        await settled(one)


async def test_one_that_fails_to_start_says_why(tmp_path: Path) -> None:
    one = server(tmp_path, "raise ValueError('no room for the KV cache')")
    with pytest.raises(ServerError, match="ended with status 1: ValueError: no room for the KV cache"):
        async with running(one, 30):
            pass


async def test_one_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    one = server(tmp_path, "import time; time.sleep(600)")
    with pytest.raises(ServerError, match="not ready within"):
        async with running(one, 0.5):
            pass
    assert session_members(leader(one)) == []
