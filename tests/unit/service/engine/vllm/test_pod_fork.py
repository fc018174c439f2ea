"""The engine process as a fork of the pod's, with a target in place of vLLM's."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.servers import wait_until_gone

SHARED = """
import asyncio, os, signal, socket, threading, time
from dragoman_service.engine.vllm import pod_fork

def engine():
    print("engine", os.getpid(), flush=True)
    time.sleep(600)

def run(pod):
    async def main():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: print("pod: SIGTERM", flush=True))
        await pod(loop)
        await asyncio.sleep(600)
    asyncio.run(main())

async def fork(loop, target=engine):
    process = pod_fork.context(loop).Process(target=target)
    await loop.run_in_executor(None, process.start)
    return process
"""


@contextmanager
def pod(script: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SHARED + textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def engine_of(process: subprocess.Popen[str]) -> int:
    return int(line(process).removeprefix("engine "))


def test_a_fork_ends_when_the_pod_is_killed() -> None:
    with pod("run(fork)") as process:
        engine = engine_of(process)
        process.kill()
        wait_until_gone([engine])


def test_a_signal_to_the_fork_does_not_reach_the_pod() -> None:
    script = """
        def engine():
            signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
            print("engine", os.getpid(), flush=True)
            time.sleep(600)

        async def pod(loop):
            process = await fork(loop, engine)
            await loop.run_in_executor(None, process.join)
            print("engine ended:", process.exitcode, flush=True)

        run(pod)
        """
    with pod(script) as process:
        os.kill(engine_of(process), signal.SIGTERM)
        assert line(process) == "engine ended: 3"
        process.terminate()
        assert line(process) == "pod: SIGTERM"


def test_connections_of_the_pod_close_while_its_fork_runs() -> None:
    script = """
        async def pod(loop):
            listener = socket.create_server(("127.0.0.1", 0))
            address = listener.getsockname()
            client = socket.create_connection(address, timeout=10)
            accepted, _ = listener.accept()
            await fork(loop)
            accepted.close()
            listener.close()
            print(client.recv(1), flush=True)
            socket.create_server(address).close()
            print("listened again", flush=True)

        run(pod)
        """
    with pod(script) as process:
        assert {line(process).split(" ")[0] for _ in range(3)} == {"engine", "b''", "listened"}


def test_no_lock_of_the_event_loop_is_held_in_the_fork() -> None:
    script = """
        lock = threading.Lock()

        async def use_lock():
            while True:
                with lock:
                    time.sleep(0.01)
                await asyncio.sleep(0)

        def engine():
            print(lock.acquire(timeout=5), flush=True)

        async def pod(loop):
            using = loop.create_task(use_lock())
            for _ in range(10):
                await fork(loop, engine)

        run(pod)
        """
    with pod(script) as process:
        assert [line(process) for _ in range(10)] == ["True"] * 10
