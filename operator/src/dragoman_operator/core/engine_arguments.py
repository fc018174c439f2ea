"""The command line of the engine container: every field of the spec that the engine should know of."""

from __future__ import annotations

import json

from dragoman_contract.http import ENGINE_PORT
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.core.model_source import model_source

CACHE_MOUNT = "/var/cache/dragoman"
TERMINATION_LOG = "/dev/termination-log"


def engine_arguments(td: TranslationDeployment) -> list[str]:
    """Arguments of the command `dragoman`; what the spec leaves out is left out, so that the engine decides.

    Returns:
        Strings such as ``["serve", "--model", "org/name", …]``, in a fixed order.
    """
    model, engine = td.spec.model, td.spec.engine
    options: dict[str, str | int | float | None] = {
        "model": model_source(model.uri).argument,
        "revision": model.revision,
        "served-name": td.name,
        "prompt-family": model.prompt_family,
        "prompt-template": model.prompt_template,
        "languages": _json([entry.model_dump(mode="json") for entry in td.spec.languages]),
        "device": engine.device,
        "dtype": engine.dtype,
        "max-num-seqs": engine.max_num_seqs,
        "max-num-batched-tokens": engine.max_num_batched_tokens,
        "max-model-len": engine.max_model_len,
        "gpu-memory-utilization": engine.gpu_memory_utilization,
        "kv-cache-memory-bytes": engine.kv_cache_memory_bytes,
        "tensor-parallel-size": engine.tensor_parallel_size,
        "quantization": engine.quantization,
        "engine-args": _json(engine.extra_args) if engine.extra_args else None,
        "port": ENGINE_PORT,
        "drain-timeout-s": seconds(td.spec.rollout.drain_timeout),
        "termination-log": TERMINATION_LOG,
        "cache-dir": CACHE_MOUNT,
    }
    pairs = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    return ["serve", *(part for pair in pairs for part in pair)]


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
