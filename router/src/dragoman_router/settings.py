"""Settings of the router process: flags, then environment `DRAGOMAN_ROUTER_<UPPER_SNAKE>`, then defaults."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from pydantic_settings import SettingsError as PydanticSettingsError

from dragoman_contract.files import FILE_TIMEOUT_S, MOST_FILE_BYTES
from dragoman_contract.http import ROUTER_ADMIN_PORT, ROUTER_PORT, WRITE_TIMEOUT_S
from dragoman_contract.routing import REQUEST_TIMEOUT_S
from dragoman_router.errors import SettingsError


class Settings(BaseSettings):
    """Everything that can be set on `dragoman router`."""

    model_config = SettingsConfigDict(
        env_prefix="DRAGOMAN_ROUTER_",
        frozen=True,
        extra="forbid",
        cli_prog_name="dragoman router",
        cli_kebab_case=True,
        cli_hide_none_type=True,
        cli_avoid_json=True,
    )

    static: Path | None = Field(
        None, description="YAML file of deployments and replicas, instead of Kubernetes; read again on change"
    )
    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="namespaces to serve, separated by commas; empty serves the whole cluster"
    )
    resync_s: float = Field(300, gt=0, le=86400, description="seconds after which everything is listed anew")

    glossary_namespace: str | None = Field(
        None, description="namespace whose ConfigMaps keep callers' glossaries; none: each pod keeps its own"
    )
    glossary_dir: Path | None = Field(
        None, description="directory that keeps them instead, such as a volume of all routers"
    )

    host: str = Field(
        default_factory=lambda: os.environ.get("DRAGOMAN_HOST", "0.0.0.0"),
        description="address to listen on (default DRAGOMAN_HOST, else 0.0.0.0)",
    )
    port: int = Field(ROUTER_PORT, ge=0, le=65535, description="where clients come; 0 picks one")
    admin_port: int = Field(ROUTER_ADMIN_PORT, ge=0, le=65535, description="probes, metrics and load")
    router_id: str = Field(
        default_factory=socket.gethostname, min_length=1, max_length=253, description="name among routers"
    )

    request_timeout_s: float = Field(
        REQUEST_TIMEOUT_S,
        gt=0,
        le=3600,
        description="seconds in which a request is answered, time in the queue of an overloaded deployment included; "
        "time in which no replica is ready is not; replicas get what is left",
    )
    file_timeout_s: float = Field(
        FILE_TIMEOUT_S,
        gt=0,
        le=86400,
        description="the same for a file; pods give it less, by its size",
    )
    body_timeout_s: float = Field(30, gt=0, le=3600, description="seconds in which a body has to arrive")
    write_timeout_s: float = Field(
        WRITE_TIMEOUT_S,
        ge=0.1,
        le=3600,
        description="seconds without progress after which a client that does not read its answer is disconnected",
    )
    max_body_bytes: int = Field(
        1024 * 1024, ge=1024, description="largest request body; pods have the same bound"
    )
    max_file_bytes: int = Field(
        MOST_FILE_BYTES, ge=1024, description="largest form with a file; pods have the same bound"
    )
    max_memory_bytes: int = Field(
        256 * 1024 * 1024, ge=1024 * 1024, description="for all bodies that are read, held or in flight"
    )
    max_held: int = Field(1000, ge=0, description="requests that wait for one deployment")
    max_held_bytes: int = Field(64 * 1024 * 1024, ge=0, description="of their bodies")
    max_held_s: float = Field(120, ge=0, le=3600, description="seconds that one may wait")
    busy_poll_ms: float = Field(
        0,
        ge=0,
        le=60_000,
        description="milliseconds after a request in which the router looks for the next without sleeping: "
        "lower latency for up to a whole core; 0 sleeps at once",
    )
    route_headers: bool = Field(True, description="tell callers which replica answered, and why")

    drain_notice_s: float = Field(
        5, ge=0, le=300, description="seconds, unready, for clients to be led elsewhere before listening ends"
    )
    drain_timeout_s: float = Field(60, ge=0, le=3600, description="seconds that requests then get to finish")

    keys_dir: Path | None = Field(
        None, description="directory of API keys, one a file; none: no keys are asked for"
    )
    usage_configmap: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        description="NAMESPACE/NAME of the ConfigMap in which routers share what keys have used; "
        "none: each router counts for itself, since its start",
    )
    usage_interval_s: float = Field(
        2, ge=0.1, le=60, description="seconds between two looks at it; as much a killed router may lose"
    )
    usage_first_day: int = Field(
        1, ge=1, le=28, description="day of the month, in UTC, on which keys' characterLimit begins anew"
    )
    anonymous_requests_per_s: float | None = Field(
        None, gt=0, description="without keys: requests a second that one client address may send"
    )
    tls_cert: Path | None = Field(None, description="certificate chain in PEM; read again on change")
    tls_key: Path | None = Field(None, description="its private key")

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severe to log")

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        parts = [value] if isinstance(value, str) else value
        return tuple(name for part in parts for name in re.split(r"[,\s]+", str(part)) if name)  # type: ignore[attr-defined]

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls-cert and tls-key go together: set both or neither")
        if self.glossary_dir is not None and self.glossary_namespace is not None:
            raise ValueError("glossary-dir and glossary-namespace: set one of them")
        if self.static is not None and self.glossary_namespace is not None:
            raise ValueError("glossary-namespace is for Kubernetes; with static set glossary-dir")
        return self


def read_settings(argv: list[str]) -> Settings:
    """Settings from a command line and the environment.

    Args:
        argv: What follows `dragoman router`.

    Raises:
        SettingsError: With every wrong flag or variable named.
        SystemExit: After `--help`.
    """
    try:
        return Settings(_cli_parse_args=argv, _cli_exit_on_error=False)
    except PydanticSettingsError as error:
        raise SettingsError(str(error)) from error
    except ValidationError as error:
        raise SettingsError("; ".join(_invalid(dict(item)) for item in error.errors())) from error


def _invalid(item: dict[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    where = "".join(f"--{str(part).replace('_', '-')}: " for part in item["loc"][:1])
    return f"{where}{message}"
