"""Measures one setting: a pod with it, loaded for a while, and gone again."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman_tune.client import connections, translate
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.errors import ServerError
from dragoman_tune.figures import Figures, figures
from dragoman_tune.requests import SampleRequest, repeated
from dragoman_tune.search import EngineSetting, Trial
from dragoman_tune.server import Server, running, settled

WARM_UP = Pace(window_s=1.0, ramp_s=10.0, drain_s=10.0)
"""What is compiled or allocated on first use must not fall into the window."""

START_S = 900.0
"""What a pod gets to start: the first one may have to compile."""

TUNED_FLAGS = ("--max-num-seqs", "--max-num-batched-tokens")


@dataclass(frozen=True)
class Workload:
    """What all trials of a sweep share.

    Args:
        flags: For `dragoman serve`, without host, port and what is tuned.
        requests: A sample, which is repeated.
        logs: Directory for the pods' logs.
    """

    flags: Sequence[str]
    requests: Sequence[SampleRequest]
    in_flight: int
    pace: Pace
    logs: Path


async def measured(setting: EngineSetting, workload: Workload) -> Trial:
    """Start a pod with a setting and load it.

    Returns:
        What was measured; a pod that does not start or dies is a trial that failed, not an error.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sequences, tokens = str(setting.max_num_seqs), str(setting.max_num_batched_tokens)
    command = [
        *(sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(port)),
        *(TUNED_FLAGS[0], sequences, TUNED_FLAGS[1], tokens, *workload.flags),
    ]
    log = workload.logs / f"pod-{sequences}-{tokens}.log"
    server = Server("the pod", command, port, "/readyz", log, {})
    try:
        async with running(server, START_S), connections() as session:
            send = partial(translate, session, server.url)

            async def load(seed: int, pace: Pace) -> Figures:
                requests = repeated(workload.requests, seed)
                return figures(
                    await closed_loop(send, requests, workload.in_flight, pace, ended=server.ended)
                )

            await settled(server)
            await load(1, WARM_UP)
            found = await load(2, workload.pace)
    except ServerError as error:
        return Trial(setting, 0.0, None, str(error))
    failed = f"no request was answered: {found.errors or 'the window is too short'}"
    return Trial(
        setting,
        found.requests_per_s,
        found.p95_s,
        None if found.answered else failed,
        found.unanswered_ratio,
    )
