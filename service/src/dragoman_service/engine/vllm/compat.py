"""What this folder uses of vLLM below its public API, checked against the release that runs.

A required part that is missing ends the start with a sentence; an optional one is replaced by its fallback, logged, and
exported as `dragoman_vllm_fallback{feature="…"} 1`. docs/engine-pod.md has the table. Nothing of vLLM is imported
before `check` is called, which is after its environment was set.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from typing import Any

from prometheus_client import Gauge

from dragoman_service.errors import StartError

log = logging.getLogger(__name__)

FALLBACK = Gauge(
    "dragoman_vllm_fallback",
    "1 if a part of vLLM is missing or has changed, and the pod does without it",
    ["feature"],
)

OUTPUT_COALESCING = "output_coalescing"
START_PHASES = "start_phases"


@dataclass(frozen=True)
class Reach:
    """One use of vLLM below its public API.

    Args:
        name: As in the metric and in docs/engine-pod.md.
        probe: Names what is missing; nothing if all is there.
        required: Whether the pod cannot do without it.
    """

    name: str
    probe: Callable[[], Iterable[str]]
    required: bool = False


def check() -> frozenset[str]:
    """Check all of `REACHES`, and set the metric.

    Returns:
        Names of the optional ones that are missing.

    Raises:
        StartError: A required one is missing.
    """
    absent: set[str] = set()
    for reach in REACHES:
        missing = missing_of(reach)
        FALLBACK.labels(reach.name).set(bool(missing))
        if missing and reach.required:
            raise StartError(
                f"this release of vLLM ({_release()}) lacks {', '.join(missing)} ({reach.name}), which dragoman "
                "needs: use an image with a release from 0.26 to 0.32"
            )
        if missing:
            log.warning("vLLM %s lacks %s: without %s", _release(), ", ".join(missing), reach.name)
            absent.add(reach.name)
    return frozenset(absent)


def missing_of(reach: Reach) -> list[str]:
    """What is missing of one; a module that is not there is named by the import's own message."""
    try:
        return list(reach.probe())
    except (ImportError, AttributeError) as error:
        return [str(error)]


def fall_back(feature: str, reason: str) -> None:
    """Log and export a fallback that only shows when vLLM runs."""
    log.warning("vLLM %s: %s: without %s", _release(), reason, feature)
    FALLBACK.labels(feature).set(1)


def _release() -> str:
    import vllm

    return str(getattr(vllm, "__version__", "unknown"))


def _without(names: Collection[str], there: Collection[str]) -> list[str]:
    return [name for name in names if name not in there]


def _missing_attributes(owner: Any, *names: str) -> list[str]:
    return [f"{owner.__name__}.{name}" for name in names if not hasattr(owner, name)]


def _missing_fields(owner: Any, *names: str) -> list[str]:
    return [f"{owner.__name__}.{name}" for name in _without(names, [each.name for each in fields(owner)])]


def _async_llm() -> Iterable[str]:
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.exceptions import EngineDeadError

    yield from _missing_attributes(AsyncLLM, "from_vllm_config", "generate", "errored", "shutdown")
    yield from _missing_attributes(AsyncEngineArgs, "create_engine_config")
    yield from _missing_attributes(UsageContext, "OPENAI_API_SERVER")
    if not issubclass(EngineDeadError, Exception):
        yield "EngineDeadError"
    if "vllm_config" not in AsyncLLM.__init__.__code__.co_names:
        yield "AsyncLLM.vllm_config"


def _step_statistics() -> Iterable[str]:
    from vllm.v1.metrics.loggers import StatLoggerBase

    yield from _missing_attributes(StatLoggerBase, "record", "log_engine_initialized")


def _configuration() -> Iterable[str]:
    from vllm.config import ModelConfig, SchedulerConfig

    yield from _missing_fields(SchedulerConfig, "max_num_seqs", "policy")
    yield from _missing_fields(ModelConfig, "max_model_len")


def _engine_arguments() -> Iterable[str]:
    from vllm import AsyncEngineArgs

    yield from _missing_fields(
        AsyncEngineArgs,
        "model",
        "revision",
        "served_model_name",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "tensor_parallel_size",
        "quantization",
        "dtype",
        "otlp_traces_endpoint",
        "scheduling_policy",
        "enforce_eager",
        "cudagraph_capture_sizes",
    )


def _environment() -> Iterable[str]:
    from vllm import envs

    required = ("VLLM_NO_USAGE_STATS", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_LOGGING_CONFIG_PATH")
    yield from _without(required, envs.environment_variables)


def _optional_environment() -> Iterable[str]:
    from vllm import envs

    yield from _without(("VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT"), envs.environment_variables)


def _cpu_environment() -> Iterable[str]:
    from vllm import envs

    names = ("VLLM_CPU_OMP_THREADS_BIND", "VLLM_CPU_KVCACHE_SPACE", "VLLM_ENABLE_V1_MULTIPROCESSING")
    yield from _without(names, envs.environment_variables)


def _output_coalescing() -> Iterable[str]:
    from vllm.config import SchedulerConfig
    from vllm.sampling_params import RequestOutputKind, SamplingParams
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs

    yield from _missing_attributes(SchedulerConfig, "get_scheduler_cls")
    yield from _missing_fields(SchedulerConfig, "scheduler_cls")
    for scheduler in (Scheduler, AsyncScheduler):
        yield from _missing_attributes(scheduler, "update_from_output", "finish_requests")
    if "requests" not in Scheduler.__init__.__code__.co_names:
        yield "Scheduler.requests"
    yield from _missing_attributes(RequestOutputKind, "FINAL_ONLY")
    yield from _missing_attributes(SamplingParams, "output_kind", "detokenize", "logprobs", "prompt_logprobs")
    yield from _missing_attributes(EngineCoreOutputs, "outputs")
    yield from _missing_attributes(EngineCoreOutput, "request_id", "new_token_ids", "finish_reason", "events")


def _output_handler() -> Iterable[str]:
    from vllm.v1.engine.async_llm import AsyncLLM

    if "output_handler" not in AsyncLLM.__init__.__code__.co_names:
        yield "AsyncLLM.output_handler"


def _kv_cache_size() -> Iterable[str]:
    from vllm.config import CacheConfig

    if _missing_fields(CacheConfig, "kv_cache_size_tokens"):
        yield from _missing_fields(CacheConfig, "num_gpu_blocks", "block_size")


def _overload_error() -> Iterable[str]:
    from vllm import exceptions

    known = vars(exceptions).values()
    classes = [each for each in known if isinstance(each, type) and issubclass(each, Exception)]
    if not any("http_status" in each.__init__.__code__.co_names for each in classes if _is_python(each)):
        yield "http_status of an error"


def _is_python(error: type[Exception]) -> bool:
    return hasattr(error.__init__, "__code__")


def _repetition_detection() -> Iterable[str]:
    from vllm import sampling_params

    yield from _without(("RepetitionDetectionParams",), vars(sampling_params))


def _envs_cache() -> Iterable[str]:
    from vllm import envs

    yield from _without(("enable_envs_cache", "disable_envs_cache"), vars(envs))


REACHES = (
    Reach("async_llm", _async_llm, required=True),
    Reach("step_statistics", _step_statistics, required=True),
    Reach("configuration", _configuration, required=True),
    Reach("engine_arguments", _engine_arguments, required=True),
    Reach("environment", _environment, required=True),
    Reach("cache_environment", _optional_environment),
    Reach("cpu_environment", _cpu_environment),
    Reach(OUTPUT_COALESCING, _output_coalescing),
    Reach("output_handler", _output_handler),
    Reach("kv_cache_size", _kv_cache_size),
    Reach("overload_error", _overload_error),
    Reach("repetition_detection", _repetition_detection),
    Reach("envs_cache", _envs_cache),
    # Found out when the first start is complete: a phase was reported or none was.
    Reach(START_PHASES, lambda: ()),
)
