import pytest
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from dragoman_system.command_line import CommandLineError, read_command_line


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="PART_", extra="forbid", cli_kebab_case=True)

    model: str
    max_queued: int = Field(1, ge=0)


def read(*argv: str) -> Settings:
    return read_command_line(Settings, argv)


def test_flags_come_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PART_MAX_QUEUED", "3")
    assert read("--model=m").max_queued == 3
    assert read("--model=m", "--max-queued=4").max_queued == 4


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--model is required"),
        (["--model=m", "--max-queued=-1"], "--max-queued: input should be greater than or equal to 0"),
        (["--model=m", "--max-queud=1"], "no option --max-queud; did you mean --max-queued?"),
    ],
)
def test_each_error_is_a_sentence(argv: list[str], message: str) -> None:
    with pytest.raises(CommandLineError) as raised:
        read(*argv)
    assert str(raised.value) == message
