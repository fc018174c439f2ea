import importlib.util

import pytest

from dragoman.__main__ import COMMANDS, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in COMMANDS)


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translte"]) == 2
    assert "no command 'translte'" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module(name: str) -> None:
    assert importlib.util.find_spec(COMMANDS[name].module) is not None


def test_a_missing_package_names_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'kopf'", name="kopf")

    monkeypatch.setattr("dragoman.__main__.importlib.import_module", absent)
    assert main(["operator"]) == 1
    assert "'kopf' is not installed; install dragoman[operator]" in capsys.readouterr().err


def test_a_part_that_only_a_checkout_has_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'dragoman_bench'", name="dragoman_bench")

    monkeypatch.setattr("dragoman.__main__.importlib.import_module", absent)
    assert main(["bench"]) == 1
    assert "no dragoman_bench; in a checkout, pip install -e" in capsys.readouterr().err
