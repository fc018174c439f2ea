"""`spec.model`, `spec.engine` and `spec.resources`: what runs in each pod, and how."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dragoman_contract.models import CUSTOM_FAMILY, FamilyName
from dragoman_kube.quantity import parse
from dragoman_operator.api.fields import (
    Duration,
    Name,
    Quantity,
    SecretKey,
    SpecModel,
    Untyped,
    ValidationRule,
    within,
)

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
        "cuda", description="Device that runs the model. cuda: NVIDIA GPUs. cpu: the CPU."
    )
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = Field(
        "auto", description="Data type of weights and activations. auto: the type in the model's config."
    )
    max_num_seqs: int = Field(
        32,
        ge=1,
        le=4096,
        description=(
            "Maximum number of sequences that run at once in one pod (vLLM max_num_seqs). spec.tuning "
            "recommends a value for your load."
        ),
    )
    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        le=1_048_576,
        description="Maximum number of tokens that vLLM computes in one step (vLLM max_num_batched_tokens).",
    )
    max_model_len: int | None = Field(
        None,
        ge=16,
        le=10_485_760,
        description=(
            "Maximum number of tokens in prompt and translation together (vLLM max_model_len). Default: "
            "the model's maximum. With device cpu, the default is at most the number of tokens that fit "
            "into the KV cache."
        ),
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Fraction of each GPU's memory that vLLM may use. Default: vLLM's default.",
    )
    kv_cache_memory: Quantity | None = Field(
        None,
        description=(
            "Size of the KV cache on each GPU, such as 12Gi. With device cpu: in host memory. "
            "Default: computed from gpuMemoryUtilization, or 512Mi with device cpu."
        ),
    )
    tensor_parallel_size: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of GPUs of each pod, among which vLLM splits the model.",
    )
    quantization: str | None = Field(
        None,
        min_length=1,
        max_length=40,
        pattern=r"^[a-z0-9_-]+$",
        description="Quantization method, such as fp8 or awq. Default: the method in the model's config.",
    )
    scheduling_policy: Literal["FirstComeFirstServed", "ShortestFirst"] | None = Field(
        None,
        description=(
            "Order in which waiting sequences start.\n"
            "FirstComeFirstServed: in the order of arrival.\n"
            "ShortestFirst: a sequence may start before a longer one that arrived up to 15 s earlier. "
            "Short texts are translated sooner, long texts later.\n"
            "Default: FirstComeFirstServed."
        ),
    )
    stall_timeout: Duration | None = Field(
        None,
        description=(
            "Maximum time between two steps of vLLM while sequences run. When a pod exceeds this time, "
            "the liveness probe fails and the container is restarted. Default: 2m."
        ),
    )
    extra_args: Untyped = Field(
        {},
        description=(
            "Other vLLM arguments (fields of AsyncEngineArgs), such as enable_prefix_caching: false. An "
            "argument that vLLM does not know makes the start fail. Arguments that load code, such as "
            "scheduler_cls, need model.trustRemoteCode."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        within("engine", "stallTimeout", "10s", "1h"),
        ValidationRule(
            "self.maxNumBatchedTokens >= self.maxNumSeqs",
            "maxNumBatchedTokens must be at least maxNumSeqs, because a step computes a token of every sequence",
            lambda engine: engine.max_num_batched_tokens >= engine.max_num_seqs,
        ),
        ValidationRule(
            "!(has(self.gpuMemoryUtilization) && has(self.kvCacheMemory))",
            "set gpuMemoryUtilization or kvCacheMemory, not both",
            lambda engine: engine.gpu_memory_utilization is None or engine.kv_cache_memory is None,
        ),
        ValidationRule(
            "self.device != 'cpu' || !has(self.gpuMemoryUtilization)",
            "gpuMemoryUtilization is for device cuda; with device cpu, set kvCacheMemory instead",
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
        if name.replace("-", "_") in TYPED_ARGUMENTS.union(Engine.model_fields)
    )


Amounts = Annotated[dict[str, Quantity], Field(max_length=16)]


class Resources(SpecModel):
    """Resource requests and limits of each pod."""

    limits: Amounts = Field(
        {},
        description="Resource limits of a pod. With engine.device cuda, set nvidia.com/gpu to the value of "
        "engine.tensorParallelSize, or set a MIG device, such as nvidia.com/mig-3g.40gb.",
    )
    requests: Amounts = Field(
        {},
        description=(
            "Resource requests of a pod.\n"
            "Default for a resource with a limit: the limit.\n"
            "Default for cpu and memory without a limit: computed by the operator.\n"
            "With device cpu, set memory: the computed value does not include the model's weights."
        ),
    )


URI_PATTERN = (
    r"^(hf://[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+"
    r"|pvc://[a-z0-9][-a-z0-9.]*(/[^/].*)?"
    r"|s3://[^/]+/.+"
    r"|oci://[^/].+"
    r"|file:///.+)$"
)
"""Locations of a model. Must be valid for RE2 (API server) and Python."""


class ModelCache(SpecModel):
    """Cache of weights and compiled kernels between starts."""

    persistent_volume_claim: Name | None = Field(
        None,
        description=(
            "PersistentVolumeClaim for the cache. Default: an emptyDir, which means that each new pod "
            "downloads the weights again."
        ),
    )
    size_limit: Quantity | None = Field(
        None,
        description=(
            "Size limit of the emptyDir, such as 50Gi. Not allowed with cache.persistentVolumeClaim. "
            "Default: 256Gi × engine.tensorParallelSize for hf:// and s3:// models, 32Gi for other models."
        ),
    )

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!(has(self.persistentVolumeClaim) && has(self.sizeLimit))",
            "set model.cache.sizeLimit or model.cache.persistentVolumeClaim, not both",
            lambda cache: cache.persistent_volume_claim is None or cache.size_limit is None,
        ),
    )


class Model(SpecModel):
    """The translation model."""

    uri: str = Field(
        min_length=6,
        max_length=512,
        description="Location of the model.\n"
        "hf://ORG/NAME: Hugging Face.\n"
        "s3://BUCKET/PATH: S3.\n"
        "pvc://CLAIM/PATH: a PersistentVolumeClaim.\n"
        "oci://IMAGE:TAG: an image volume (Kubernetes 1.33 or later).\n"
        "file:///PATH: a directory in the engine image.",
    )
    revision: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=r"^[\w./-]+$",
        description=(
            "Commit, tag or branch of an hf:// model. Set a commit so that all pods load the same weights."
        ),
    )
    token_secret_ref: SecretKey | None = Field(
        None, description="Secret with a Hugging Face token. Required for gated and private models."
    )
    trust_remote_code: bool = Field(
        False,
        description=(
            "Permit code that is not part of vLLM: Python modules in the model's repository, pickled "
            "weights (.bin, .pt), and code that an argument in engine.extraArgs loads, such as "
            "scheduler_cls. If true with an hf:// model, also set model.revision to a commit."
        ),
    )
    prompt_family: FamilyName = Field(
        description=(
            "Prompt format that the model was trained with. custom: the format in promptTemplate. "
            "`dragoman models` lists the models of each family and the limits of their licences."
        )
    )
    prompt_template: str | None = Field(
        None,
        min_length=6,
        max_length=8192,
        description=(
            "Prompt for promptFamily custom, with placeholders.\n"
            "{text}: the text. Required.\n"
            "{source}, {target}: names of the languages.\n"
            "{source_code}, {target_code}: BCP-47 tags of the languages.\n"
            "{target} or {target_code} is required."
        ),
    )
    cache: ModelCache = Field(ModelCache(), description="Cache for downloaded weights and compiled kernels.")

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"self.uri.matches(r'{URI_PATTERN}')",
            "model.uri must be hf://ORG/NAME, pvc://CLAIM/PATH, s3://BUCKET/PATH, oci://IMAGE:TAG or "
            "file:///PATH",
            lambda model: re.match(URI_PATTERN, model.uri) is not None,
        ),
        ValidationRule(
            f"(self.promptFamily == '{CUSTOM_FAMILY}') == has(self.promptTemplate)",
            "promptTemplate is required with promptFamily custom and not allowed with other families",
            lambda model: (model.prompt_family == CUSTOM_FAMILY) == (model.prompt_template is not None),
        ),
        ValidationRule(
            "!has(self.promptTemplate) || (self.promptTemplate.contains('{text}') && "
            "(self.promptTemplate.contains('{target}') || self.promptTemplate.contains('{target_code}')))",
            "promptTemplate must contain {text}, and {target} or {target_code}",
            lambda model: (
                model.prompt_template is None
                or (
                    "{text}" in model.prompt_template
                    and ("{target}" in model.prompt_template or "{target_code}" in model.prompt_template)
                )
            ),
        ),
        ValidationRule(
            "!has(self.revision) || self.uri.startsWith('hf://')",
            "model.revision applies to hf:// models only",
            lambda model: model.revision is None or model.uri.startswith("hf://"),
        ),
    )

    @property
    def is_remote(self) -> bool:
        """Whether the pod downloads the model."""
        return self.uri.startswith(("hf://", "s3://"))
