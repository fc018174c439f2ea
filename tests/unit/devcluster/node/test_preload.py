"""Containers of `dragoman` that are forked: what they print, where, with which environment, status and end."""

import asyncio
import os
import signal
import socket
import sys

import pytest

from dragoman_devcluster.api.tls import credentials, write_kubeconfig
from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.preload import Preload
from dragoman_devcluster.process import Process

pytestmark = pytest.mark.slow


@pytest.fixture
def guardian():
    made = Guardian()
    yield made
    made.close()


@pytest.fixture(scope="module")
def preload():
    return Preload("tests.support.preloaded")


@pytest.fixture
def start(guardian, preload, tmp_path):
    def run(*arguments: str, cwd=tmp_path, **env: str) -> Process:
        argv = [sys.executable, "-m", "dragoman", *arguments]
        env = {**os.environ, **env}
        assert preload.can_run(argv, env)
        return Process.start(
            argv, env=env, cwd=cwd, output=tmp_path / "log", guardian=guardian, preload=preload
        )

    return run


async def test_output_arguments_and_exit_code(start, tmp_path):
    process = start("no-such-command")
    assert await process.wait() == 2
    assert "no command 'no-such-command'" in (tmp_path / "log").read_text()
    assert process.has_ended


async def test_environment_and_output_that_is_appended(start, tmp_path):
    (tmp_path / "log").write_text("before\n")
    assert await start("operator", DRAGOMAN_OPERATOR_NO_SUCH="1").wait() == 2
    log = (tmp_path / "log").read_text()
    assert log.startswith("before\n")
    assert "DRAGOMAN_OPERATOR_NO_SUCH" in log


async def test_what_is_to_be_removed_at_its_exit_is_removed(start, tmp_path):
    authority = credentials(tmp_path / "api", "127.0.0.1").certificate_file.read_bytes()
    write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", authority, "secret")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = start("status", KUBECONFIG=str(tmp_path / "kubeconfig"), TMPDIR=str(temporary))
    assert await process.wait() == 3
    assert "127.0.0.1:1" in (tmp_path / "log").read_text()
    assert list(temporary.iterdir()) == []


async def test_temporary_files_are_where_its_environment_has_them(start, tmp_path):
    """Although the preloaded modules have read the directory's name already."""
    authority = credentials(tmp_path / "api", "127.0.0.1").certificate_file.read_bytes()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        write_kubeconfig(tmp_path / "kubeconfig", url, authority, "secret")
        process = start("status", KUBECONFIG=str(tmp_path / "kubeconfig"), TMPDIR=str(temporary))
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            assert list(temporary.iterdir())
            process.kill()
            await process.wait()


async def test_it_leads_a_session_in_its_directory_and_a_signal_ends_it(start, tmp_path):
    directory = tmp_path / "own"
    directory.mkdir()
    process = start("devcluster", "up", "--foreground", "--api-only", "--api=embedded", cwd=directory)
    assert os.getsid(process.pid) == process.pid
    assert os.readlink(f"/proc/{process.pid}/cwd") == str(directory)
    assert os.readlink(f"/proc/{process.pid}/fd/1") == str(tmp_path / "log")
    process.kill()
    assert await process.wait() == 128 + signal.SIGKILL


async def test_a_directory_that_is_not_there(start, tmp_path):
    with pytest.raises(StartFailedError, match="No such file or directory"):
        start("--help", cwd=tmp_path / "missing")


async def test_the_guardian_ends_what_is_left(preload, tmp_path):
    guardian = Guardian()
    argv = [
        sys.executable,
        "-m",
        "dragoman",
        "devcluster",
        "up",
        "--foreground",
        "--api=embedded",
        "--api-only",
    ]
    process = Process.start(
        argv, env=os.environ, cwd=tmp_path, output=tmp_path / "log", guardian=guardian, preload=preload
    )
    guardian.close()
    assert await process.wait() == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["-c", "print(1)"], {}),
        (["-m", "http.server"], {}),
        (["-m", "dragoman"], {"PYTHONPATH": "/elsewhere"}),
        (["-m", "dragoman"], {"LD_PRELOAD": "some.so"}),
    ],
)
def test_other_programs_and_other_pythons_are_not_forked(preload, words, changed):
    assert not preload.can_run([sys.executable, *words], {**os.environ, **changed})


def test_a_module_that_is_missing():
    with pytest.raises(StartFailedError, match="--preload no_such_module: No module named 'no_such_module'"):
        Preload("no_such_module")
