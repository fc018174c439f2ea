"""`spec.engine` and `spec.resources`: how vLLM runs in each pod."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from dragoman_operator.api.fields import Duration, Quantity, Rule, SpecModel, amount, within

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
"""Names of vLLM's arguments that have a field of their own; extraArgs may not say them again."""


class Engine(SpecModel):
    """How vLLM runs in each pod."""

    device: Literal["cuda", "cpu"] = Field("cuda", description="What computes: NVIDIA GPUs or the CPU.")
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = Field(
        "auto", description="Type of weights and activations; auto takes the model's own."
    )
    max_num_seqs: int = Field(
        32,
        ge=1,
        le=4096,
        description="Most sequences that one pod decodes at once; the rest waits. Size it to the load.",
    )
    max_num_batched_tokens: int = Field(
        8192, ge=1, le=1_048_576, description="Most tokens that one step of the engine computes."
    )
    max_model_len: int | None = Field(
        None,
        ge=16,
        le=10_485_760,
        description="Most tokens of prompt and translation together; the model's own limit where unset.",
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of the GPU's memory for weights and KV cache; vLLM's default where unset.",
    )
    kv_cache_memory: Quantity | None = Field(
        None,
        description="Memory of the KV cache, such as 12Gi, instead of gpuMemoryUtilization.",
    )
    tensor_parallel_size: int = Field(1, ge=1, le=64, description="GPUs that one pod spreads the model over.")
    quantization: str | None = Field(
        None,
        min_length=1,
        max_length=40,
        pattern=r"^[a-z0-9_-]+$",
        description="Quantization method such as fp8 or awq; the model's own where unset.",
    )
    scheduling_policy: Literal["FirstComeFirstServed", "ShortestFirst"] | None = Field(
        None,
        description="Which waiting text is translated next. ShortestFirst lets short ones pass long ones, which "
        "age; it pays where pods are busy and lengths differ. FirstComeFirstServed where unset.",
    )
    wedged_after: Duration | None = Field(
        None,
        description="Time without a step of an engine that has work, after which the pod fails its liveness "
        "probe, and is restarted a minute later; 2m where unset.",
    )
    extra_args: Annotated[
        dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    ] = Field(
        {},
        description="Further fields of vLLM's AsyncEngineArgs by name, such as enable_prefix_caching; the "
        "engine refuses names that its vLLM does not know.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        within("engine", "wedgedAfter", "10s", "1h"),
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
        return None if self.kv_cache_memory is None else int(amount(self.kv_cache_memory))


def typed_again(engine: Engine) -> list[str]:
    """Names in extraArgs that have a field of their own (CEL cannot look into untyped objects)."""
    return sorted(
        name
        for name in engine.extra_args
        if name.replace("-", "_") in TYPED_ARGUMENTS or name in type(engine).model_fields
    )


Amounts = Annotated[dict[str, Quantity], Field(max_length=16)]


class Resources(SpecModel):
    """What each pod asks of its node."""

    limits: Amounts = Field(
        {}, description="Most that a pod may use, such as nvidia.com/gpu: 1 or memory: 32Gi."
    )
    requests: Amounts = Field(
        {}, description="What a pod is promised; what is left out is taken from the limits."
    )
