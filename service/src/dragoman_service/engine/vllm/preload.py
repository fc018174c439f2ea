"""What the fork server imports, and nothing else does: vLLM, for the engine process that is forked from it.

The garbage collector is off meanwhile, which takes an eighth off the import; forks turn it on again. What is imported
is permanent, so that no collection of a fork copies its pages.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

ENGINE = ("vllm.v1.engine.async_llm", "vllm.v1.engine.core")
"""What the pod's own process imports, too."""

WORKER = (
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.attention.backends.cpu_attn",
    "vllm.model_executor.model_loader.default_loader",
    "vllm.model_executor.models.llama",
)
"""What the engine process imports later, on a CPU. Modules for GPUs may use CUDA, which a fork could not use again."""


def preload() -> None:
    """Import all of it; what is missing in a release of vLLM is left to the engine process."""
    gc.disable()
    for name in ENGINE:
        import_module(name)
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        for name in WORKER:
            with suppress(ImportError):
                import_module(name)
    gc.freeze()


preload()
