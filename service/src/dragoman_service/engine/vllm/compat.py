"""What this folder uses of vLLM below its public API, checked against the release that runs.

A required part that is missing ends the start with a sentence; an optional one is replaced by its fallback, logged, and
exported as `dragoman_vllm_fallback{feature="…"} 1`. docs/reference/engine-pod.md has the table. Nothing of vLLM is
imported before `check` is called, which is after its environment was set.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

from prometheus_client import Gauge

from dragoman_service.errors import StartError
from dragoman_service.metric_definitions import VLLM_FALLBACK

log = logging.getLogger(__name__)

FALLBACK = Gauge(VLLM_FALLBACK.name, VLLM_FALLBACK.help, VLLM_FALLBACK.labels)

SCHEDULER = "scheduler"
START_PHASES = "start_phases"
FORKED_ENGINE = "forked_engine"
FORKED_INSPECTION = "forked_inspection"
SLEEP_MODE = "sleep_mode"
GPU_WORKER = "gpu_worker"

VARIABLES = "envs:environment_variables"


@dataclass(frozen=True)
class Reach:
    """One use of vLLM below its public API.

    Args:
        name: As in the metric and in docs/reference/engine-pod.md.
        uses: Names by where they are, a module of vLLM or `module:object`, separated by blanks: attributes, fields,
            keys of a mapping, or what a class sets in its constructor.
        required: Whether the pod cannot do without it.
    """

    name: str
    uses: Mapping[str, str]
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
                f"this release of vLLM ({release()}) lacks {', '.join(missing)} ({reach.name}), which dragoman "
                "needs: use an image with release 0.32 or 0.33"
            )
        if missing:
            log.warning("vLLM %s lacks %s: without %s", release(), ", ".join(missing), reach.name)
            absent.add(reach.name)
    return frozenset(absent)


def missing_of(reach: Reach) -> list[str]:
    """What is missing of one; a module that is not there is named by the import's own message."""
    missing: list[str] = []
    for where, names in reach.uses.items():
        module, _, path = where.partition(":")
        try:
            imported = import_module(f"vllm.{module}" if module else "vllm")
            owner = attrgetter(path)(imported) if path else imported
        except (ImportError, AttributeError) as error:
            missing.append(str(error))
            continue
        missing += [f"{path or module}.{name}" for name in names.split() if not _has(owner, name)]
    return missing


def _has(owner: Any, name: str) -> bool:
    if isinstance(owner, Mapping):
        return name in owner
    constructor = getattr(getattr(owner, "__init__", None), "__code__", None)
    return (
        hasattr(owner, name)
        or name in getattr(owner, "__dataclass_fields__", ())
        or (constructor is not None and name in constructor.co_names)
    )


def fall_back(feature: str, reason: str) -> None:
    """Log and export a fallback that only shows when vLLM runs."""
    log.warning("vLLM %s: %s: without %s", release(), reason, feature)
    FALLBACK.labels(feature).set(1)


def release() -> str:
    """vLLM's version."""
    import vllm

    return str(getattr(vllm, "__version__", "unknown"))


REACHES = (
    Reach(
        "async_llm",
        {
            "v1.engine.async_llm:AsyncLLM": "from_vllm_config generate errored shutdown vllm_config",
            ":AsyncEngineArgs": "create_engine_config",
            "usage.usage_lib:UsageContext": "OPENAI_API_SERVER",
            "v1.engine.exceptions": "EngineDeadError",
        },
        required=True,
    ),
    Reach(
        "step_statistics",
        {"v1.metrics.loggers:StatLoggerBase": "record log_engine_initialized"},
        required=True,
    ),
    Reach(
        "configuration",
        {"config:SchedulerConfig": "max_num_seqs policy", "config:ModelConfig": "max_model_len"},
        required=True,
    ),
    Reach(
        "engine_arguments",
        {
            ":AsyncEngineArgs": "model revision served_model_name max_num_seqs max_num_batched_tokens max_model_len "
            "gpu_memory_utilization kv_cache_memory_bytes tensor_parallel_size quantization dtype otlp_traces_endpoint "
            "prefill_schedule_interval scheduling_policy enforce_eager cudagraph_capture_sizes",
        },
        required=True,
    ),
    Reach(
        "environment",
        {VARIABLES: "VLLM_NO_USAGE_STATS VLLM_WORKER_MULTIPROC_METHOD VLLM_LOGGING_CONFIG_PATH"},
        required=True,
    ),
    Reach("cache_environment", {VARIABLES: "VLLM_CACHE_ROOT VLLM_CONFIG_ROOT"}),
    Reach(
        "cpu_environment",
        {VARIABLES: "VLLM_CPU_OMP_THREADS_BIND VLLM_CPU_KVCACHE_SPACE VLLM_ENABLE_V1_MULTIPROCESSING"},
    ),
    Reach(
        SCHEDULER,
        {
            "config:SchedulerConfig": "get_scheduler_cls scheduler_cls prefill_schedule_interval",
            "v1.core.sched.scheduler:Scheduler": "update_from_output make_stats finish_requests schedule requests "
            "running waiting max_num_running_reqs prefill_capacity_bound kv_cache_manager kv_cache_config connector "
            "block_size",
            "v1.core.kv_cache_manager:KVCacheManager": "allocate_slots empty_kv_cache_blocks",
            "v1.kv_cache_interface:FullAttentionSpec": "block_size",
            "v1.core.sched.async_scheduler:AsyncScheduler": "update_from_output finish_requests schedule",
            "v1.core.sched.output:SchedulerOutput": "num_scheduled_tokens total_num_scheduled_tokens",
            "v1.request:Request": "is_prefill_chunk",
            "sampling_params:RequestOutputKind": "FINAL_ONLY",
            "sampling_params:SamplingParams": "output_kind detokenize logprobs prompt_logprobs",
            "v1.engine:EngineCoreOutputs": "outputs scheduler_stats finished_requests",
            "v1.engine:EngineCoreOutput": "request_id new_token_ids finish_reason events",
        },
    ),
    Reach(
        FORKED_ENGINE,
        {
            "v1.engine.utils": "get_mp_context",
            "v1.engine.async_llm": "AsyncLLM",
            "v1.engine.core": "EngineCoreProc",
        },
    ),
    Reach(FORKED_INSPECTION, {"model_executor.models.registry": "_run_in_subprocess"}),
    Reach("startup_plan", {VARIABLES: "VLLM_ENABLE_STARTUP_PLAN"}),
    # What the worker uses is checked by the release: to import it here would lengthen the start.
    Reach(
        GPU_WORKER,
        {"v1.engine.async_llm:AsyncLLM": "collective_rpc", "config:ParallelConfig": "worker_cls"},
    ),
    Reach("output_handler", {"v1.engine.async_llm:AsyncLLM": "output_handler"}),
    Reach("kv_cache_size", {"config:CacheConfig": "kv_cache_size_tokens"}),
    Reach("overload_error", {"exceptions:GracefulHTTPError": "http_status"}),
    Reach("shared_sampling_params", {"sampling_params:SamplingParams": "skip_clone"}),
    Reach("repetition_detection", {"sampling_params": "RepetitionDetectionParams"}),
    Reach(
        SLEEP_MODE,
        {"v1.engine.async_llm:AsyncLLM": "sleep wake_up", ":AsyncEngineArgs": "enable_sleep_mode"},
    ),
    Reach("envs_cache", {"envs": "enable_envs_cache disable_envs_cache"}),
    # Found out when the first start is complete: a phase was reported or none was.
    Reach(START_PHASES, {}),
)
