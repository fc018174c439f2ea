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

CODE_ENDINGS = ("module_path", "_cls", "_plugin")
"""Ends of the names of members, at any depth, whose values are a module, a class or a file with code."""

BUILT_IN_OR_PATH = ("backend", "policy")
"""Members whose values are names of vLLM's own, or classes by their path, which has a dot."""


def code_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """Names of the arguments that run code, as they are written.

    Args:
        arguments: Fields of AsyncEngineArgs by name, with underscores or hyphens.
    """
    return sorted(name for name, value in arguments.items() if _runs_code(name.replace("-", "_"), value))


def _runs_code(name: str, value: Any) -> bool:
    """Whether an argument, or a member of one at any depth, runs code."""
    members = [(name, value)]
    while members:
        name, value = members.pop()
        if name in WITHOUT_CODE:
            found = value not in WITHOUT_CODE[name]
        elif isinstance(value, Mapping):
            found = bool(value) and (name == "inductor_passes" or _proposes_by_class(name, value))
            members += [(str(member).replace("-", "_"), inner) for member, inner in value.items()]
        elif isinstance(value, list | tuple):
            found = False
            members += [(name, each) for each in value]
        else:
            is_path = name in BUILT_IN_OR_PATH and "." in str(value)
            found = bool(value) and (is_path or name.endswith(CODE_ENDINGS))
        if found:
            return True
    return False


def _proposes_by_class(name: str, value: Mapping[str, Any]) -> bool:
    """Whether vLLM takes a draft model for a class by its path (`SpeculativeConfig._is_custom_proposer_path`)."""
    method, parts = value.get("method"), str(value.get("model")).split(".")
    return name == "speculative_config" and (
        method == "custom_class" or (method is None and len(parts) > 1 and all(map(str.isidentifier, parts)))
    )
