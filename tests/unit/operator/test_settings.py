"""Settings: flags before environment, unknown names refused."""

from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from dragoman_operator.__main__ import main
from dragoman_operator.settings import Settings, unknown_variables


def read(*flags: str) -> Settings:
    return CliApp.run(Settings, cli_args=list(flags))


def test_flags_win_over_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_OPERATOR_CPU_IMAGE", "from:environment")
    monkeypatch.setenv("DRAGOMAN_OPERATOR_RESYNC_S", "7")
    settings = read("--cpu-image", "from:flag")
    assert (settings.cpu_image, settings.resync_s) == ("from:flag", 7)


@pytest.mark.parametrize("flags", [["--namespaces", "a,b"], ["--namespaces=a", "--namespaces=b"]])
def test_namespaces(flags: list[str]) -> None:
    assert read(*flags).namespaces == ("a", "b")
    assert read().namespaces == ()


def test_namespaces_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_OPERATOR_NAMESPACES", "a, b")
    assert read().namespaces == ("a", "b")


def test_host_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_OPERATOR_HOST", "127.4.0.1")
    assert read().host == "127.4.0.1"
    assert read("--host", "127.5.0.1").host == "127.5.0.1"


@pytest.mark.parametrize(
    "changes",
    [
        {"lease_retry_s": 12},
        {"lease_renew_deadline_s": 15},
        {"resync_s": 0},
        {"log_format": "xml"},
        {"typo": 1},
    ],
)
def test_what_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**changes)


def test_misspelt_variables_are_found_and_service_links_are_not() -> None:
    names = [
        "DRAGOMAN_OPERATOR_CPU_IMAGE",
        "DRAGOMAN_OPERATOR_CPU_IMGE",
        "DRAGOMAN_OPERATOR_METRICS_PORT",
        "DRAGOMAN_OPERATOR_SERVICE_HOST",
        "DRAGOMAN_OPERATOR_SERVICE_PORT_METRICS",
        "DRAGOMAN_OPERATOR_PORT",
        "DRAGOMAN_OPERATOR_PORT_9090_TCP_ADDR",
        "DRAGOMAN_OPERATOR_HOST",
        "HOME",
    ]
    assert unknown_variables(names) == ["DRAGOMAN_OPERATOR_CPU_IMGE"]


def test_command_line_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--lease-retry-s", "30"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("DRAGOMAN_OPERATOR_IMAGE", "x")
    assert main([]) == 2
    assert "DRAGOMAN_OPERATOR_IMAGE" in capsys.readouterr().err


def test_unknown_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cpu-imge", "x"]) == 2
    assert "no option --cpu-imge; did you mean --cpu-image?" in capsys.readouterr().err
