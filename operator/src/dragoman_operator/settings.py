"""Settings of the operator process: flags, then environment ``DRAGOMAN_OPERATOR_<UPPER_SNAKE>``, then defaults."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from dragoman_contract.http import OPERATOR_HEALTH_PORT, OPERATOR_METRICS_PORT

ENV_PREFIX = "DRAGOMAN_OPERATOR_"

_SERVICE_LINK = re.compile(r"_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")
"""Variables that Kubernetes puts into every pod for a Service of a like name (enableServiceLinks)."""


class Settings(BaseSettings):
    """Everything that can be set on `dragoman operator`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        extra="forbid",
        frozen=True,
        cli_prog_name="dragoman operator",
        cli_kebab_case=True,
        cli_avoid_json=True,
        cli_hide_none_type=True,
        nested_model_default_partial_update=False,
    )

    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="namespaces to serve, separated by commas; empty serves the whole cluster"
    )
    cuda_image: str = Field(
        "dragoman-engine:0.1.0-cuda",
        min_length=1,
        description="image of engine pods with engine.device cuda",
    )
    cpu_image: str = Field(
        "dragoman-engine:0.1.0-cpu",
        min_length=1,
        description="image of engine pods with engine.device cpu",
    )
    lease_name: str = Field("dragoman-operator", description="Lease whose holder alone acts")
    lease_namespace: str = Field("", description="namespace of the Lease; empty is the operator's own")
    lease_duration_s: float = Field(
        15, gt=0, le=600, description="seconds after which another may take a Lease that is not renewed"
    )
    lease_renew_deadline_s: float = Field(
        10, gt=0, le=600, description="seconds without a renewal after which the holder stops acting"
    )
    lease_retry_s: float = Field(2, gt=0, le=60, description="seconds between attempts to take or renew")
    identity: str = Field(
        default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        description="name in the Lease; must differ between replicas",
    )
    host: str = Field(
        default_factory=lambda: os.environ.get("DRAGOMAN_HOST", "0.0.0.0"),
        description="address of the health and metrics servers (default DRAGOMAN_HOST, else 0.0.0.0)",
    )
    health_port: int = Field(
        OPERATOR_HEALTH_PORT, ge=0, le=65535, description="/livez and /readyz; 0 picks one"
    )
    metrics_port: int = Field(OPERATOR_METRICS_PORT, ge=0, le=65535, description="/metrics; 0 picks one")
    resync_s: float = Field(
        300, gt=0, le=86400, description="seconds after which an object is looked at again without a change"
    )
    workers: int = Field(8, ge=1, le=64, description="objects reconciled at once")
    tick_s: float = Field(5, ge=1, le=60, description="seconds between two decisions of the autoscaler")
    router_namespace: str = Field(
        "", description="namespace whose routers are listened to; empty is the operator's own"
    )
    prometheus_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="Prometheus for objects whose spec.autoscaling.prometheus has no url, and for KEDA",
    )
    prometheus_token_file: Path | None = Field(
        None, description="file with that Prometheus' bearer token, read anew for each request"
    )
    request_timeout_s: float = Field(15, gt=0, le=300, description="longest wait for one API request")
    log_format: Literal["text", "json"] = Field("text", description="form of a log line")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")

    @field_validator("namespaces", mode="before")
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
        """The token of the operator's own Prometheus, or None where it asks for none.

        Raises:
            OSError: Its file cannot be read.
        """
        return None if self.prometheus_token_file is None else self.prometheus_token_file.read_text().strip()


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Names that begin like ours but are none of ours: most likely a typing error.

    Args:
        environment: Names of environment variables. What Kubernetes adds for Services is let through.
    """
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    return sorted(
        name
        for name in environment
        if name.startswith(ENV_PREFIX) and name not in known and not _SERVICE_LINK.search(name)
    )
