"""What an engine pod takes of its node, where the spec does not say: requests, and limits of its volumes.

The operator does not know the model's size: requests are what a pod needs with any model, so that it is not BestEffort,
which is evicted first and gets the smallest share of the CPU. Set `spec.resources` for a model.
"""

from __future__ import annotations

import math

from dragoman_operator.api.fields import Quantity
from dragoman_operator.api.v1alpha1 import MIG, TranslationDeploymentSpec

_MI = 1 << 20

SERVICE_MI = 768
"""Memory of the process with HTTP, text and tokenizer. Measured 578 MiB (PSS) with vLLM 0.32.0."""
ENGINE_MI = {"cpu": 768, "cuda": 2048}
"""Memory of a process of the engine, without weights and KV cache. Measured 510 MiB on the CPU; an estimate for CUDA's
context and pinned buffers."""
TMP_LIMIT = "10Gi"
"""Files of requests are at most 10 MiB each; the caches of vLLM and PyTorch are not in /tmp."""
_SHM_GI, _SHM_PER_PROCESS_GI = 1, 1
"""vLLM's queues between processes are ring buffers of 10 × 24 MiB each (`shm_broadcast.MessageQueue`), one for all and
one per worker; NVIDIA recommends 1 GiB for NCCL.
Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#shared-memory"""
_WEIGHTS_GI, _KERNELS_GI = 256, 32
"""Limit of the cache volume: weights are not larger than the memory of the GPUs, of which the largest have 288 GB;
kernels and compiled graphs take a few GiB."""


def requests(spec: TranslationDeploymentSpec) -> dict[str, Quantity]:
    """Resource requests of the container: those of the spec, and cpu and memory if the spec does not mention them.

    With a limit alone, Kubernetes requests the limit.

    vLLM runs a process for scheduling, which also drives a single GPU; with several GPUs there is one more for each.
    Each keeps a core busy, and so does the process with HTTP and tokenizer. On the CPU, and on slices of a GPU, of
    which a node has many, one core is requested: pods use more while others are idle.

    Source: https://docs.vllm.ai/en/latest/design/arch_overview/ for the processes
    """
    engine, gpus = spec.engine, spec.engine.tensor_parallel_size
    processes = 1 if gpus == 1 else gpus + 1
    shared = engine.device == "cpu" or any(name.startswith(MIG) for name in spec.resources.limits)
    in_memory = spec.translation.cache_bytes or 0
    if engine.device == "cpu":
        in_memory += engine.kv_cache_memory_bytes or 0
    memory_mi = SERVICE_MI + processes * ENGINE_MI[engine.device] + math.ceil(in_memory / _MI)
    needed: dict[str, Quantity] = {"cpu": str(1 if shared else 1 + processes), "memory": f"{memory_mi}Mi"}
    missing = {name: amount for name, amount in needed.items() if name not in spec.resources.limits}
    return {**missing, **spec.resources.requests}


def shm_limit(spec: TranslationDeploymentSpec) -> str:
    """Limit of /dev/shm, which counts as memory of the pod as far as it is used."""
    return f"{_SHM_GI + _SHM_PER_PROCESS_GI * spec.engine.tensor_parallel_size}Gi"


def cache_limit(spec: TranslationDeploymentSpec) -> str:
    """Limit of the cache on the node's disk."""
    if spec.model.cache.size_limit is not None:
        return str(spec.model.cache.size_limit)
    weights_gi = _WEIGHTS_GI * spec.engine.tensor_parallel_size
    return f"{weights_gi if spec.model.is_remote else _KERNELS_GI}Gi"
