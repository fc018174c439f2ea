"""`dragoman fetch` as a process, with nothing of this environment that would reach a store."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def start(cache: Path, model: str, *flags: str, env: dict[str, str], **popen: Any) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "dragoman", "fetch", "--model", model, "--cache-dir", str(cache)),
        *("--to", str(cache / "models" / "it"), "--host", "127.0.0.1", "--port", "0"),
        *("--termination-log", str(cache.parent / "termination-log"), *flags),
    ]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HF_", "AWS_", "DRAGOMAN_"))
    }
    return subprocess.Popen(
        command, env={**kept, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
    )


def fetch(cache: Path, model: str, *flags: str, env: dict[str, str], **popen: Any) -> tuple[int, str]:
    """Exit status and standard error."""
    process = start(cache, model, *flags, env=env, **popen)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def failure(cache: Path, model: str, *flags: str, env: dict[str, str], **popen: Any) -> str:
    """The sentence of a fetch that fails; it is the last line of the log and the termination message."""
    status, errors = fetch(cache, model, *flags, env=env, **popen)
    assert status == 1, errors
    sentence = (cache.parent / "termination-log").read_text()
    assert sentence.count("\n") == 1
    assert errors.endswith(f"dragoman fetch: {sentence}")
    assert not (cache / "models" / "it").exists()
    return sentence
