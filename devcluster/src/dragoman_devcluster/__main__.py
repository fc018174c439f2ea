"""`dragoman devcluster`: start, stop or show the cluster on this machine."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman_devcluster.errors import LocalClusterError
from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import DEFAULT_DIR, Backoff, ClusterOptions
from dragoman_devcluster.state import READY, read_supervisor
from dragoman_devcluster.supervisor import supervise
from dragoman_kube.errors import ClusterError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 for success, 1 if it failed or (status) nothing runs, 2 for a wrong command line."""
    options = _parser().parse_args(argv)
    if sys.platform != "linux":
        return _fail("needs Linux, where all of 127.0.0.0/8 is this machine")
    try:
        return int(options.run(options))
    except (ClusterError, LocalClusterError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dragoman devcluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start the cluster in the background")
    up.set_defaults(run=_up)
    up.add_argument("--api", choices=("auto", "embedded", "kube-apiserver"), default="auto")
    up.add_argument("--port", type=int, default=0, help="port of the API on 127.0.0.1 (default: a free one)")
    up.add_argument("--gpus", type=int, help="GPUs that the node offers (default: what nvidia-smi lists)")
    up.add_argument(
        "--backoff",
        default="10,300",
        metavar="FIRST,LONGEST",
        help="of a crashing container or API server, in s",
    )
    up.add_argument(
        "--stop-grace",
        type=float,
        default=ClusterOptions.stop_grace_s,
        metavar="SECONDS",
        help="maximum time of a container to end when the cluster stops (default: %(default)g)",
    )
    up.add_argument(
        "--preload",
        metavar="MODULE",
        help="fork the containers of dragoman from a process that has imported this module; for tests",
    )
    up.add_argument("--api-only", action="store_true", help="run no controllers and no node")
    up.add_argument(
        "--audit-policy",
        type=Path,
        metavar="FILE",
        help="write kube-apiserver's audit log by this policy, to logs/audit.log in --dir",
    )
    up.add_argument("--foreground", action="store_true", help="run here until interrupted")
    down = commands.add_parser("down", help="stop it; keeps its logs and claims")
    down.set_defaults(run=_down)
    status = commands.add_parser("status", help="what runs")
    status.set_defaults(run=_status)
    status.add_argument("--json", action="store_true", help="as one JSON object, for programs")
    for command in (up, down, status):
        command.add_argument(
            "--dir", type=Path, default=DEFAULT_DIR, help="state directory (default: %(default)s)"
        )
    return parser


def _up(arguments: argparse.Namespace) -> int:
    initial_s, maximum_s = map(float, arguments.backoff.split(","))
    options = ClusterOptions(
        dir=arguments.dir,
        api=arguments.api,
        port=arguments.port,
        gpus=arguments.gpus,
        backoff=Backoff(initial_s, maximum_s),
        stop_grace_s=arguments.stop_grace,
        api_only=arguments.api_only,
        preload=arguments.preload,
        audit_policy=arguments.audit_policy,
    )
    if arguments.foreground:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        asyncio.run(supervise(options))
        return 0
    before = read_supervisor(options.dir)
    was_up = before is not None and before.is_alive and before.phase == READY
    running = bring_up(options)
    kubeconfig = options.dir.resolve() / "kubeconfig"
    _say(f"the local cluster {'is already' if was_up else 'is'} up: {running.api} at {running.url}")
    commands = (
        f"export KUBECONFIG={kubeconfig}",
        "kubectl get nodes",
        "dragoman devcluster status",
        "dragoman devcluster down",
    )
    _say("".join(f"\n  {command}" for command in commands))
    return 0


def _down(arguments: argparse.Namespace) -> int:
    _say("stopped" if take_down(arguments.dir) else f"no cluster runs in {arguments.dir}")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    running = read_supervisor(arguments.dir)
    if running is None or not running.is_alive:
        _say(f"no cluster runs in {arguments.dir}")
        return 1
    if arguments.json:
        _say(json.dumps({"api": running.api, "url": running.url, "phase": running.phase, "pid": running.pid}))
        return 0
    kubeconfig = arguments.dir.resolve() / "kubeconfig"
    _say(f"{running.api or 'cluster'} {running.url} is {running.phase}, process {running.pid}")
    _say(f"pods: kubectl --kubeconfig {kubeconfig} get pods --all-namespaces")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is the command line


def _fail(why: str) -> int:
    print(f"dragoman devcluster: {why}", file=sys.stderr)  # noqa: T201 - this is the command line
    return 1


if __name__ == "__main__":
    sys.exit(main())
