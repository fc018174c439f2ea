"""Engine arguments by name: what the typed flags set, what `--engine-args` adds, and what may not be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from dragoman_protocols.errors import SettingsError
from dragoman_service.settings import Settings


def merged(typed: Mapping[str, Any], extra: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Typed flags and extra arguments as one set of engine arguments.

    Args:
        typed: By engine argument, what the typed flags say; None where they say nothing.
        extra: What `--engine-args` says.
        known: Names that the running engine knows.

    Raises:
        SettingsError: An extra argument is unknown (with the nearest known name), or was set by a flag too.
    """
    for name in extra:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise SettingsError(
                f"--engine-args: the engine has no argument {name!r}"
                + (f"; did you mean {nearest[0]!r}?" if nearest else "")
            )
        if typed.get(name) is not None:
            raise SettingsError(f"--engine-args: {name!r} is set twice, there and by a flag of its own")
    return {name: value for name, value in typed.items() if value is not None} | dict(extra)


def engine_arguments(settings: Settings, known: Collection[str]) -> dict[str, Any]:
    """What the pod's settings say in terms of vLLM's AsyncEngineArgs.

    Args:
        settings: The pod's.
        known: Fields of the AsyncEngineArgs that runs.

    Raises:
        SettingsError: As `merged` does.
    """
    typed = {
        "model": settings.model,
        "revision": settings.revision,
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
        "scheduling_policy": "priority" if settings.scheduling_policy == "shortest" else None,
    }
    return merged(typed, settings.engine_args, known)
