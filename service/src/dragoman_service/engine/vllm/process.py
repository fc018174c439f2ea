"""vLLM within the pod, from its start to its end: environment, weights, arguments, its processes.

Imports of vllm are inside functions: they read the environment once, and take seconds that the HTTP server must
not wait for.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from dragoman_protocols.errors import EngineDeadError
from dragoman_service.download.files import check_formats
from dragoman_service.engine.devices import usable_cpus
from dragoman_service.engine.protocol import Framing, Phase, Progress, Report
from dragoman_service.engine.threads import in_daemon_thread
from dragoman_service.engine.vllm import compat, imports, pod_fork, weights
from dragoman_service.engine.vllm.arguments import cpu_arguments, engine_arguments, gpu_arguments
from dragoman_service.engine.vllm.failures import reason
from dragoman_service.engine.vllm.start_report import failure, logging_config, read_report
from dragoman_service.engine.vllm.tokens import ModelTokenizer
from dragoman_service.errors import ModelLoadError, StartError
from dragoman_service.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 0.25
"""Interval at which the report of vLLM's processes is read while they start."""

CANCEL_S = 20
"""Time for a cancelled start to end: an import of vLLM cannot be interrupted."""


TOKENIZER_ARGUMENTS = (
    "tokenizer",
    "tokenizer_mode",
    "tokenizer_revision",
    "load_format",
    "skip_tokenizer_init",
)
"""Engine arguments with which vLLM loads a tokenizer in its own way."""


AUTO = "auto"
"""vLLM's default of `load_format`."""

VLLM_WORKER = "vllm.v1.worker.gpu_worker.Worker"
OUR_WORKER = "dragoman_service.engine.vllm.gpu_worker.GPUWorker"
WORKER_RELEASES = ("0.32.",)
"""Releases with which our worker was tested on a GPU."""


class StartCancelledError(Exception):
    """The pod is shut down while vLLM starts."""


class Runtime:
    """One AsyncLLM, as `llm`: None before it is started and once it is stopped.

    Args:
        framing: Of the prompt family's instructions; checked against the tokenizer.
        stepped: Called after each step of vLLM's scheduler, on the event loop.
        cache_settled: Returns when vLLM's cache has what a sibling has.

    Attributes:
        coalesces_outputs: Whether output coalescing is on.
        defers_graphs: Whether vLLM's workers may have CUDA graphs left to capture.
    """

    def __init__(
        self,
        settings: Settings,
        framing: Framing,
        stepped: Callable[[], None],
        cache_settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._framing = framing
        self._stepped = stepped
        self._cache_settled = cache_settled
        # The only reference: AsyncLLM must be collected before the interpreter ends, and frames of an import can keep
        # a variable alive.
        self.llm: Any = None
        self.coalesces_outputs = self.defers_graphs = False
        self._closing = threading.Event()
        self._starting: asyncio.Task[None] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="dragoman-")
        self._report_path = Path(self._scratch.name) / "start.jsonl"

    async def start(self, report: Report, ready: Callable[[], None]) -> None:
        """Start vLLM in a thread, so that the event loop can answer probes; `ready` is called there once `llm` is set.

        Raises:
            StartCancelledError: `cancel_start` ended it.
            StartError: The device, the tokenizer or the release of vLLM does not fit the settings.
            Exception: Any error of vLLM; `load_error` makes a sentence of it.
        """
        loop = asyncio.get_running_loop()
        self._starting = asyncio.create_task(in_daemon_thread(lambda: self._start(report, ready, loop)))
        following = asyncio.create_task(self._follow(report))
        # Imports make hundreds of thousands of objects that stay. The pod collects once it is loaded.
        collected = gc.isenabled()
        gc.disable()
        try:
            await asyncio.shield(self._starting)
        finally:
            if collected:
                gc.enable()
            following.cancel()

    async def cancel_start(self) -> None:
        """End a start in progress: when vLLM's processes are terminated, its constructor raises."""
        self._closing.set()
        if self._starting is None:
            return
        try:
            async with asyncio.timeout(CANCEL_S):
                while not self._starting.done():
                    for child in multiprocessing.active_children():
                        child.terminate()
                    await asyncio.wait((self._starting,), timeout=POLL_S)
        except TimeoutError:
            log.warning("the start of vLLM could not be cancelled within %d s", CANCEL_S)

    async def stop(self) -> None:
        """Stop vLLM and wait for its processes to end."""
        llm, self.llm = self.llm, None
        if llm is not None:
            handler = getattr(llm, "output_handler", None)
            if handler is not None:
                # Otherwise it logs the end of the engine process as a failure.
                handler.cancel()
                await asyncio.gather(handler, return_exceptions=True)
            await in_daemon_thread(llm.shutdown)
        self._scratch.cleanup()

    def load_error(self, error: Exception) -> ModelLoadError:
        """Why vLLM did not start: the error of its processes, or the one that it raised here."""
        _, reported = read_report(self._report_path)
        log.debug("vLLM did not start", exc_info=error)
        return ModelLoadError(reason(reported or failure(error), self._settings.model))

    def death(self) -> EngineDeadError:
        """The error of an engine process that has exited, with its reason if it reported one."""
        _, reported = read_report(self._report_path)
        message = (
            f"{': '.join(reported.chain[0])}" if reported else "no reason reported; it may have been killed"
        )
        return EngineDeadError(f"vLLM's engine process has exited ({message[:300]}); this pod must restart")

    def _start(self, report: Report, ready: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        config_path = Path(self._scratch.name) / "logging.json"
        level = self._settings.log_level.upper()
        config_path.write_text(json.dumps(logging_config(self._report_path, level)), encoding="utf-8")
        os.environ.update(environment(self._settings, config_path, usable_cpus(), os.environ))
        # A model's own code may import anything.
        finder = imports.install(hides_unused=not self._settings.trust_remote_code)
        pod_fork.preload()
        log.info("vLLM is imported; the parts that took longest: %s", finder.slowest())
        directory = weights.local_directory(self._settings.model)
        arguments = _arguments(self._settings)
        absent = compat.check()
        if compat.SLEEP_MODE in absent and self._settings.sleep_after_s is not None:
            raise StartError("this release of vLLM has no sleep mode: remove --sleep-after-s")
        if compat.FORKED_INSPECTION not in absent:
            pod_fork.inspect_models()
        self._raise_if_cancelled()
        arguments["model"] = directory or self._fetched(report)
        if not self._settings.trust_remote_code and weights.is_local(arguments["model"]):
            check_formats([file.name for file in Path(arguments["model"]).iterdir()])
        check_tokenizer(arguments, self._framing)
        # As late as possible: a sibling's files arrive while vLLM is imported.
        self._cache_settled()
        self._raise_if_cancelled()
        _set_envs_cache(False)
        config = _engine_config(arguments)
        self.defers_graphs = compat.GPU_WORKER not in absent and _replace_worker(config, compat.release())
        if compat.SCHEDULER not in absent:
            self.coalesces_outputs = _replace_scheduler(config, coalesces=self._settings.coalesce_outputs)
        if compat.FORKED_ENGINE not in absent:
            context = pod_fork.context(loop)
            if context is None:
                compat.fall_back(compat.FORKED_ENGINE, "an import has initialized CUDA")
            else:
                _use_context(context)
        self.llm = _started(config, self._stepped)
        ready()
        _set_envs_cache(True)
        if read_report(self._report_path)[0] is None:
            compat.fall_back(compat.START_PHASES, "none of the known log messages appeared during the start")

    def _fetched(self, report: Report) -> str:
        settings = self._settings
        own_format = settings.engine_args.get("load_format", AUTO) not in (AUTO, "hf")
        if weights.is_remote_store(settings.model) or own_format:
            # vLLM knows which files to fetch.
            return settings.model
        found = weights.fetch(
            settings.model,
            settings.revision,
            settings.trust_remote_code,
            lambda share: report(Progress(Phase.DOWNLOADING, share)),
        )
        report(Progress(Phase.LOADING))
        return str(found)

    def _raise_if_cancelled(self) -> None:
        """End the start between two steps if the pod is shut down."""
        if self._closing.is_set():
            raise StartCancelledError

    async def _follow(self, report: Report) -> None:
        last: Phase | None = None
        while True:
            await asyncio.sleep(POLL_S)
            phase, _ = read_report(self._report_path)
            if phase is not None and phase is not last:
                report(Progress(phase))
                last = phase


def _arguments(settings: Settings) -> dict[str, Any]:
    from vllm import AsyncEngineArgs
    from vllm.platforms import current_platform

    if current_platform.device_type != settings.device:
        raise StartError(
            f"the device is {settings.device} and vLLM finds {current_platform.device_type or 'none'} here: "
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


def check_tokenizer(arguments: Mapping[str, Any], framing: Framing) -> None:
    """Check a local model's tokenizer before an engine is started with it, which takes ten times as long.

    A model that is not local, or whose tokenizer vLLM loads in its own way, is checked after the start.

    Raises:
        PromptTemplateError: The tokenizer has no chat template that the framing needs.
    """
    if not weights.is_local(arguments["model"]) or any(name in arguments for name in TOKENIZER_ARGUMENTS):
        return
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            arguments["model"], trust_remote_code=arguments.get("trust_remote_code", False)
        )
    except Exception as error:
        # vLLM may load it in another way, and reports its own error if it does not.
        log.debug("the tokenizer is not checked before the start", exc_info=error)
        return
    ModelTokenizer(tokenizer).check(framing)


def _engine_config(arguments: Mapping[str, Any]) -> Any:
    """vLLM's configuration; the defaults are those of its own API server."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    return AsyncEngineArgs(**arguments).create_engine_config(UsageContext.OPENAI_API_SERVER)


def _use_context(context: BaseContext) -> None:
    """Have vLLM start its engine process by a context."""
    from vllm.v1.engine import utils

    utils.get_mp_context = lambda: context


def _replace_worker(config: Any, release: str) -> bool:
    """Put our GPU worker in the place of vLLM's; False if another worker was chosen, or the release was not tested."""
    parallel = config.parallel_config
    if parallel.worker_cls != VLLM_WORKER:
        return False
    if not release.startswith(WORKER_RELEASES):
        compat.fall_back(compat.GPU_WORKER, "not tested with this release")
        return False
    parallel.worker_cls = OUR_WORKER
    return True


def _replace_scheduler(config: Any, *, coalesces: bool) -> bool:
    """Put our scheduler in the place of vLLM's, if there is one for it.

    Returns:
        Whether outputs are coalesced.
    """
    from dragoman_service.engine.vllm.scheduler import successor

    scheduling = config.scheduler_config
    scheduler = scheduling.get_scheduler_cls()
    found = successor(scheduler, coalesces=coalesces)
    if found is None:
        compat.fall_back(compat.SCHEDULER, f"the scheduler {scheduler.__qualname__} is unknown")
        return False
    scheduling.scheduler_cls = found
    return coalesces


def _started(config: Any, stepped: Callable[[], None]) -> Any:
    """AsyncLLM with its processes up."""
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Steps(StatLoggerBase):  # type: ignore[misc]
        """Reports each step; the statistics that vLLM passes may change from release to release."""

        def __init__(self, *_config: Any, **_more: Any) -> None:
            """Without state."""

        def record(self, *_stats: Any, **_more: Any) -> None:
            """A step is complete."""
            stepped()

        def log_engine_initialized(self) -> None:
            """Logs nothing."""

    return AsyncLLM.from_vllm_config(
        config, usage_context=UsageContext.OPENAI_API_SERVER, stat_loggers=[Steps]
    )


def _set_envs_cache(enabled: bool) -> None:
    """Whether vLLM caches its environment: without, it reads it at every token, a fifth of this process's time.

    vLLM's own processes enable it, its API server does not. Disabled before a start, because an engine may have been
    started before in this process.
    """
    from vllm import envs

    name = "enable_envs_cache" if enabled else "disable_envs_cache"
    getattr(envs, name, lambda: None)()


def environment(
    settings: Settings, report_config: Path, cpus: int, given: Mapping[str, str]
) -> dict[str, str]:
    """What to add to the environment before vLLM is imported; nothing that is in `given`."""
    wanted = {
        # No usage report leaves the pod.
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # A fork of a process that has threads and an event loop can deadlock.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_LOGGING_CONFIG_PATH": str(report_config),
        "TOKENIZERS_PARALLELISM": "false",
        # What profiling found is kept in the cache, and used if the same GPU memory is free.
        "VLLM_ENABLE_STARTUP_PLAN": "1",
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
        # A container's user may have no name and no home; torch reads the name, caches are in the home.
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
