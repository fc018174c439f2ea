"""vLLM within the pod, from its start to its end: environment, weights, arguments, its processes.

Imports of vllm are inside functions: they read the environment once, and take seconds that the HTTP server must
not wait for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dragoman_protocols.errors import EngineDeadError
from dragoman_service.engine.cpus import usable_cpus
from dragoman_service.engine.protocol import Phase, Progress, Report
from dragoman_service.engine.threads import in_daemon_thread
from dragoman_service.engine.vllm import weights
from dragoman_service.engine.vllm.arguments import cpu_arguments, engine_arguments, gpu_arguments
from dragoman_service.engine.vllm.failures import reason
from dragoman_service.engine.vllm.start_report import failure, logging_config, read_report
from dragoman_service.errors import ModelLoadError, StartError
from dragoman_service.settings import Settings

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.25
"""How often the report of vLLM's processes is read while they start."""

STOP_S = 20
"""What a start that is called off gets to notice: an import of vLLM cannot be interrupted."""


class CalledOffError(Exception):
    """The pod is told to end while vLLM starts."""


class Runtime:
    """One AsyncLLM, as `llm`: None before it is started and once it is stopped.

    Args:
        settings: The pod's.
        stepped: Called after each step of vLLM's scheduler, on the event loop.
    """

    def __init__(self, settings: Settings, stepped: Callable[[], None]) -> None:
        self._settings = settings
        self._stepped = stepped
        # Read here by those who ask it, and kept in no variable of theirs: frames of an import can outlive it, and
        # AsyncLLM must be collected before the interpreter ends.
        self.llm: Any = None
        self._closing = threading.Event()
        self._starting: asyncio.Task[None] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="dragoman-")
        self._report_path = Path(self._scratch.name) / "start.jsonl"

    async def start(self, report: Report, settled: Callable[[], None]) -> None:
        """Start vLLM in a thread, so that the event loop goes on answering probes.

        Args:
            report: Told of each phase as vLLM's processes enter it.
            settled: Called in that thread once `llm` is there.

        Raises:
            CalledOffError: `call_off` ended it.
            StartError: The pod's device or model is not what it was said to be.
            Exception: Whatever vLLM raises; `load_error` makes a sentence of it.
        """
        self._starting = asyncio.create_task(in_daemon_thread(lambda: self._start(report, settled)))
        following = asyncio.create_task(self._follow(report))
        try:
            await asyncio.shield(self._starting)
        finally:
            following.cancel()

    async def call_off(self) -> None:
        """End a start that is under way: vLLM's processes die, upon which its constructor gives up."""
        self._closing.set()
        if self._starting is None:
            return
        try:
            async with asyncio.timeout(STOP_S):
                while not self._starting.done():
                    for child in multiprocessing.active_children():
                        child.terminate()
                    await asyncio.wait((self._starting,), timeout=LOOK_EVERY_S)
        except TimeoutError:
            log.warning("vLLM's start could not be called off within %d s", STOP_S)

    async def stop(self) -> None:
        """Stop vLLM and wait for its processes to end."""
        llm, self.llm = self.llm, None
        if llm is not None:
            if llm.output_handler is not None:
                # Or else it logs the end of the engine process as a failure.
                llm.output_handler.cancel()
                await asyncio.gather(llm.output_handler, return_exceptions=True)
            await in_daemon_thread(llm.shutdown)
        self._scratch.cleanup()

    def load_error(self, error: Exception) -> ModelLoadError:
        """Why vLLM did not start, by what its processes said last, or else by what it raised here."""
        _, reported = read_report(self._report_path)
        log.debug("vLLM did not start", exc_info=error)
        return ModelLoadError(reason(reported or failure(error), self._settings.model))

    def death(self) -> EngineDeadError:
        """That vLLM's engine process is gone, and why, where it said so."""
        _, reported = read_report(self._report_path)
        said = (
            f"{': '.join(reported.chain[0])}" if reported else "it did not say why; it may have been killed"
        )
        return EngineDeadError(f"vLLM's engine process is gone ({said[:300]}); this pod must restart")

    def _start(self, report: Report, settled: Callable[[], None]) -> None:
        config_path = Path(self._scratch.name) / "logging.json"
        level = self._settings.log_level.upper()
        config_path.write_text(json.dumps(logging_config(self._report_path, level)), encoding="utf-8")
        os.environ.update(environment(self._settings, config_path, usable_cpus(), os.environ))
        directory = weights.local_directory(self._settings.model)
        arguments = _arguments(self._settings)
        self._go_on()
        arguments["model"] = directory or self._fetched(report)
        self._go_on()
        _read_environment_anew()
        self.llm = _started(arguments, self._stepped, whole_answers=self._settings.whole_answers)
        settled()
        _keep_environment()

    def _fetched(self, report: Report) -> str:
        settings = self._settings
        if weights.is_remote_store(settings.model) or "load_format" in settings.engine_args:
            # Which files there are to fetch is vLLM's to know.
            return settings.model
        found = weights.fetch(
            settings.model, settings.revision, lambda share: report(Progress(Phase.DOWNLOADING, share))
        )
        report(Progress(Phase.LOADING))
        return str(found)

    def _go_on(self) -> None:
        """Give up between two steps once the pod is told to end."""
        if self._closing.is_set():
            raise CalledOffError

    async def _follow(self, report: Report) -> None:
        last: Phase | None = None
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            phase, _ = read_report(self._report_path)
            if phase is not None and phase is not last:
                report(Progress(phase))
                last = phase


def _arguments(settings: Settings) -> dict[str, Any]:
    from vllm import AsyncEngineArgs
    from vllm.platforms import current_platform

    if current_platform.device_type != settings.device:
        raise StartError(
            f"device {settings.device} was asked for and vLLM finds "
            f"{current_platform.device_type or 'none'} here: "
            + (
                "request nvidia.com/gpu and use an image with vLLM for CUDA, or set device: cpu"
                if settings.device == "cuda"
                else "use an image with vLLM for CPU, or set device: cuda"
            )
        )
    arguments = engine_arguments(settings, [known.name for known in fields(AsyncEngineArgs)])
    if settings.device == "cpu":
        return cpu_arguments(arguments, os.environ)
    return gpu_arguments(arguments)


def _started(arguments: dict[str, Any], stepped: Callable[[], None], *, whole_answers: bool) -> Any:
    """AsyncLLM with its processes up; the defaults are those of vLLM's own API server."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Steps(StatLoggerBase):  # type: ignore[misc]
        """Tells of each step; what vLLM hands over beside it may change from release to release."""

        def __init__(self, *_config: Any, **_more: Any) -> None:
            """Nothing to keep."""

        def record(self, *_stats: Any, **_more: Any) -> None:
            """A step is over."""
            stepped()

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    context = UsageContext.OPENAI_API_SERVER
    config = AsyncEngineArgs(**arguments).create_engine_config(context)
    if whole_answers:
        from dragoman_service.engine.vllm.scheduler import successor

        scheduling = config.scheduler_config
        scheduling.scheduler_cls = successor(scheduling.get_scheduler_cls()) or scheduling.scheduler_cls
    return AsyncLLM.from_vllm_config(config, usage_context=context, stat_loggers=[Steps])


def _keep_environment() -> None:
    """Let vLLM read its environment no more: it does at every token, which took a fifth of this process's time.

    vLLM's own processes do so themselves, its API server does not. Releases without such a cache go on reading.
    """
    from vllm import envs

    getattr(envs, "enable_envs_cache", lambda: None)()


def _read_environment_anew() -> None:
    """Undo `_keep_environment`, for an engine that is started after another in the same process."""
    from vllm import envs

    getattr(envs, "disable_envs_cache", lambda: None)()


def environment(
    settings: Settings, report_config: Path, cpus: int, given: Mapping[str, str]
) -> dict[str, str]:
    """What to add to the environment before vLLM is imported; nothing that is already set there.

    Args:
        settings: The pod's.
        report_config: Logging configuration for vLLM's processes.
        cpus: CPUs that this pod may use.
        given: The environment as it is.
    """
    wanted = {
        # No usage report leaves the pod.
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # A fork of a process that has threads and an event loop can deadlock.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_LOGGING_CONFIG_PATH": str(report_config),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if settings.traces_endpoint is not None:
        # As the pod's own spans go; vLLM's default is gRPC.
        wanted["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
        wanted["OTEL_SERVICE_NAME"] = settings.name
        # A collector that is gone shall not hold up the end of the pod.
        wanted["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"] = "5"
    if settings.cache_dir is not None:
        wanted["HF_HOME"] = str(settings.cache_dir / "huggingface")
        wanted["VLLM_CACHE_ROOT"] = str(settings.cache_dir / "vllm")
        wanted["VLLM_CONFIG_ROOT"] = str(settings.cache_dir / "vllm" / "config")
        wanted["TORCHINDUCTOR_CACHE_DIR"] = str(settings.cache_dir / "vllm" / "inductor")
        wanted["TRITON_CACHE_DIR"] = str(settings.cache_dir / "vllm" / "triton")
        wanted["FLASHINFER_WORKSPACE_BASE"] = str(settings.cache_dir / "vllm" / "flashinfer")
        # A container's user may have no name and no home; torch asks for the one, caches go to the other.
        wanted["USER"] = "dragoman"
        wanted["XDG_CACHE_HOME"] = str(settings.cache_dir)
    if settings.device == "cpu":
        # By itself, vLLM binds every pod of a machine to the same first cores.
        wanted["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        # One core is left to HTTP and the scheduler, as vLLM leaves one.
        wanted["OMP_NUM_THREADS"] = str(max(1, cpus - 1))
        if (settings.tensor_parallel_size or 1) == 1 and not _chooses_executor(settings):
            # Lets the engine's process run the model itself: one process, and one import of vLLM, less.
            wanted["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    return {name: value for name, value in wanted.items() if name not in given}


def _chooses_executor(settings: Settings) -> bool:
    return "distributed_executor_backend" in settings.engine_args
