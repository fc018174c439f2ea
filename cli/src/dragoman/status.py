"""`dragoman status`, and `kubectl translations`: the TranslationDeployments of a cluster, or one of them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman.command_line import seconds
from dragoman.exits import DONE, FAILED, INTERRUPTED, UNREACHABLE, USAGE
from dragoman.fleet import COLUMNS, Manifest, details, row
from dragoman_contract.kubernetes import API_VERSION, KIND, PLURAL
from dragoman_kube.client import KubeClient, connect
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError, ConfigurationError, NotFoundError, RefusedError
from dragoman_kube.kinds import Kind

TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)
REQUEST_TIMEOUT_S = 10.0
PIPE_COLUMNS = 10_000
"""Width of a table that no terminal shows: nothing is shortened."""


class NotOneError(Exception):
    """No object has the name, or several have; the message says which."""


def main(argv: list[str], prog: str = "dragoman status") -> int:
    """Print the table or the object; see `dragoman.exits` for the status."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(argv)
    try:
        return asyncio.run(_run(options))
    except NotOneError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return FAILED
    except ClusterError as error:
        print(f"{prog}: {_explained(error)}", file=sys.stderr)
        if isinstance(error, ConfigurationError):
            return USAGE
        return FAILED if isinstance(error, RefusedError | NotFoundError) else UNREACHABLE
    except KeyboardInterrupt:
        # The end of --watch.
        return DONE if options.watch else INTERRUPTED


def plugin() -> int:
    """`kubectl translations`: kubectl runs the command `kubectl-translations` on PATH with the arguments after it.

    Source: https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/
    """
    return main(sys.argv[1:], "kubectl translations")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one TranslationDeployment; default: all")
    parser.add_argument("-n", "--namespace", default="", help="default: all namespaces")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: as kubectl finds it")
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig; default: its current one")
    parser.add_argument("-w", "--watch", action="store_true", help="show changes until interrupted")
    parser.add_argument(
        "--interval", type=seconds, default=2.0, metavar="SECONDS", help="of --watch (default: 2)"
    )


async def _run(options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_COLUMNS)
    async with connect(
        await configuration(options.kubeconfig, options.context), timeout_s=REQUEST_TIMEOUT_S
    ) as cluster:
        if not options.watch:
            console.print(await _view(cluster, options))
        elif console.is_terminal:
            await _watch_terminal(cluster, options, console)
        else:
            await _watch_pipe(cluster, options, console)
    return DONE


async def _watch_terminal(cluster: KubeClient, options: argparse.Namespace, console: Console) -> None:
    shown = await _view(cluster, options)
    with Live(shown, console=console, auto_refresh=False) as live:
        live.refresh()
        while True:
            await asyncio.sleep(options.interval)
            try:
                shown = await _view(cluster, options)
                live.update(shown, refresh=True)
            except (ClusterError, NotOneError) as error:
                # What was last known stays.
                live.update(Group(shown, Text(str(error), style="red")), refresh=True)


async def _watch_pipe(cluster: KubeClient, options: argparse.Namespace, console: Console) -> None:
    printed = failure = ""
    while True:
        try:
            view = await _view(cluster, options)
        except (ClusterError, NotOneError) as error:
            if not printed:
                raise
            if str(error) != failure:
                print(error, file=sys.stderr)
            failure = str(error)
            await asyncio.sleep(options.interval)
            continue
        failure = ""
        with console.capture() as captured:
            console.print(view)
        if captured.get() != printed:
            printed = captured.get()
            sys.stdout.write(printed)
            sys.stdout.flush()
        await asyncio.sleep(options.interval)


async def _view(cluster: KubeClient, options: argparse.Namespace) -> Table | Text:
    found = await cluster.list(TRANSLATION_DEPLOYMENT, options.namespace)
    now = datetime.now(UTC)
    if options.name:
        return Text("\n".join(details(_named(found.items, options.name), now)))
    return table(found.items, now)


def _named(manifests: Sequence[Manifest], name: str) -> Manifest:
    namespace, _, name = name.rpartition("/")
    found = [
        manifest
        for manifest in manifests
        if manifest["metadata"]["name"] == name and namespace in ("", manifest["metadata"]["namespace"])
    ]
    if len(found) == 1:
        return found[0]
    if found:
        namespaces = ", ".join(sorted(manifest["metadata"]["namespace"] for manifest in found))
        raise NotOneError(f"{name} is in several namespaces: {namespaces}; choose one with --namespace")
    raise NotOneError(f"no TranslationDeployment {name}; dragoman status lists all")


def table(manifests: Sequence[Manifest], now: datetime) -> Table | Text:
    """The objects, sorted by namespace and name; a sentence where there are none."""
    if not manifests:
        return Text("no TranslationDeployments; examples/demo.yaml is one to apply")
    shown = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for line in sorted(row(manifest, now) for manifest in manifests):
        shown.add_row(*map(Text, line))
    return shown


def _explained(error: ClusterError) -> str:
    if isinstance(error, NotFoundError):
        return f"{error}; Dragoman is not installed in this cluster: docs/how-to/install.md"
    if error.status in (401, 403):
        return f"{error}; with rights in one namespace alone, name it with --namespace"
    return str(error)
