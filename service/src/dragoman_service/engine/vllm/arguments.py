"""vLLM's arguments: those of the settings, and defaults for the device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman_contract.model_code import TRUST, code_arguments
from dragoman_service.engine.arguments import merged
from dragoman_service.errors import SettingsError
from dragoman_service.settings import Settings

CPU_KV_CACHE_BYTES = 512 * 1024**2
"""Default size of the KV cache on a CPU. vLLM would take 92% of the machine's memory, which
leaves room for one pod, and touches all of it while it starts; this much holds the sequences of a small
model."""

FITTING = -1
"""As `max_model_len`: the model's own length, or as many tokens as the KV cache holds."""

GRAPH_TOKENS = 2048
"""CUDA graphs are captured for steps of up to so many tokens. vLLM stops at 512 or less, and runs a longer step layer
by layer, in Python: with 512 sequences each one in which a request begins."""

GRAPHS = "cudagraph_capture_sizes"
GRAPHS_OTHERWISE = (GRAPHS, "max_cudagraph_capture_size", "compilation_config", "enforce_eager")
"""Engine arguments by which a user chooses the graphs."""

GPU_PREFILL_INTERVAL = 32


def engine_arguments(settings: Settings, known: Collection[str]) -> dict[str, Any]:
    """The pod's settings as arguments of vLLM's AsyncEngineArgs, whose fields are `known`.

    Raises:
        SettingsError: As `merged` does; or an argument runs code that is not trusted.
    """
    found = () if settings.trust_remote_code else code_arguments(settings.engine_args)
    if found:
        raise SettingsError(
            f"--engine-args: {', '.join(found)} may run code of the model, or code that is named there: set "
            "--trust-remote-code=true (spec.model.trustRemoteCode) if you trust it"
        )
    typed = {
        "model": settings.model,
        "revision": settings.revision,
        TRUST: settings.trust_remote_code or None,
        "served_model_name": settings.name,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "max_model_len": settings.max_model_len,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "kv_cache_memory_bytes": settings.kv_cache_memory_bytes,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "quantization": settings.quantization,
        "dtype": settings.dtype,
        "otlp_traces_endpoint": settings.traces_endpoint,
        "enable_sleep_mode": None if settings.sleep_after_s is None else True,
        "prefill_schedule_interval": prefill_schedule_interval(settings),
        "scheduling_policy": "priority" if settings.scheduling_policy == "shortest" else None,
    }
    return merged(typed, settings.engine_args, known)


def cpu_arguments(arguments: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Engine arguments for a CPU where the user gave none.

    Compiling makes a small model's start slower and its answers hardly faster.
    `--engine-args '{"enforce_eager": false}'` compiles all the same.

    Args:
        arguments: As the user gave them.
        given: The environment, whose `VLLM_CPU_KVCACHE_SPACE` is the older way to size the KV cache.
    """
    defaults: dict[str, Any] = {"enforce_eager": True}
    if "gpu_memory_utilization" not in arguments and "VLLM_CPU_KVCACHE_SPACE" not in given:
        defaults["kv_cache_memory_bytes"] = CPU_KV_CACHE_BYTES
        defaults["max_model_len"] = FITTING
    return defaults | dict(arguments)


def gpu_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Engine arguments on a GPU: more CUDA graphs than vLLM's own, for steps in which some requests begin.

    They take 2 s, in a start that captures all graphs, and 0.1 GiB more. docs/benchmarks.md has what they bring.

    Args:
        arguments: As the user gave them; if any is about graphs, vLLM's own graphs are kept.
    """
    if any(name in arguments for name in GRAPHS_OTHERWISE):
        return dict(arguments)
    most = min(GRAPH_TOKENS, arguments.get("max_num_batched_tokens") or GRAPH_TOKENS)
    return {GRAPHS: graph_sizes(most)} | dict(arguments)


def graph_sizes(most: int) -> list[int]:
    """Tokens of a step that graphs are captured for; one between two takes the larger."""
    sizes = (1, 2, 4, *range(8, 256, 8), *range(256, 512, 16), *range(512, GRAPH_TOKENS + 1, 64))
    return [size for size in sizes if size <= most]


def prefill_schedule_interval(settings: Settings) -> int:
    """`max_steps` of the prefill gate. On a CPU it holds no request: steps are long, and there are no CUDA graphs."""
    if settings.prefill_schedule_interval is not None:
        return settings.prefill_schedule_interval
    return GPU_PREFILL_INTERVAL if settings.device == "cuda" else 1
