import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman import completion
from dragoman.__main__ import COMMANDS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert completion.main([shell]) == 0
    return capsys.readouterr().out


def test_every_command_is_completed(capsys: pytest.CaptureFixture[str]) -> None:
    printed = script("bash", capsys)
    assert all(name in printed for name in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("dragoman tra", ["translate"]),
        ("dragoman status --na", ["--namespace"]),
        ("dragoman completion z", ["zsh"]),
    ],
)
def test_bash_completes(typed: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = typed.split()
    ask = (
        f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_dragoman dragoman {words[-1]} {words[-2]}; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    run = subprocess.run(["bash", "-c", script("bash", capsys) + "\n" + ask], capture_output=True, text=True)
    assert (run.stdout.split(), run.stderr) == (expected, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_it(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on PATH")
    file = tmp_path / "script"
    file.write_text(script(shell, capsys))
    subprocess.run([shell, "-n", str(file)], check=True)
