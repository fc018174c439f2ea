"""On a GPU: starts vLLM's engine process as a fork of a fork server, which imports vLLM at the same time as the pod.

A fork cannot use CUDA that was initialized before it: `may_use_cuda` says whether an import did that. The pod's own
process is not forked there, because it reads the GPU's metrics.

Source: https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess

from dragoman_service.engine.vllm.start_report import end_with_parent

log = logging.getLogger(__name__)

PRELOADED = "dragoman_service.engine.vllm.preload"
"""Imports vLLM in the fork server."""


class ServerFork(ForkServerProcess):
    """A fork with the environment of now: vLLM changes it after the fork server was started."""

    _environment: Mapping[str, str] = {}

    def start(self) -> None:
        """Fork it."""
        self._environment = dict(os.environ)
        super().start()

    def run(self) -> None:
        """Run the target with the environment; end with the pod.

        The handler that ends a spawned process is made while vLLM is imported, which was in the fork server.
        """
        end_with_parent()
        gc.enable()
        os.environ.clear()
        os.environ.update(self._environment)
        torch, threads = sys.modules.get("torch"), os.environ.get("OMP_NUM_THREADS", "")
        if torch is not None and threads.isdecimal():
            # torch has read it while it was imported.
            torch.set_num_threads(int(threads))
        super().run()


class ServerContext(ForkServerContext):
    """In the place of the context that vLLM would start its engine process with."""

    Process = ServerFork


CONTEXT = ServerContext()


def begin() -> None:
    """Start the fork server, which begins to import vLLM; with the environment that vLLM reads then."""
    multiprocessing.set_forkserver_preload([PRELOADED])
    forkserver.ensure_running()


def context(_loop: asyncio.AbstractEventLoop) -> ServerContext | None:
    """How vLLM's engine process is forked; None if a fork cannot use CUDA. The fork server has no event loop."""
    return CONTEXT if may_use_cuda() else None


def may_use_cuda() -> bool:
    """Whether a fork may use CUDA: no import of the fork server has initialized it, and the fork server answers.

    Waits until the imports are complete.
    """
    try:
        return not in_fork(partial(_used_cuda, PRELOADED))
    except EOFError:
        return False


def _used_cuda(preloaded: str) -> bool:
    return bool(getattr(sys.modules.get(preloaded), "used_cuda", False))


def inspect_models() -> None:
    """Have vLLM inspect the model's class in a fork instead of in a new process, which imports vllm once more."""
    from vllm.model_executor.models import registry

    in_new_process = registry._run_in_subprocess
    if in_new_process.__module__ == __name__:
        return

    def run(task: Callable[[], object]) -> object:
        try:
            return in_fork(task)
        except Exception as error:
            log.debug("the model is inspected in a new process", exc_info=error)
            return in_new_process(task)

    registry._run_in_subprocess = run


def in_fork(task: Callable[[], object]) -> object:
    """The result of a task in a fork; both go through pickles.

    Raises:
        EOFError: It raised, or the process died.
    """
    import cloudpickle

    receiving, sending = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_send_result, args=(sending, cloudpickle.dumps(task)), daemon=True)
    process.start()
    sending.close()
    try:
        return pickle.loads(receiving.recv_bytes())
    finally:
        receiving.close()
        process.join()


def _send_result(sending: Connection, task: bytes) -> None:
    if "vllm" in sys.modules:
        from vllm.plugins import load_general_plugins

        load_general_plugins()
    sending.send_bytes(pickle.dumps(pickle.loads(task)()))
