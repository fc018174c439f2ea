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

from dragoman_contract.http import ENGINE_PORT, MAX_TEXTS
from dragoman_contract.languages import Languages
from dragoman_contract.models import PROMPT_FAMILIES
from dragoman_contract.routing import LAME_DUCK_S, REQUEST_TIMEOUT_S
from dragoman_http.limits import WRITE_TIMEOUT_S
from dragoman_protocols.files import FILE_CHARACTERS, FILE_TIMEOUT_S
from dragoman_service.errors import SettingsError
from dragoman_system.command_line import CommandLineError, CommandSettings, flag, read_command_line
from dragoman_system.listening import ANY_HOST

KUBERNETES_TERMINATION_LOG = Path("/dev/termination-log")
"""Where a kubelet reads a container's termination message by default."""


class Settings(CommandSettings):
    """Options of `dragoman serve`, which runs one engine pod."""

    model_config = SettingsConfigDict(env_prefix="DRAGOMAN_", cli_prog_name="dragoman serve")

    model: str = Field(
        min_length=1,
        description="Model to serve: a directory, a Hugging Face id (ORG/NAME) or s3://BUCKET/PATH.",
    )
    revision: str | None = Field(None, description="Commit, tag or branch of a Hugging Face model.")
    trust_remote_code: bool = Field(
        False,
        description=(
            "Permit code that is not part of vLLM: Python modules in the model's repository, pickled "
            "weights (.bin, .pt), and code that an argument in --engine-args loads, such as "
            "scheduler_cls."
        ),
    )
    served_name: str | None = Field(
        None, description="Name of the deployment in metrics and logs. Default: the value of --model."
    )

    prompt_family: str = Field(
        "chatml-generic",
        description=f"Prompt format of the model family, one of {', '.join(PROMPT_FAMILIES)}.",
    )
    prompt_template: str | None = Field(
        None,
        description=(
            "Prompt for --prompt-family custom, with placeholders: {text}, {source} and {target} (names "
            "of the languages), {source_code} and {target_code} (BCP-47 tags of the languages)."
        ),
    )
    languages: tuple[Languages, ...] = Field(
        (),
        description='Language pairs to serve, as JSON: [{"source": "en", "targets": ["de"]}]. Default: all pairs.',
    )
    split: Literal["lines", "sentences", "no-lines", "none"] | None = Field(
        None,
        description=(
            "How plain text is split into segments, unless the request sets the field split.\n"
            "lines: at line breaks, and between the sentences of a very long line.\n"
            "sentences: at line breaks and between sentences.\n"
            "no-lines: between sentences. A line break counts as a space.\n"
            "none: not at all.\n"
            "Default: lines or sentences, depending on the model."
        ),
    )
    glossary: Path | None = Field(
        None,
        description=(
            "Glossary file: tab-separated lines if the name ends in .tsv, otherwise YAML. The file is reloaded when "
            "it changes."
        ),
    )
    guard_process: bool | None = Field(
        None,
        description=(
            "Whether translations are checked (for example for repetitions) in a separate process. false: they are "
            "checked in the process that serves HTTP. Default: true with --device cuda and at least 4 CPUs, "
            "otherwise false."
        ),
    )
    translation_cache_bytes: int = Field(
        0, ge=0, description="Memory for a cache of translated segments, in bytes. 0: no cache."
    )

    engine: Literal["vllm", "scripted"] = Field(
        "vllm",
        description="Engine that translates. scripted: deterministic output without a model, for tests and "
        "benchmarks.",
    )
    device: Literal["cuda", "cpu"] = Field(
        "cuda", description="Device that runs the model. cuda: NVIDIA GPUs."
    )
    max_num_seqs: int | None = Field(
        None,
        ge=1,
        description="Maximum number of sequences that run at once (vLLM max_num_seqs). Default: vLLM's default.",
    )
    max_num_batched_tokens: int | None = Field(
        None,
        ge=1,
        description=(
            "Maximum number of tokens that vLLM computes in one step (vLLM max_num_batched_tokens). "
            "Default: vLLM's default."
        ),
    )
    max_model_len: int | None = Field(
        None,
        ge=1,
        description=(
            "Maximum number of tokens in prompt and translation together (vLLM max_model_len). Default: "
            "the model's maximum. With --device cpu, the default is at most the number of tokens that "
            "fit into the KV cache."
        ),
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Fraction of each GPU's memory that vLLM may use, 0 to 1. Default: vLLM's default.",
    )
    kv_cache_memory_bytes: int | None = Field(
        None,
        ge=1,
        description=(
            "Size of the KV cache in bytes: on each GPU, or in host memory with --device cpu. Default: "
            "computed from --gpu-memory-utilization, or 512 MiB with --device cpu."
        ),
    )
    tensor_parallel_size: int | None = Field(
        None, ge=1, description="Number of GPUs among which vLLM splits the model. Default: 1."
    )
    quantization: str | None = Field(
        None, description="Quantization method, such as fp8. Default: the method in the model's config."
    )
    dtype: str | None = Field(
        None,
        description="Data type of weights and activations, such as bfloat16. Default: the type in the model's config.",
    )
    engine_args: dict[str, Any] = Field(
        default_factory=dict,
        description='Other vLLM arguments (fields of AsyncEngineArgs), as JSON: {"enforce_eager": true}.',
    )

    host: str = Field(ANY_HOST, description="Address to listen on. `::` is every address of IPv6 and IPv4.")
    port: int = Field(ENGINE_PORT, ge=1, le=65535, description="Port to listen on.")
    request_timeout_s: float = Field(
        REQUEST_TIMEOUT_S,
        gt=0,
        description=(
            "Maximum seconds for a request. A slower request gets status 504, or 503 if the pod was "
            "overloaded."
        ),
    )
    write_timeout_s: float = Field(
        WRITE_TIMEOUT_S,
        ge=0.1,
        le=3600,
        description=(
            "Seconds without progress after which a client that does not read its response is disconnected."
        ),
    )
    file_timeout_s: float = Field(
        FILE_TIMEOUT_S,
        gt=0,
        description=(
            "Upper bound, in seconds, of the time limit of an uploaded file. The limit grows with the file: "
            f"--request-timeout-s for each {FILE_CHARACTERS:,} characters (proportionally), but at least "
            "--request-timeout-s and at most --file-timeout-s."
        ),
    )
    max_queued_sequences: int | None = Field(
        None,
        ge=0,
        description=(
            "Maximum number of sequences that wait for the engine. For example, 10 segments into 2 "
            "languages are 20 sequences. Default: 8 × --max-num-seqs."
        ),
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        description=(
            "Maximum number of tokens of all waiting sequences. The tokens of a sequence are those of its prompt "
            "and of its translation, both estimated. "
            "Default: as many as fit into the KV cache, at most --max-num-seqs × --max-model-len."
        ),
    )
    deadline_aware_admission: bool = Field(
        True,
        description=(
            "Refuse a request at once if it would exceed its time limit at the measured throughput of "
            "the pod."
        ),
    )
    scheduling_policy: Literal["fcfs", "shortest"] = Field(
        "fcfs",
        description=(
            "Order in which waiting sequences start.\n"
            "fcfs: in the order of arrival.\n"
            "shortest: a sequence may start before a longer one that arrived up to 15 s earlier."
        ),
    )
    prefill_schedule_interval: int | None = Field(
        None,
        ge=1,
        description=(
            "While vLLM generates, a new sequence can wait for others, so that one step prefills several. It starts "
            "in the Nth step after its arrival at the latest. This flag sets N. Default: 32 on a GPU, 1 "
            "(no wait) on the CPU."
        ),
    )
    coalesce_outputs: bool = Field(
        True,
        description=(
            "Send the output of a non-streaming request from vLLM's process to the HTTP process once, "
            "when the output is complete, instead of token by token."
        ),
    )
    stall_timeout_s: float = Field(
        120,
        gt=0,
        description="/livez fails if sequences run and vLLM completes no step for this many seconds.",
    )
    sleep_after_s: float | None = Field(
        None,
        gt=0,
        description="Seconds without requests after which the weights move from the GPU to host memory. The next "
        "request moves them back. Default: never.",
    )
    turns_url: SecretStr | None = Field(
        None,
        description=(
            "URL of a Redis or Valkey server through which pods that share a GPU take turns: one is "
            "awake, the others sleep. Needs --sleep-after-s. If the URL has a password, set "
            "DRAGOMAN_TURNS_URL instead of the flag."
        ),
    )
    turns_device: str | None = Field(
        None,
        description=(
            "Name of the shared GPU, the same for all pods that share the GPU. Default: the UUID of the GPU."
        ),
    )
    unready_when_overloaded: bool = Field(
        False, description="Fail /readyz while requests are refused because of overload."
    )
    lame_duck_s: float | None = Field(
        None,
        ge=0,
        description="Seconds after SIGTERM in which requests are still accepted while /readyz fails. The time ends "
        "earlier if all routers that sent requests in the last minute confirm that they send no more, and no other "
        "client sent a request in the last 10 s. "
        f"Default: {LAME_DUCK_S:g}, or 0 if no request arrived in the last minute.",
    )
    otlp_endpoint: str | None = Field(
        None,
        description=(
            "OTLP/HTTP endpoint for traces, such as http://otel:4318. Default: the value of "
            "OTEL_EXPORTER_OTLP_ENDPOINT, otherwise no traces."
        ),
    )
    drain_timeout_s: float = Field(
        60, ge=0, description="Maximum seconds to finish in-flight requests, after --lame-duck-s."
    )
    max_body_bytes: int = Field(
        1024 * 1024,
        ge=1024,
        description="Maximum size of a request body, in bytes. For uploaded files, the limit is this value or "
        "10 MiB, whichever is larger.",
    )
    max_texts: int = Field(MAX_TEXTS, ge=1, description="Maximum number of texts in a request.")
    page: CliImplicitFlag[bool] = Field(True, description="Serve a web page for translations at /.")

    termination_log: Path | None = Field(
        None,
        description=f"File to which the reason of a failed start is written. Default: {KUBERNETES_TERMINATION_LOG}.",
    )
    cache_dir: Path | None = Field(
        None,
        description="Directory for downloaded weights (huggingface/) and compiled kernels (vllm/). Default: the "
        "default directories of Hugging Face and vLLM.",
    )
    start_cache_url: str | None = Field(
        None,
        description=(
            "URL of the deployment's Service, such as http://european.default:8000 (Service european in namespace "
            "default). A starting pod copies compiled kernels from a ready pod behind it. Needs "
            "--start-cache-secret and --cache-dir."
        ),
    )
    start_cache_secret: SecretStr | None = Field(
        None,
        description=(
            "Secret of at least 32 characters with which pods of the deployment authenticate to each "
            "other. Set DRAGOMAN_START_CACHE_SECRET instead of the flag."
        ),
    )
    glossary_dir: Path | None = Field(
        None,
        description=(
            "Directory for glossaries that clients create. Default: glossaries/ in --cache-dir. If neither "
            "--glossary-dir nor --cache-dir is set, these glossaries are kept in memory."
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level of log messages."
    )

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
        return read_command_line(Settings, argv)
    except CommandLineError as error:
        raise SettingsError(str(error)) from error
