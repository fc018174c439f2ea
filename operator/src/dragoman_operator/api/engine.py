"""`spec.engine` and `spec.resources`: how vLLM runs in each pod."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dragoman_kube.quantity import parse
from dragoman_operator.api.fields import Duration, Quantity, Rule, SpecModel, Untyped, within

TYPED_ARGUMENTS = frozenset(
    {
        "model",
        "revision",
        "served_model_name",
        "device",
        "dtype",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "tensor_parallel_size",
        "quantization",
        "download_dir",
    }
)
"""vLLM's arguments that have a field in the spec; extraArgs cannot repeat them."""


class Engine(SpecModel):
    """vLLM settings of each pod."""

    device: Literal["cuda", "cpu"] = Field(
        "cuda", description="Device that runs the model: NVIDIA GPUs (cuda) or the CPU (cpu)."
    )
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = Field(
        "auto", description="Data type of weights and activations. auto: as in the model's config."
    )
    max_num_seqs: int = Field(
        32,
        ge=1,
        le=4096,
        description="Maximum number of sequences that one pod decodes at once (vLLM max_num_seqs). "
        "Further requests wait. Size it to the load.",
    )
    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        le=1_048_576,
        description="Maximum number of tokens per engine step (vLLM max_num_batched_tokens).",
    )
    max_model_len: int | None = Field(
        None,
        ge=16,
        le=10_485_760,
        description="Maximum number of tokens of prompt and translation together. Default: the model's "
        "limit.",
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Fraction of GPU memory for weights and KV cache. Default: vLLM's.",
    )
    kv_cache_memory: Quantity | None = Field(
        None,
        description="Size of the KV cache, such as 12Gi. Alternative to gpuMemoryUtilization.",
    )
    tensor_parallel_size: int = Field(
        1, ge=1, le=64, description="Number of GPUs over which one pod splits the model."
    )
    quantization: str | None = Field(
        None,
        min_length=1,
        max_length=40,
        pattern=r"^[a-z0-9_-]+$",
        description="Quantization method, such as fp8 or awq. Default: as in the model's config.",
    )
    scheduling_policy: Literal["FirstComeFirstServed", "ShortestFirst"] | None = Field(
        None,
        description="Order in which waiting segments are scheduled. ShortestFirst schedules short "
        "segments first, with aging, so that long ones do not starve; it reduces latency when pods are "
        "busy and lengths differ. Default: FirstComeFirstServed.",
    )
    stall_timeout: Duration | None = Field(
        None,
        description="Maximum time without an engine step while requests are running. After it the "
        "liveness probe fails, and the pod is restarted about a minute later. Default: 2m.",
    )
    extra_args: Untyped = Field(
        {},
        description="Further vLLM AsyncEngineArgs by field name, such as enable_prefix_caching. The pod "
        "fails to start on names that its vLLM does not have.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        within("engine", "stallTimeout", "10s", "1h"),
        Rule(
            "self.maxNumBatchedTokens >= self.maxNumSeqs",
            "maxNumBatchedTokens must be at least maxNumSeqs: a step computes one token of every sequence",
            lambda engine: engine.max_num_batched_tokens >= engine.max_num_seqs,
        ),
        Rule(
            "!(has(self.gpuMemoryUtilization) && has(self.kvCacheMemory))",
            "set gpuMemoryUtilization or kvCacheMemory, not both: either sizes the KV cache",
            lambda engine: engine.gpu_memory_utilization is None or engine.kv_cache_memory is None,
        ),
        Rule(
            "self.device != 'cpu' || !has(self.gpuMemoryUtilization)",
            "gpuMemoryUtilization is for device cuda; on cpu size the KV cache with kvCacheMemory",
            lambda engine: engine.device != "cpu" or engine.gpu_memory_utilization is None,
        ),
    )

    @property
    def kv_cache_memory_bytes(self) -> int | None:
        """`kv_cache_memory` as a number of bytes."""
        return None if self.kv_cache_memory is None else int(parse(self.kv_cache_memory))


def typed_again(engine: Engine) -> list[str]:
    """Names in extraArgs that have a field in the spec (CEL cannot read untyped objects)."""
    return sorted(
        name
        for name in engine.extra_args
        if name.replace("-", "_") in TYPED_ARGUMENTS or name in type(engine).model_fields
    )


Amounts = Annotated[dict[str, Quantity], Field(max_length=16)]


class Resources(SpecModel):
    """Resource requests and limits of each pod."""

    limits: Amounts = Field(
        {}, description="Resource limits of a pod, such as nvidia.com/gpu: 1 or memory: 32Gi."
    )
    requests: Amounts = Field({}, description="Resource requests of a pod. Default: the limits.")
