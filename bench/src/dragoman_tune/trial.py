"""Measures one setting: a pod with it, loaded for a while, and gone again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_tune.client import connections, translate
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.errors import ServerError
from dragoman_tune.figures import figures
from dragoman_tune.requests import Answer, Request, repeated
from dragoman_tune.search import Setting, Trial
from dragoman_tune.server import Server, free_port, running

WARM_UP = Pace(window_s=1.0, ramp_s=10.0, drain_s=10.0)
"""What is compiled or allocated on first use must not fall into the window."""

TUNED_FLAGS = ("--max-num-seqs", "--max-num-batched-tokens")


@dataclass(frozen=True)
class Workload:
    """What every trial is loaded with."""

    requests: Sequence[Request]
    in_flight: int
    pace: Pace


@dataclass(frozen=True)
class Pods:
    """How trials start their pods.

    Args:
        flags: For `dragoman serve`, without host, port and what is tuned.
    """

    flags: Sequence[str]
    start_s: float
    logs: Path

    def command(self, setting: Setting, port: int) -> list[str]:
        """The command line of a pod."""
        return [
            *(sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(port)),
            *(TUNED_FLAGS[0], str(setting.max_num_seqs), TUNED_FLAGS[1], str(setting.max_num_batched_tokens)),
            *self.flags,
        ]


async def measured(setting: Setting, pods: Pods, workload: Workload) -> Trial:
    """Start a pod with a setting and load it.

    Returns:
        What it did; a pod that does not start or dies is a trial that failed, not an error.
    """
    port = free_port()
    log = pods.logs / f"pod-{setting.max_num_seqs}-{setting.max_num_batched_tokens}.log"
    server = Server("the pod", pods.command(setting, port), port, "/readyz", log, {})
    try:
        async with running(server, pods.start_s), connections() as session:

            async def send(request: Request) -> Answer:
                return await translate(session, server.url, request)

            in_flight = workload.in_flight
            await closed_loop(send, repeated(workload.requests, 1), in_flight, WARM_UP, ended=server.ended)
            requests = repeated(workload.requests, 2)
            window = await closed_loop(send, requests, in_flight, workload.pace, ended=server.ended)
    except ServerError as error:
        return Trial(setting, 0.0, None, str(error))
    measured_figures = figures(window)
    failed = (
        None
        if measured_figures.answered
        else f"no request was answered: {measured_figures.errors or 'the window is too short'}"
    )
    return Trial(
        setting,
        measured_figures.requests_per_s,
        measured_figures.p95_s,
        failed,
        measured_figures.unanswered_ratio,
    )
