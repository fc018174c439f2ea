"""Starts vLLM's engine process as a fork of the pod's own process, which has imported vLLM.

The import takes most of the start of a small model. On a CPU, importing in one process instead of two takes half of the
CPU time; the processes share its memory.

A fork cannot use CUDA that was initialized before it. The pod's process does not use CUDA, and opens NVML for
its metrics only after the fork (`engine.devices`).

Source: https://docs.vllm.ai/en/latest/design/multiprocessing/
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.context import ForkContext, ForkProcess

from dragoman_service.engine.vllm.start_report import end_with_parent

PAUSE_S = 5.0
"""Maximum wait for the event loop to pause; it may have ended."""

ENGINE = ("vllm.v1.engine.async_llm", "vllm.v1.engine.core")
"""What the pod's own process uses, too."""

MODEL = ("vllm.model_executor.model_loader.default_loader", "vllm.model_executor.models.llama")
CPU_WORKER = ("vllm.v1.worker.cpu_worker", "vllm.v1.attention.backends.cpu_attn", *MODEL)
GPU_WORKER = (
    "vllm.v1.worker.gpu_worker",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.model_executor.warmup.kernel_warmup",
    "vllm.v1.attention.backends.flash_attn",
    *MODEL,
)
"""What the engine process imports later. None of it initializes CUDA (seen with vLLM 0.32)."""


def preload() -> None:
    """Import vLLM, and what its engine process needs of it; what is missing in a release is left to that process.

    The garbage collector is off meanwhile, which takes an eighth off the import; forks turn it on again. What is
    imported is permanent, so that no collection of a fork copies its pages.
    """
    gc.disable()
    for name in ENGINE:
        import_module(name)
    from vllm.platforms import current_platform

    worker = CPU_WORKER if current_platform.is_cpu() else GPU_WORKER if current_platform.is_cuda() else ()
    for name in worker:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()


def inspect_models() -> None:
    """Have vLLM inspect the model's class in this process instead of in a new one, which imports vLLM once more.

    vLLM does so to keep CUDA out of this process: `context` says if the class has initialized it.
    """
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda task: task()


def context(loop: asyncio.AbstractEventLoop) -> ForkContext | None:
    """How vLLM's engine process is forked; None if CUDA is initialized in this process.

    Args:
        loop: The pod's, which runs in another thread. It pauses at the fork: a lock that it holds would stay locked.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return None

    class PodProcess(PodFork):
        def start(self) -> None:
            with paused(loop):
                super().start()

    class PodContext(ForkContext):
        Process = PodProcess

    return PodContext()


class PodFork(ForkProcess):
    """A fork that has neither the pod's connections nor its signal handlers, and ends with the pod."""

    def run(self) -> None:
        """Run the target."""
        # Through it, a signal of this process would reach the pod's event loop.
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        leave_connections()
        end_with_parent()
        gc.enable()
        super().run()


@contextmanager
def paused(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have an event loop of another thread pause.

    Raises:
        RuntimeError: It is closed.
    """
    pauses, ends = threading.Event(), threading.Event()

    def pause() -> None:
        pauses.set()
        ends.wait()

    loop.call_soon_threadsafe(pause)
    pauses.wait(PAUSE_S)
    try:
        yield
    finally:
        ends.set()


def leave_connections() -> None:
    """Close all listeners and TCP connections: they would stay open until this process ends, too.

    Their numbers stay in use, so that what the pod closes later is no other file.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as shared:
                    family = shared.family
                if family in (socket.AF_INET, socket.AF_INET6):
                    os.dup2(nothing, number)
    os.close(nothing)
