"""Dispatches `dragoman COMMAND …` to the part that owns the command.

Parts are imported only when asked for, so that each image holds no more than its own extra.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import NamedTuple


class Command(NamedTuple):
    """A subcommand: where its `main(argv) -> exit status` lives, and one line of help."""

    module: str
    extra: str
    help: str


COMMANDS = {
    "operator": Command("dragoman_operator.__main__", "operator", "run the Kubernetes operator"),
    "crd": Command("dragoman_operator.api.crd", "operator", "print the CustomResourceDefinition"),
    "serve": Command("dragoman_service.__main__", "service,cpu", "run one engine pod by hand"),
    "router": Command("dragoman_router.__main__", "router", "run a router: one address for all deployments"),
    "local": Command(
        "dragoman_devcluster.__main__", "local", "up, down or status of the cluster on this machine"
    ),
    "demo": Command("dragoman.demo", "local,service,cpu", "apply an example, translate, tear down"),
    "simulate": Command("dragoman_simulate.__main__", "simulate", "replay traffic against the autoscaler"),
    "bench": Command(
        "dragoman_bench.__main__", "bench,service", "measure the pod against its past and its peers"
    ),
    "tune": Command("dragoman_tune.__main__", "tune,service", "find engine settings for a load by measuring"),
    "translate": Command("dragoman.translate", "", "translate a text through a running service"),
}


def usage() -> str:
    """The overview that `dragoman --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        ["usage: dragoman COMMAND [OPTIONS]", "", *lines, "", "dragoman COMMAND --help tells more."]
    )


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand and return its exit status (2 for a command line that cannot be understood)."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] in ([], ["-h"], ["--help"]):
        print(usage())
        return 0 if arguments else 2
    name, *rest = arguments
    command = COMMANDS.get(name)
    if command is None:
        print(f"dragoman: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package == command.module.partition(".")[0]:
            print(
                f"dragoman {name}: this installation has no {package}; in a checkout, "
                f"pip install -e '.[{command.extra}]'",
                file=sys.stderr,
            )
            return 1
        if package.startswith("dragoman"):
            raise
        print(
            f"dragoman {name}: the package {missing.name!r} is not installed; "
            f"install dragoman[{command.extra}]",
            file=sys.stderr,
        )
        return 1
    run: Callable[[list[str]], int] = module.main
    return run(rest)


if __name__ == "__main__":
    sys.exit(main())
