"""Arguments of vLLM that run code of a model's repository, or code that the arguments name.

The operator and the engine pod refuse them unless the object trusts its model (`spec.model.trustRemoteCode`).
Source: `vllm/engine/arg_utils.py` and `vllm/config/load.py` of vLLM 0.32.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRUST = "trust_remote_code"

SAFE_LOAD_FORMATS = (
    *("auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "mistral", "gguf", "dummy"),
    *("runai_streamer", "runai_streamer_sharded", "sharded_state"),
)
"""Formats that are read without unpickling. `auto` and `hf` take pickled weights where there are no safetensors: the
engine pod checks the files."""

WITHOUT_CODE: Mapping[str, tuple[Any, ...]] = {
    TRUST: (None, False),
    "load_format": SAFE_LOAD_FORMATS,
    "distributed_executor_backend": (None, "mp", "ray", "uni", "external_launcher"),
    "worker_cls": ("auto",),
    "worker_extension_cls": ("",),
    "scheduler_cls": (None,),
    "logits_processors": (None, []),
    "model_class_overrides": ({},),
    "io_processor_plugin": (None,),
    "reasoning_parser_plugin": (None, ""),
    "log_config_file": (None,),
}
"""Values of arguments that run no such code; any other value may."""

MODULE_PATH = "module_path"
"""End of the names of members of `kv_transfer_config` and `ec_transfer_config` that name a module."""


def code_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """Names of the arguments that run code, as they are written.

    Args:
        arguments: Fields of AsyncEngineArgs by name, with underscores or hyphens.
    """
    return sorted(name for name, value in arguments.items() if _runs_code(name.replace("-", "_"), value))


def _runs_code(name: str, value: Any) -> bool:
    if name in WITHOUT_CODE:
        return value not in WITHOUT_CODE[name]
    if not isinstance(value, Mapping):
        return False
    if name == "compilation_config" and "." in str(value.get("backend", "")):
        return True
    return any(str(member).endswith(MODULE_PATH) and value[member] for member in value)
