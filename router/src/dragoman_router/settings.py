"""Settings of the router process: flags, then environment `DRAGOMAN_ROUTER_<UPPER_SNAKE>`, then defaults."""

from __future__ import annotations

import os
import re
import socket
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import CliImplicitFlag, NoDecode, SettingsConfigDict

from dragoman_contract.command_line import CommandLineError, CommandSettings, read_command_line
from dragoman_contract.files import FILE_TIMEOUT_S, MAX_FILE_BYTES
from dragoman_contract.http import ROUTER_ADMIN_PORT, ROUTER_PORT, WRITE_TIMEOUT_S
from dragoman_contract.routing import REQUEST_TIMEOUT_S
from dragoman_router.errors import SettingsError

RENAMED = {
    "max_held": "max_queued_requests",
    "max_held_bytes": "max_queued_bytes",
    "max_held_s": "max_queue_s",
    "drain_notice_s": "lame_duck_s",
    "usage_first_day": "quota_reset_day",
}
"""Fields of earlier versions."""
REMOVED = dict.fromkeys(
    ("usage_configmap", "usage_interval_s", "glossary_namespace"),
    "routers share usage of keys and glossaries through Redis, see --state-url",
)
"""Fields of earlier versions, and what replaces them."""
STATE_SCHEMES = ("redis", "rediss", "valkey", "valkeys")


class TokenLimits(BaseModel, alias_generator=to_camel, extra="forbid", frozen=True):
    """What one caller with a token may use; see `access.accounts.Limits`."""

    requests_per_s: float | None = Field(None, gt=0)
    characters_per_s: float | None = Field(None, gt=0)
    character_limit: int | None = Field(None, gt=0)
    burst_s: float = Field(10.0, gt=0)
    deployments: tuple[Annotated[str, Field(pattern=r"^[^/*]+/(\*|[^/*]+)$")], ...] | None = None
    fleet: bool = False


class Settings(CommandSettings):
    """Everything that can be set on `dragoman router`."""

    model_config = SettingsConfigDict(env_prefix="DRAGOMAN_ROUTER_", cli_prog_name="dragoman router")

    static: Path | None = Field(
        None, description="YAML file of deployments and replicas, instead of Kubernetes; reloaded on change"
    )
    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="namespaces to serve, separated by commas; default: the whole cluster"
    )
    resync_s: float = Field(300, gt=0, le=86400, description="seconds between full relists")

    glossary_dir: Path | None = Field(
        None,
        description="directory of callers' glossaries, instead of Redis or memory; routers may share a volume",
    )
    keep_glossaries: CliImplicitFlag[bool] = Field(
        True,
        description="keep callers' glossaries; not for several routers without --state-url or --glossary-dir",
    )
    common_glossaries: CliImplicitFlag[bool] = Field(
        False,
        description="let all callers see, change and delete the same glossaries, where keys or tokens are required",
    )

    state_url: SecretStr | None = Field(
        None,
        description="redis:// or valkey:// URL of the server through which routers share usage, rates and glossaries; "
        "better set as DRAGOMAN_ROUTER_STATE_URL, as it may have a password; default: each router its own",
    )
    state_prefix: str = Field("dragoman:", description="prefix of all keys at that server")
    state_timeout_s: float = Field(
        0.25, gt=0, le=10, description="seconds to connect to that server, and for its answer"
    )

    host: str = Field(
        default_factory=lambda: os.environ.get("DRAGOMAN_HOST", "0.0.0.0"),
        description="address to listen on (default DRAGOMAN_HOST, else 0.0.0.0)",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="addresses or networks (CIDR) of proxies whose X-Forwarded-For names the client, separated by "
        "commas; for rates by address and the audit log; default: none",
    )
    port: int = Field(ROUTER_PORT, ge=0, le=65535, description="port for clients; 0: any free port")
    admin_port: int = Field(ROUTER_ADMIN_PORT, ge=0, le=65535, description="probes, metrics and load")
    router_id: str = Field(
        default_factory=socket.gethostname, min_length=1, max_length=253, description="name among routers"
    )

    request_timeout_s: float = Field(
        REQUEST_TIMEOUT_S,
        gt=0,
        le=3600,
        description="maximum seconds for a request, including queueing while replicas are busy, but not waiting for "
        "the first ready replica; a replica gets the remaining time as its limit",
    )
    file_timeout_s: float = Field(
        FILE_TIMEOUT_S,
        gt=0,
        le=86400,
        description="maximum seconds for a file; engine pods limit it further by size",
    )
    body_timeout_s: float = Field(30, gt=0, le=3600, description="maximum seconds to receive a request body")
    write_timeout_s: float = Field(
        WRITE_TIMEOUT_S,
        ge=0.1,
        le=3600,
        description="seconds without progress after which a client that does not read its answer is disconnected",
    )
    max_body_bytes: int = Field(
        1024 * 1024, ge=1024, description="maximum request body; pods have the same limit"
    )
    max_file_bytes: int = Field(
        MAX_FILE_BYTES, ge=1024, description="maximum form with a file; pods have the same limit"
    )
    max_memory_bytes: int = Field(
        256 * 1024 * 1024, ge=1024 * 1024, description="maximum bytes of all request bodies kept in memory"
    )
    max_connections: int = Field(
        10_000,
        ge=1,
        description="maximum connections of clients; requests on up to 1,000 further ones get 503, more are refused",
    )
    max_queued_requests: int = Field(1000, ge=0, description="maximum queued requests per deployment")
    max_queued_bytes: int = Field(64 * 1024 * 1024, ge=0, description="maximum bytes of their bodies")
    max_queue_s: float = Field(120, ge=0, le=3600, description="maximum seconds in the queue")
    busy_poll_ms: float = Field(
        0,
        ge=0,
        le=60_000,
        description="milliseconds of busy polling after each request: lower latency at up to one CPU core; 0: off",
    )
    route_headers: bool = Field(
        True, description="add X-Dragoman-Deployment, -Endpoint and -Route to responses"
    )

    lame_duck_s: float = Field(
        5,
        ge=0,
        le=300,
        description="seconds after SIGTERM in which /readyz fails and requests are still accepted",
    )
    drain_timeout_s: float = Field(
        60, ge=0, le=3600, description="maximum seconds to finish in-flight requests afterwards"
    )

    keys_dir: Path | None = Field(
        None, description="directory of API keys, one per file; default: no authentication"
    )
    quota_reset_day: int = Field(
        1, ge=1, le=28, description="day of the month (UTC) on which characterLimit is reset"
    )
    anonymous_requests_per_s: float | None = Field(
        None, gt=0, description="requests per second and client address, without API keys"
    )
    auth_failures_per_s: float = Field(
        1,
        ge=0,
        description="allowed requests with a wrong key or token, per second and client address, with bursts of "
        "60 times as many; above it, keys that were not accepted from the address before get 429; 0: no limit",
    )
    oidc_issuer: str | None = Field(
        None,
        pattern=r"^https?://[^\s?#]+$",
        description="issuer of bearer tokens (OpenID Connect), as in their iss; accepted beside API keys",
    )
    oidc_audience: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="accepted audiences, with commas between them: the aud of a token must have one; required with an "
        "issuer",
    )
    oidc_name_claim: str = Field("sub", min_length=1, description="claim of tokens with the caller's name")
    oidc_limits_claim: str | None = Field(
        None,
        description="claim (a string or a list) that selects the caller's limits: its first value in oidc-limits",
    )
    oidc_limits: dict[str, TokenLimits] = Field(
        {},
        description="limits (fields as of API keys) by value of that claim, * for other callers, as JSON: "
        '{"team-a": {"requestsPerS": 10}}',
    )
    tls_cert: Path | None = Field(None, description="certificate chain in PEM; reloaded on change")
    tls_key: Path | None = Field(None, description="its private key")

    page: CliImplicitFlag[bool] = Field(True, description="serve the web page at /")
    audit_log: CliImplicitFlag[bool] = Field(
        False,
        description="write a line of JSON to standard output for each request: who, what, how much; no text",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="minimum log level")

    @field_validator("namespaces", "oidc_audience", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        parts = [value] if isinstance(value, str) else value
        return tuple(name for part in parts for name in re.split(r"[,\s]+", str(part)) if name)  # type: ignore[attr-defined]

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ip_network(each)) for each in given)

    @field_validator("state_url")
    @classmethod
    def _is_redis(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and url.get_secret_value().partition("://")[0] not in STATE_SCHEMES:
            raise ValueError(f"expected a URL that begins with one of {', '.join(STATE_SCHEMES)}")
        return url

    @model_validator(mode="after")
    def _together(self) -> Settings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls-cert and tls-key go together: set both or neither")
        if (self.oidc_issuer is None) != (not self.oidc_audience):
            raise ValueError("oidc-issuer and oidc-audience go together: set both or neither")
        if self.oidc_limits_claim is not None and not self.oidc_limits:
            raise ValueError("oidc-limits-claim needs oidc-limits")
        if self.glossary_dir is not None and self.state_url is not None:
            raise ValueError("glossary-dir and state-url: set one of them")
        return self


def read_settings(argv: list[str]) -> Settings:
    """Settings from a command line and the environment.

    Raises:
        SettingsError: With every wrong flag or variable named.
        SystemExit: After `--help`.
    """
    try:
        return read_command_line(Settings, argv, RENAMED, REMOVED)
    except CommandLineError as error:
        raise SettingsError(str(error)) from error
