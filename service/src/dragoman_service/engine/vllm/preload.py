"""What the process imports that vLLM's engine process is forked from: vLLM, and what the engine process needs of it.

The garbage collector is off meanwhile, which takes an eighth off the import; forks turn it on again. What is imported
is permanent, so that no collection of a fork copies its pages.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

ENGINE = ("vllm.v1.engine.async_llm", "vllm.v1.engine.core")
"""What the pod's own process uses, too."""

MODEL = ("vllm.model_executor.model_loader.default_loader", "vllm.model_executor.models.llama")
CPU_WORKER = ("vllm.v1.worker.cpu_worker", "vllm.v1.attention.backends.cpu_attn", *MODEL)
GPU_WORKER = (
    "vllm.v1.worker.gpu_worker",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.model_executor.warmup.kernel_warmup",
    "vllm.v1.attention.backends.flash_attn",
    *MODEL,
)
"""What the engine process imports later. None of it initializes CUDA (seen with vLLM 0.26)."""


def preload() -> None:
    """Import all of it; what is missing in a release of vLLM is left to the engine process."""
    gc.disable()
    for name in ENGINE:
        import_module(name)
    from vllm.platforms import current_platform

    worker = CPU_WORKER if current_platform.is_cpu() else GPU_WORKER if current_platform.is_cuda() else ()
    for name in worker:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()


preload()
