"""The command line of the engine container."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dragoman_contract.http import ENGINE_PORT
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.resources.model_source import model_source

CACHE_MOUNT = "/var/cache/dragoman"
GLOSSARY_MOUNT = "/etc/dragoman/glossary"
TERMINATION_LOG = "/dev/termination-log"

Option = str | int | float | None

_POLICIES = {"FirstComeFirstServed": "fcfs", "ShortestFirst": "shortest"}
_SPLITS = {"Lines": "lines", "Sentences": "sentences", "NoNewlines": "no-lines", "None": "none"}
"""Values of the spec, and of the pod's option."""


def engine_arguments(td: TranslationDeployment) -> list[str]:
    """Arguments of the command `dragoman`; fields that are not set are left out, so that the engine's defaults apply.

    Returns:
        Strings such as ``["serve", "--model", "org/name", …]``, in a fixed order.
    """
    model, engine = td.spec.model, td.spec.engine
    options: dict[str, Option] = {
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
        **_serving(td),
        "port": ENGINE_PORT,
        "drain-timeout-s": seconds(td.spec.rollout.drain_timeout),
        "termination-log": TERMINATION_LOG,
        "cache-dir": CACHE_MOUNT,
    }
    pairs = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    return ["serve", *(part for pair in pairs for part in pair)]


def _serving(td: TranslationDeployment) -> Mapping[str, Option]:
    """Options for which the pod has a default."""
    engine, admission, translation = td.spec.engine, td.spec.admission, td.spec.translation
    glossary = td.spec.glossary
    return {
        "scheduling-policy": _POLICIES.get(engine.scheduling_policy or ""),
        "stall-timeout-s": _seconds(engine.stall_timeout),
        "max-queued-requests": admission.max_queued_requests,
        "max-queued-tokens": admission.max_queued_tokens,
        "deadline-aware-admission": _flag(admission.deadline_aware),
        "request-timeout-s": _seconds(admission.request_timeout),
        "unready-when-overloaded": _flag(admission.unready_when_overloaded),
        "split": _SPLITS.get(translation.split or ""),
        "translation-cache-bytes": translation.cache_bytes,
        "glossary": f"{GLOSSARY_MOUNT}/{glossary.config_map_key_ref.key}" if glossary else None,
        "otlp-endpoint": td.spec.tracing.otlp_endpoint,
        "lame-duck-s": _seconds(td.spec.rollout.lame_duck),
    }


def _seconds(duration: str | None) -> int | None:
    return None if duration is None else seconds(duration)


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
