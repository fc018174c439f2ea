"""Settings of the operator process: flags, then environment ``DRAGOMAN_OPERATOR_<UPPER_SNAKE>``, then defaults."""

from __future__ import annotations

import re
import socket
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from dragoman_contract.http import OPERATOR_HEALTH_PORT, OPERATOR_METRICS_PORT
from dragoman_system.command_line import CommandSettings
from dragoman_system.listening import ANY_HOST

ENV_PREFIX = "DRAGOMAN_OPERATOR_"

_SERVICE_LINK = re.compile(r"_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")
"""Variables that Kubernetes puts into every pod for a Service of a like name (enableServiceLinks)."""


class Settings(CommandSettings):
    """Options of `dragoman operator`."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, cli_prog_name="dragoman operator")

    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Namespaces to manage, separated by commas. Default: all."
    )
    cuda_image: str = Field(
        "dragoman-engine:0.1.0-cuda",
        min_length=1,
        description="Image of engine pods with engine.device cuda.",
    )
    cpu_image: str = Field(
        "dragoman-engine:0.1.0-cpu",
        min_length=1,
        description="Image of engine pods with engine.device cpu.",
    )
    image_pull_secrets: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Secrets with the credentials for the registry of the engine image, separated by commas, for "
        "deployments that do not set imagePullSecrets. They have to be in the namespaces of these deployments.",
    )
    platform_users: bool = Field(
        False,
        description="Leave user and groups of engine pods to the platform, as OpenShift requires, for deployments that "
        "do not set podTemplate.securityContext.",
    )
    lease_name: str = Field("dragoman-operator", description="Name of the Lease for leader election.")
    lease_namespace: str = Field("", description="Namespace of the Lease. Default: the operator's namespace.")
    lease_duration_s: float = Field(
        12, gt=0, le=600, description="Seconds after which a Lease that is not renewed expires."
    )
    lease_renew_deadline_s: float = Field(
        10, gt=0, le=600, description="Seconds without a renewal after which the leader exits."
    )
    lease_retry_s: float = Field(
        2,
        gt=0,
        le=60,
        description=(
            "Seconds between two renewals of the Lease. Standby operators try to acquire the Lease twice "
            "as often."
        ),
    )
    identity: str = Field(
        default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        description="Unique name of this operator in the Lease.",
    )
    host: str = Field(ANY_HOST, description="Address to listen on. `::` is every address of IPv6 and IPv4.")
    health_port: int = Field(
        OPERATOR_HEALTH_PORT, ge=0, le=65535, description="Port of /livez and /readyz. 0: any free port."
    )
    metrics_port: int = Field(
        OPERATOR_METRICS_PORT, ge=0, le=65535, description="Port of /metrics. 0: any free port."
    )
    resync_s: float = Field(
        300,
        gt=0,
        le=86400,
        description="Seconds after which a TranslationDeployment is reconciled again, even without a change, and the "
        "watched Kubernetes objects are listed again.",
    )
    workers: int = Field(
        8, ge=1, le=64, description="Maximum number of TranslationDeployments that are reconciled at once."
    )
    deletion_costs: bool = Field(
        True,
        description="Before a scale-down, set deletion costs on the pods, so that the least busy pods are terminated "
        "first. Needs permission to patch pods.",
    )
    autoscaling_interval_s: float = Field(
        5,
        ge=1,
        le=60,
        description="Seconds between two decisions on the number of replicas.",
    )
    router_namespace: str = Field(
        "",
        description="Namespace of the routers. They report the requests that wait for each deployment, which count "
        "for autoscaling. Default: the operator's namespace.",
    )
    prometheus_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description=(
            "URL of the Prometheus for deployments that do not set autoscaling.prometheus.url. Mode KEDA always uses "
            "it for these. Other modes use it only if autoscaling.prometheus is set; an empty object {} is enough."
        ),
    )
    prometheus_token_file: Path | None = Field(
        None, description="File with the bearer token for --prometheus-url, read for each request."
    )
    prometheus_headers: dict[str, str] = Field(
        {},
        description=(
            "JSON object with headers of requests to --prometheus-url, such as the tenant of Mimir: "
            '{"X-Scope-OrgID": "translation"}. KEDA sends them, too.'
        ),
    )
    request_timeout_s: float = Field(
        15, gt=0, le=300, description="Maximum seconds for a request to the Kubernetes API server."
    )
    log_format: Literal["text", "json"] = Field("text", description="Format of log messages.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level of log messages."
    )

    @field_validator("namespaces", "image_pull_secrets", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        parts: Iterable[object] = [value] if isinstance(value, str) else value  # type: ignore[assignment]
        return tuple(name for part in parts for name in re.split(r"[,\s]+", str(part)) if name)

    @model_validator(mode="after")
    def _in_order(self) -> Settings:
        if not self.lease_retry_s < self.lease_renew_deadline_s < self.lease_duration_s:
            raise ValueError(
                "lease-retry-s must be below lease-renew-deadline-s, and that below lease-duration-s"
            )
        return self

    def prometheus_token(self) -> str | None:
        """The token of the operator's Prometheus; None without authentication.

        Raises:
            OSError: The file cannot be read.
        """
        return None if self.prometheus_token_file is None else self.prometheus_token_file.read_text().strip()


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Variables with the prefix that are not settings: most likely a typing error.

    Those that Kubernetes adds for Services are ignored.
    """
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    return sorted(
        name
        for name in environment
        if name.startswith(ENV_PREFIX) and name not in known and not _SERVICE_LINK.search(name)
    )
