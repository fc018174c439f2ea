"""Settings from a command line and the environment, with one sentence for each error; and the log format."""

from __future__ import annotations

import argparse
import difflib
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError
from pydantic_settings import BaseSettings, CliSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as PydanticSettingsError

Read = TypeVar("Read", bound=BaseSettings)

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class CommandLineError(Exception):
    """Invalid flags or variables; the message names each."""


class CommandSettings(BaseSettings):
    """Options of a command: immutable, from flags in kebab case and from variables; other names are refused.

    A command's class adds a `model_config` with the `cli_prog_name` and the `env_prefix`.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        cli_kebab_case=True,
        cli_hide_none_type=True,
        cli_avoid_json=True,
    )


def read_command_line(settings: type[Read], argv: Sequence[str]) -> Read:
    """Settings from a command line and the environment.

    Args:
        settings: Their class; its `env_prefix` is that of the variables.
        argv: The arguments after the subcommand.

    Raises:
        CommandLineError: With every wrong flag or variable named.
        SystemExit: After `--help`.
    """
    try:
        source: CliSettingsSource[Any] = CliSettingsSource(settings, cli_exit_on_error=False)
        _describe(source.root_parser)
        return settings(_cli_settings_source=source(args=list(argv)))
    except PydanticSettingsError as error:
        raise CommandLineError(_unreadable(str(error), settings)) from error
    except ValidationError as error:
        raise CommandLineError("; ".join(_invalid(dict(item)) for item in error.errors())) from error


_UNIT = {"per_s": "N", "s": "SECONDS", "bytes": "BYTES", "port": "PORT"}
"""What a number is, by the end of its flag."""


def _describe(parser: argparse.ArgumentParser) -> None:
    """Name values in `--help` by what they are; pydantic names Python's types, and defaults such as `None`."""
    for action in parser._actions:
        if isinstance(action.metavar, str):
            action.metavar = _value(action.metavar, action.dest)
        if action.help:
            action.help = re.sub(
                r"(?<=\(default: )(?:True|False)(?=\)$)", lambda found: found[0].lower(), action.help
            )
            action.help = re.sub(r" ?\(default(?:: (?:None|\(\)|\{\}|)| factory: .*)\)$", "", action.help)


def _value(kind: str, field: str) -> str:
    if kind in ("int", "float"):
        return next((unit for end, unit in _UNIT.items() if re.search(rf"(^|_){end}$", field)), "N")
    if kind.startswith(("tuple[str", "list[str")):
        return "LIST"
    named = {"bool": "{true,false}", "str": "TEXT", "SecretStr": "TEXT", "Path": "PATH"}
    return named.get(kind, kind if kind.startswith("{") else "JSON")


def flag(field: str) -> str:
    """The flag of a field."""
    return "--" + field.replace("_", "-")


def redis_url(url: str) -> str:
    """A URL as the client library reads it: Valkey's schemes are Redis' under another name.

    Args:
        url: `redis://`, `rediss://`, `valkey://` or `valkeys://`.
    """
    scheme, separator, rest = url.partition("://")
    return {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme) + separator + rest


def location(url: str) -> str:
    """A URL without user and password, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def configure_logging(level: str, *, sparse: Sequence[str] = ()) -> None:
    """Log to standard error.

    Args:
        level: Minimum level.
        sparse: Loggers whose tracebacks any client can cause; see `SparseTracebacks`.
    """
    logging.basicConfig(level=level.upper(), format=LOG_FORMAT)
    for name in sparse:
        logging.getLogger(name).addFilter(SparseTracebacks())


def _unreadable(message: str, settings: type[BaseSettings]) -> str:
    _, unknown, names = message.partition("unrecognized arguments: ")
    if not unknown:
        return message[:1].lower() + message[1:]
    given = names.split()[0].partition("=")[0]
    nearest = difflib.get_close_matches(given, map(flag, settings.model_fields), n=1)
    return f"no option {given}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def _invalid(item: dict[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    if not item["loc"]:
        return message
    field, *inner = item["loc"]
    name = flag(str(field)) + "".join(f"[{part}]" for part in inner)
    if item["type"] == "missing":
        return f"{name} is required"
    return f"{name}: {message[:1].lower()}{message[1:]}"


TRACEBACK_EVERY_S = 1.0
"""An error that any client can cause must not fill the disk."""


class SparseTracebacks(logging.Filter):
    """Lets one record with a traceback pass in `TRACEBACK_EVERY_S`, with the number of those left out before it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_s = float("-inf")
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter.filter`."""
        if not record.exc_info:
            return True
        now_s = self._clock()
        if now_s < self._next_s:
            self._left_out += 1
            return False
        if self._left_out:
            record.msg = f"{record.msg} ({self._left_out} like it were left out before)"
        self._next_s, self._left_out = now_s + TRACEBACK_EVERY_S, 0
        return True
