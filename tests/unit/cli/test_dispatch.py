import importlib.metadata
import importlib.util
import os
import re
import resource
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dragoman import __main__ as cli
from dragoman.__main__ import COMMANDS, ENOUGH_FILES, GROUP, entry_point, installation, main, version
from dragoman.exits import FAILED

ROOT = Path(__file__).parents[3]


def declared() -> dict[str, str]:
    """Each command that a pyproject file declares, with its distribution."""
    found = {}
    for file in ROOT.glob("*/pyproject.toml"):
        project = tomllib.loads(file.read_text())["project"]
        for command in project.get("entry-points", {}).get(GROUP, {}):
            assert command not in found
            found[command] = project["name"]
    return found


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in COMMANDS)


@pytest.mark.slow
def test_a_command_may_open_many_files_where_the_shell_allows_few() -> None:
    script = """import resource
from dragoman.__main__ import main
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
main(["models"])
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(done.stdout.split()[-1]) == (min(ENOUGH_FILES, hard) if hard >= 0 else ENOUGH_FILES)


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translte"]) == 2
    assert "no command 'translte'" in capsys.readouterr().err


def test_help_and_distributions_have_the_same_commands() -> None:
    assert COMMANDS.keys() == declared().keys()


def required(folder: str) -> set[str]:
    """The folders whose distributions a folder requires, with its own; `cli[people]` with an extra."""
    name, _, extra = folder.rstrip("]").partition("[")
    project = tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + project.get("optional-dependencies", {}).get(extra, [])
    distributions = [Requirement(line).name for line in lines]
    folders = {found.removeprefix("dragoman-") for found in distributions if found.startswith("dragoman-")}
    return {name}.union(*map(required, folders))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_to_be_installed_for_a_command_has_all_that_it_requires(command: str) -> None:
    named = shlex.split(installation(command).partition("pip install ")[2])
    folders = {path.removeprefix("./").partition("[")[0] for path in named}
    assert {"cli", folder_of(declared()[command])} <= folders
    assert folders == set().union(*(required(path.removeprefix("./")) for path in named))


def folder_of(distribution: str) -> str:
    return "cli" if distribution == "dragoman" else distribution.removeprefix("dragoman-")


@pytest.mark.parametrize("arguments", [["--version"], ["translate", "--version"]])
def test_the_version_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"dragoman {importlib.metadata.version('dragoman')}\n"


def test_a_checkout_that_is_not_installed_has_the_same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = version()

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert version() == installed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_no_types_of_python(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with suppress(SystemExit):
        main([name, "--help"])
    printed = capsys.readouterr().out
    assert f"usage: dragoman {name}" in printed
    found = re.search(
        r"\b(Path|None|null|str|int|float|bool|tuple|dict|SecretStr|factory|lambda|True|False)\b|<class",
        printed,
    )
    assert found is None, found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module(name: str) -> None:
    found = entry_point(name)
    assert found is not None
    assert importlib.util.find_spec(found.module) is not None


def test_commands_are_found_in_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    assert entry_point("router") == EntryPoint("router", "dragoman_router.__main__:main", GROUP)


@pytest.mark.slow
def test_only_the_chosen_command_is_imported() -> None:
    program = (
        "import sys; from dragoman.__main__ import main\n"
        "try: main(['translate', '--help'])\n"
        "finally: print(sorted(n for n in sys.modules if n.startswith('dragoman') and '.' not in n))"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.endswith("['dragoman', 'dragoman_contract', 'dragoman_protocols']\n")


def test_a_missing_package_names_the_distribution_that_requires_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = EntryPoint("operator", "package_that_is_missing:main", GROUP)
    monkeypatch.setattr(cli, "entry_point", lambda _: absent)
    assert main(["operator"]) == 1
    assert (
        "'package_that_is_missing' is not installed; in a checkout of Dragoman, run: pip install ./contract"
        in capsys.readouterr().err
    )


def test_a_part_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    monkeypatch.setattr(cli, "CHECKOUT", tmp_path)
    assert main(["router"]) == 1
    assert (
        "not in this installation; in a checkout of Dragoman, run: pip install ./contract"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["models"], ["--help"], ["completion", "bash"]])
@pytest.mark.slow
def test_a_reader_that_closes_the_output_ends_a_command_without_a_message(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *arguments], stdout=write, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (FAILED, b"")


@pytest.mark.slow
def test_an_output_on_a_full_disk_is_an_error_without_a_traceback() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dragoman", "models"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == "dragoman: [Errno 28] No space left on device\n"
