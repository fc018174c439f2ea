"""`dragoman completion`: a script that completes `dragoman` in a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab

from dragoman import models, status, translate_job
from dragoman.__main__ import COMMANDS

DETAILED = {
    "translate": translate_job.add_arguments,
    "status": status.add_arguments,
    "models": models.add_arguments,
}
"""Commands whose flags are completed; of the others, names."""


def main(argv: list[str]) -> int:
    """Print the script; 0."""
    parser = argparse.ArgumentParser(prog="dragoman completion", description=__doc__)
    add_arguments(parser)
    print(shtab.complete(command_line(), parser.parse_args(argv).shell))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)


def command_line() -> argparse.ArgumentParser:
    """All commands as one parser, for completion alone: each command has a parser of its own."""
    parser = argparse.ArgumentParser(prog="dragoman")
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, help=command.help)
        if add := {**DETAILED, "completion": add_arguments}.get(name):
            add(added)
        for action in added._actions:
            if action.type is Path or action.dest == "output":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return parser
