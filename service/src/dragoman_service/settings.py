"""Settings of an engine pod, from flags and from `DRAGOMAN_*` in the environment.

Flags take precedence over the environment. An unknown flag is refused with the nearest known one; an unknown
`DRAGOMAN_*` variable is not, because Kubernetes itself injects such names for every Service called
`dragoman-…` in the namespace. A Hugging Face token is no setting: huggingface_hub reads HF_TOKEN itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import CliImplicitFlag, SettingsConfigDict

from dragoman_contract.command_line import CommandLineError, CommandSettings, flag, read_command_line
from dragoman_contract.files import FILE_CHARACTERS, FILE_TIMEOUT_S
from dragoman_contract.http import ENGINE_PORT, MAX_TEXTS, WRITE_TIMEOUT_S
from dragoman_contract.languages import Languages
from dragoman_contract.prompts import PROMPT_FAMILIES
from dragoman_contract.routing import LAME_DUCK_S, REQUEST_TIMEOUT_S
from dragoman_service.errors import SettingsError

KUBERNETES_TERMINATION_LOG = Path("/dev/termination-log")
"""Where a kubelet reads a container's termination message by default."""


RENAMED = {
    "cache_bytes": "translation_cache_bytes",
    "gather_steps": "prefill_schedule_interval",
    "refuse_late": "deadline_aware_admission",
    "wedged_after_s": "stall_timeout_s",
    "whole_answers": "coalesce_outputs",
}
"""New names of settings; the old ones, and their variables, are refused with the new one."""

REMOVED = dict.fromkeys(
    ("deepl_character_limit", "max_characters"), "quotas are those of API keys at a router (characterLimit)"
)
"""Settings of earlier versions, and what replaces them."""


class Settings(CommandSettings):
    """The settings of one engine pod; immutable once read."""

    model_config = SettingsConfigDict(env_prefix="DRAGOMAN_", cli_prog_name="dragoman serve")

    model: str = Field(
        min_length=1, description="model to serve: a directory, a Hugging Face id (org/name) or s3://…"
    )
    revision: str | None = Field(None, description="commit, tag or branch of a Hugging Face model")
    trust_remote_code: bool = Field(
        False,
        description="whether the model may run code: modules of its repository, pickled weights, classes that "
        "engine-args names",
    )
    served_name: str | None = Field(None, description="name of the deployment in metrics; default: the model")

    prompt_family: str = Field("chatml-generic", description=f"one of {', '.join(PROMPT_FAMILIES)}")
    prompt_template: str | None = Field(
        None,
        description="with family custom: text with {text}, {source}, {target}, {source_code}, {target_code}",
    )
    languages: tuple[Languages, ...] = Field(
        (), description='JSON such as [{"source":"en","targets":["de"]}]; none listed: every pair'
    )
    split: Literal["lines", "sentences", "no-lines", "none"] | None = Field(
        None,
        description="how plain text is split if a request does not say; default: the model family's preference",
    )
    glossary: Path | None = Field(
        None,
        description="glossary file, YAML or .tsv, reloaded on change; terms in a request take precedence",
    )
    guard_process: bool | None = Field(
        None,
        description="check short translations in a separate process, as long ones always are; default: on a GPU with 4 "
        "CPUs or more",
    )
    translation_cache_bytes: int = Field(
        0, ge=0, description="bytes for a cache of translated segments; 0: no cache"
    )

    engine: Literal["vllm", "scripted"] = Field(
        "vllm", description="scripted: deterministic output without a model, for tests and benchmarks"
    )
    device: Literal["cuda", "cpu"] = Field("cuda", description="device that runs the model")
    max_num_seqs: int | None = Field(None, ge=1, description="maximum sequences decoded at once")
    max_num_batched_tokens: int | None = Field(None, ge=1, description="maximum tokens per engine step")
    max_model_len: int | None = Field(
        None, ge=1, description="maximum tokens of prompt and translation together"
    )
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1, description="share of memory to use")
    kv_cache_memory_bytes: int | None = Field(None, ge=1, description="KV cache size instead of the share")
    tensor_parallel_size: int | None = Field(None, ge=1, description="GPUs that hold one model together")
    quantization: str | None = Field(None, description="such as fp8; default: as the model's config says")
    dtype: str | None = Field(None, description="such as bfloat16; default: as the model's config says")
    engine_args: dict[str, Any] = Field(
        default_factory=dict, description='more AsyncEngineArgs fields, as JSON: {"enforce_eager": true}'
    )

    host: str = Field("0.0.0.0", description="address to listen on")
    port: int = Field(ENGINE_PORT, ge=1, le=65535, description="port to listen on")
    request_timeout_s: float = Field(
        REQUEST_TIMEOUT_S,
        gt=0,
        description="maximum seconds for a request, then 504; same default as the router",
    )
    write_timeout_s: float = Field(
        WRITE_TIMEOUT_S,
        ge=0.1,
        le=3600,
        description="seconds without progress after which a client that does not read its response is disconnected",
    )
    file_timeout_s: float = Field(
        FILE_TIMEOUT_S,
        gt=0,
        description=f"maximum seconds for a file; a file gets request-timeout-s per {FILE_CHARACTERS} characters",
    )
    max_queued_requests: int | None = Field(
        None,
        ge=0,
        description="maximum generations that wait for the engine; default: 8 per running sequence",
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        description="maximum estimated tokens that wait for the engine; default: as many as run at once",
    )
    deadline_aware_admission: bool = Field(
        True,
        description="refuse a request immediately if, at the measured throughput, it would exceed its time limit",
    )
    scheduling_policy: Literal["fcfs", "shortest"] = Field(
        "fcfs", description="fcfs, or shortest: short segments first, with aging"
    )
    prefill_schedule_interval: int | None = Field(
        None,
        ge=1,
        description="engine steps between prefills under load; 1: no batching; default: 4 on a GPU, else 1; "
        "vLLM's own argument of this name is for data parallelism only",
    )
    coalesce_outputs: bool = Field(
        True,
        description="send the output of non-streaming requests from the engine process once, when it is complete",
    )
    stall_timeout_s: float = Field(
        120, gt=0, description="seconds without an engine step while requests run, after which /livez fails"
    )
    sleep_after_s: float | None = Field(
        None,
        gt=0,
        description="seconds without requests after which the weights move from the GPU to host memory until the next "
        "request; default: never",
    )
    turns_url: SecretStr | None = Field(
        None,
        description="Redis or Valkey through which pods that share a GPU agree which of them is awake; needs "
        "sleep-after-s; set it in DRAGOMAN_TURNS_URL",
    )
    turns_device: str | None = Field(None, description="name of the GPU that they share; default: its UUID")
    unready_when_overloaded: bool = Field(
        False, description="fail /readyz while requests are refused because of overload"
    )
    lame_duck_s: float | None = Field(
        None,
        ge=0,
        description="maximum seconds after SIGTERM in which requests are still accepted while /readyz fails; "
        f"default: {LAME_DUCK_S:g} if there were requests in the last minute, else 0",
    )
    otlp_endpoint: str | None = Field(
        None, description="OTLP/HTTP collector for traces, such as http://otel:4318; default: OTEL_*, or none"
    )
    drain_timeout_s: float = Field(
        60, ge=0, description="maximum seconds to finish in-flight requests after SIGTERM"
    )
    max_body_bytes: int = Field(1024 * 1024, ge=1024, description="maximum bytes of a request body")
    max_texts: int = Field(MAX_TEXTS, ge=1, description="maximum texts per request")
    page: CliImplicitFlag[bool] = Field(True, description="serve the web page at /")

    termination_log: Path | None = Field(
        None, description=f"file for the reason of a failed start; default: {KUBERNETES_TERMINATION_LOG}"
    )
    cache_dir: Path | None = Field(
        None, description="directory for weights (huggingface/) and compiled kernels (vllm/)"
    )
    start_cache_url: str | None = Field(
        None,
        description="Service of this deployment, such as http://10.0.0.7:8000: a pod that starts takes compiled "
        "kernels from a ready one; needs start-cache-secret and cache-dir",
    )
    start_cache_secret: SecretStr | None = Field(
        None,
        description="secret of this deployment, which authenticates its pods, 32 characters or more; set it in "
        "DRAGOMAN_START_CACHE_SECRET",
    )
    glossary_dir: Path | None = Field(
        None,
        description="directory of callers' glossaries; default: glossaries/ under cache-dir, else memory",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="minimum log level")

    @field_validator("prompt_family")
    @classmethod
    def _known_family(cls, name: str) -> str:
        if name not in PROMPT_FAMILIES:
            raise ValueError(f"no prompt family {name!r}; there are {', '.join(PROMPT_FAMILIES)}")
        return name

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if (self.prompt_family == "custom") != (self.prompt_template is not None):
            raise ValueError("prompt-family custom and prompt-template go together: set both or neither")
        if self.kv_cache_memory_bytes is not None and self.gpu_memory_utilization is not None:
            raise ValueError("set gpu-memory-utilization or kv-cache-memory-bytes, not both")
        if self.sleep_after_s is not None and self.engine == "vllm" and self.device != "cuda":
            raise ValueError("sleep-after-s needs device cuda: vLLM's sleep mode frees the memory of a GPU")
        if self.turns_url is not None and self.sleep_after_s is None:
            raise ValueError(
                "turns-url needs sleep-after-s: a pod that shares a GPU sleeps while another has its turn"
            )
        if (
            self.max_num_batched_tokens is not None
            and self.max_num_seqs is not None
            and self.max_num_batched_tokens < self.max_num_seqs
        ):
            raise ValueError("max-num-batched-tokens must be at least max-num-seqs")
        return self

    @property
    def traces_endpoint(self) -> str | None:
        """The URL that traces are sent to: of the flag, else of OpenTelemetry's own variables; or None.

        Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
        """
        if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        exact = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        if self.otlp_endpoint is None and exact:
            return exact
        base = self.otlp_endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        return f"{base.rstrip('/')}/v1/traces" if base else None

    @property
    def name(self) -> str:
        """Name of this deployment in metrics and logs."""
        return self.served_name or self.model


def termination_log(argv: list[str]) -> Path | None:
    """File for the reason of a failed start, found without reading any other setting.

    Settings that are wrong are themselves a reason to write there.

    Returns:
        The file of the flag or variable, else Kubernetes' own if this process can write it, else None.
    """
    named_by = flag("termination_log")
    for at, argument in enumerate(argv):
        if argument == named_by and at + 1 < len(argv):
            return Path(argv[at + 1])
        if argument.startswith(f"{named_by}="):
            return Path(argument.partition("=")[2])
    named = os.environ.get("DRAGOMAN_TERMINATION_LOG")
    if named:
        return Path(named)
    return KUBERNETES_TERMINATION_LOG if os.access(KUBERNETES_TERMINATION_LOG, os.W_OK) else None


def read_settings(argv: list[str]) -> Settings:
    """Settings from what follows `dragoman serve`, and from the environment.

    Raises:
        SettingsError: With every wrong flag or variable named.
        SystemExit: After `--help`.
    """
    try:
        return read_command_line(Settings, argv, RENAMED, REMOVED)
    except CommandLineError as error:
        raise SettingsError(str(error)) from error
