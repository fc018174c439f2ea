import logging
import logging.config
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dragoman_service.engine.protocol import Phase
from dragoman_service.engine.vllm.start_report import (
    MAX_REPORTED_BYTES,
    Failure,
    StartReport,
    failure,
    logging_config,
    read_report,
)


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    level = logging.ERROR if error else logging.INFO
    return logging.LogRecord("vllm.x", level, "x.py", 1, message, (), info)


def test_nothing_is_known_before_the_first_line(tmp_path: Path) -> None:
    assert read_report(tmp_path / "start") == (None, None)


def test_the_last_phase_and_the_first_failure_count(tmp_path: Path) -> None:
    report = StartReport(str(tmp_path / "start"))
    for message in (
        "Starting to load model x...",
        "something else",
        "Warming up model for the compilation...",
    ):
        report.emit(record(message))
    report.emit(record("an optional thing failed", ValueError("passing")))
    report.emit(record("WorkerProc failed to start.", ValueError("too big")))
    report.emit(record("EngineCore failed to start.", RuntimeError("see above")))
    assert read_report(tmp_path / "start") == (Phase.WARMING_UP, Failure((("ValueError", "too big"),)))


def test_a_line_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "start").write_text('{"phase": "loading"}\n{"phase": "comp')
    assert read_report(tmp_path / "start") == (Phase.LOADING, None)


def test_the_report_does_not_grow_for_ever(tmp_path: Path) -> None:
    report = StartReport(str(tmp_path / "start"))
    for _ in range(200):
        report.emit(record("WorkerProc failed.", ValueError("x" * 1000)))
    assert (tmp_path / "start").stat().st_size < MAX_REPORTED_BYTES + 2000


def test_a_report_without_its_directory_is_lost_quietly(tmp_path: Path) -> None:
    StartReport(str(tmp_path / "gone" / "start")).emit(record("Starting to load model x..."))


def test_a_failure_holds_its_causes_outermost_first() -> None:
    error = RuntimeError("outer")
    error.__cause__ = ValueError("inner")
    assert failure(error).chain == (("RuntimeError", "outer"), ("ValueError", "inner"))


def test_the_console_leaves_out_the_traceback_of_a_failed_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = textwrap.dedent(f"""
        import logging, logging.config
        from pathlib import Path
        from dragoman_service.engine.vllm.start_report import logging_config
        logging.config.dictConfig(logging_config(Path({str(tmp_path / "start")!r}), "INFO"))
        for message in ("EngineCore failed to start.", "EngineCore encountered a fatal error."):
            try:
                raise ValueError("deep reason")
            except ValueError:
                logging.getLogger("vllm.core").exception(message)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.count("Traceback") == 1
    assert "failed to start" in done.stderr
    assert read_report(tmp_path / "start")[1] == Failure((("ValueError", "deep reason"),))
    assert logging_config(tmp_path, "DEBUG")["loggers"]["vllm"]["level"] == "DEBUG"


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, os, sys, time

        def child(path):
            from dragoman_service.engine.vllm.start_report import StartReport
            StartReport(path)
            print(os.getpid(), flush=True)
            time.sleep(600)

        if __name__ == "__main__":
            multiprocessing.get_context("spawn").Process(target=child, args=(sys.argv[1],)).start()
            time.sleep(600)
        """)
    )
    command = [sys.executable, str(script), str(tmp_path / "start")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        assert child.exists()
        parent.kill()
        deadline_s = time.monotonic() + 10
        while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
            assert time.monotonic() < deadline_s, "the child outlived its parent"
            time.sleep(0.05)
