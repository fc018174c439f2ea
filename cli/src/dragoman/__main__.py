"""Runs `dragoman COMMAND …` in the distribution that has the command.

Distributions name their commands in the entry point group `dragoman.commands`. Only the module of the chosen command is
imported, so an image holds the command line and its own part.
"""

from __future__ import annotations

import errno
import importlib.metadata
import os
import resource
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import NamedTuple

GROUP = "dragoman.commands"
ENOUGH_FILES = 65_536
"""Each connection is an open file, and login shells of many distributions start with a limit of 1,024."""
CHECKOUT = Path(__file__).parents[3]
"""The root of the checkout where this file is in one."""


class Command(NamedTuple):
    """A subcommand: the folders of a checkout to install for it beside `cli`, and one line of help."""

    folders: str
    help: str


OPERATOR = "contract kube system operator"
SERVICE = "contract protocols http system service"
ROUTER = "contract protocols http system kube router"
PEOPLE = "contract protocols kube cli[people]"

COMMANDS = {
    "operator": Command(OPERATOR, "run the Kubernetes operator"),
    "crd": Command(OPERATOR, "print the CustomResourceDefinition"),
    "images": Command(OPERATOR, "list every image and model of an installation"),
    "serve": Command(f"{SERVICE}[gpu]", "run one engine pod by hand"),
    "fetch": Command(SERVICE, "download a model into a cache, and verify it"),
    "router": Command(ROUTER, "run a router: one address for all deployments"),
    "check": Command(ROUTER, "translate a sentence through a router, and print what failed"),
    "devcluster": Command(
        "contract kube devcluster", "start, stop or show a Kubernetes cluster on this machine"
    ),
    "demo": Command(
        "contract protocols http system kube service devcluster cli[demo]",
        "apply an example, translate, tear down",
    ),
    "simulate": Command(f"{OPERATOR} simulate", "replay traffic against the autoscaler"),
    "bench": Command(
        "contract protocols http system kube operator router service devcluster simulate tune bench",
        "measure the pod against its past and its peers",
    ),
    "tune": Command("contract tune", "find engine settings for a load by measuring"),
    "translate": Command(PEOPLE, "translate texts, files and folders by a running service"),
    "status": Command(PEOPLE, "show the TranslationDeployments of a cluster, or explain one"),
    "models": Command("contract", "list models for each prompt family, with licences and sizes"),
    "completion": Command(PEOPLE, "print what completes these commands in a shell"),
}


def usage() -> str:
    """The overview that `dragoman --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: dragoman COMMAND [OPTIONS]",
            "",
            *lines,
            "",
            "dragoman COMMAND --help describes its options, dragoman --version prints the version.",
        ]
    )


def entry_point(command: str) -> EntryPoint | None:
    """Where a command's `main(argv) -> exit status` is; None where no installed distribution has the command.

    A checkout whose sources are on the path without having been installed has no metadata; its pyproject files hold
    the same entry points.
    """
    for found in importlib.metadata.entry_points(group=GROUP, name=command):
        return found
    for file in CHECKOUT.glob("*/pyproject.toml"):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        if target := project.get("entry-points", {}).get(GROUP, {}).get(command):
            return EntryPoint(command, target, GROUP)
    return None


def installation(command: str) -> str:
    """What installs a command: no distribution is in a registry."""
    folders = COMMANDS[command].folders.split()
    if not any(folder.startswith("cli") for folder in folders):
        folders.append("cli")
    named = " ".join(f"'./{folder}'" if "[" in folder else f"./{folder}" for folder in folders)
    return f"in a checkout of Dragoman, run: pip install {named}"


def version() -> str:
    """Of this distribution; of a checkout that is not installed, as its pyproject file has it."""
    try:
        return importlib.metadata.version("dragoman")
    except importlib.metadata.PackageNotFoundError:
        text = (CHECKOUT / "cli/pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])


def raise_file_limit() -> None:
    """Raise the soft limit of open files as far as the hard limit allows; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < ENOUGH_FILES:
        enough = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(ENOUGH_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, enough), hard))


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit status (2 for an unknown command; 1 if its output cannot be written)."""
    try:
        try:
            return _run(argv)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # Such as by `| head`. What is left in the buffer would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"dragoman: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(argv: list[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in ([], ["-h"], ["--help"]):
        print(usage())
        return 0 if arguments else 2
    if "--version" in arguments[:2]:
        print(f"dragoman {version()}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"dragoman: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    raise_file_limit()
    target = entry_point(name)
    if target is None:
        print(f"dragoman {name}: not in this installation; {installation(name)}", file=sys.stderr)
        return 1
    try:
        run: Callable[[list[str]], int] = target.load()
    except ModuleNotFoundError as missing:
        if "." in (missing.name or ""):
            raise  # A module of a package that is there: a defect, not an installation's choice.
        print(
            f"dragoman {name}: the package {missing.name!r} is not installed; {installation(name)}",
            file=sys.stderr,
        )
        return 1
    return run(rest)


if __name__ == "__main__":
    sys.exit(main())
