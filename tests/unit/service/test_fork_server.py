"""The fork server's engine process, with a target in place of vLLM's."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman_service.engine.vllm import fork_server
from dragoman_service.engine.vllm.fork_server import CONTEXT, in_fork, inspect_models


def test_a_fork_has_the_environment_of_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "when the fork server started")
    CONTEXT.Process(target=str).start()
    monkeypatch.delenv("GONE")
    monkeypatch.setenv("ADDED", "after that")
    process = CONTEXT.Process(
        target=subprocess.check_call, args=(["sh", "-c", f"echo $GONE $ADDED > {tmp_path}/seen"],)
    )
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert (tmp_path / "seen").read_text() == "after that\n"


@pytest.fixture
def _cloudpickle() -> None:
    """It comes with vLLM."""
    pytest.importorskip("cloudpickle")


@pytest.mark.usefixtures("_cloudpickle")
def test_a_task_in_a_fork_has_its_garbage_collected_and_returns_its_result() -> None:
    assert in_fork(gc.isenabled) is True
    assert in_fork(os.getpid) != os.getpid()


@pytest.mark.usefixtures("_cloudpickle")
def test_a_task_that_fails_in_a_fork_is_an_error_here() -> None:
    with pytest.raises(EOFError):
        in_fork(lambda: os.environ["MISSING"])


@pytest.mark.usefixtures("_cloudpickle")
def test_what_cannot_be_done_in_a_fork_is_done_as_vllm_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = SimpleNamespace(_run_in_subprocess=lambda _task: "in a new process")
    monkeypatch.setitem(sys.modules, "vllm.model_executor.models", SimpleNamespace(registry=registry))
    inspect_models()
    replaced = registry._run_in_subprocess
    inspect_models()
    assert registry._run_in_subprocess is replaced
    assert replaced(lambda: "in a fork") == "in a fork"
    assert replaced(lambda: os.environ["MISSING"]) == "in a new process"


@pytest.mark.usefixtures("_cloudpickle")
@pytest.mark.parametrize("used", [False, True])
def test_a_fork_may_use_cuda_unless_an_import_has_initialized_it(tmp_path: Path, used: bool) -> None:
    (tmp_path / "imports.py").write_text(f"used_cuda = {used}\n")
    script = textwrap.dedent("""
        from dragoman_service.engine.vllm import fork_server

        if __name__ == "__main__":
            fork_server.PRELOADED = "imports"
            fork_server.begin()
            print(fork_server.may_use_cuda())
        """)
    (tmp_path / "pod.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = subprocess.check_output([sys.executable, str(tmp_path / "pod.py")], env=environment, text=True)
    assert printed.strip() == str(not used)


def test_a_fork_that_does_not_answer_may_not_use_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(_task: object) -> object:
        raise EOFError

    monkeypatch.setattr(fork_server, "in_fork", dies)
    assert not fork_server.may_use_cuda()


def test_a_fork_ends_when_the_pod_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "pod.py"
    script.write_text(
        textwrap.dedent("""
        import os, time
        from dragoman_service.engine.vllm.fork_server import CONTEXT

        def engine():
            print(os.getpid(), flush=True)
            time.sleep(600)

        if __name__ == "__main__":
            CONTEXT.Process(target=engine).start()
            time.sleep(600)
        """)
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as pod:
        assert pod.stdout is not None
        engine = Path(f"/proc/{int(pod.stdout.readline())}")
        assert engine.exists()
        pod.kill()
        deadline_s = time.monotonic() + 10
        while engine.exists():
            assert time.monotonic() < deadline_s, "the engine outlived the pod"
            time.sleep(0.05)
