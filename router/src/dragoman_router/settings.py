"""Settings of the router process: flags, then environment `DRAGOMAN_ROUTER_<UPPER_SNAKE>`, then defaults."""

from __future__ import annotations

import re
import socket
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import CliImplicitFlag, NoDecode, SettingsConfigDict

from dragoman_contract.http import ROUTER_ADMIN_PORT, ROUTER_PORT
from dragoman_contract.routing import REQUEST_TIMEOUT_S
from dragoman_http.limits import WRITE_TIMEOUT_S
from dragoman_protocols.files import FILE_TIMEOUT_S, MAX_FILE_BYTES
from dragoman_router.errors import SettingsError
from dragoman_system.command_line import CommandLineError, CommandSettings, read_command_line
from dragoman_system.listening import ANY_HOST

STATE_SCHEMES = ("redis", "rediss", "valkey", "valkeys")


class TokenLimits(BaseModel, alias_generator=to_camel, extra="forbid", frozen=True):
    """What one caller with a token may use; see `access.accounts.AccountLimits`."""

    requests_per_s: float | None = Field(None, gt=0)
    characters_per_s: float | None = Field(None, gt=0)
    character_limit: int | None = Field(None, gt=0)
    burst_s: float = Field(10.0, gt=0)
    deployments: tuple[Annotated[str, Field(pattern=r"^[^/*]+/(\*|[^/*]+)$")], ...] | None = None
    fleet: bool = False


class Settings(CommandSettings):
    """Options of `dragoman router`."""

    model_config = SettingsConfigDict(env_prefix="DRAGOMAN_ROUTER_", cli_prog_name="dragoman router")

    static: Path | None = Field(
        None,
        description="YAML file with deployments and replicas, to run without Kubernetes; reloaded on change.",
    )
    namespaces: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Namespaces to serve, separated by commas. Default: all."
    )
    resync_s: float = Field(
        300, gt=0, le=86400, description="Seconds between two full lists of the watched Kubernetes objects."
    )

    glossary_dir: Path | None = Field(
        None,
        description=(
            "Directory for glossaries that clients create; routers can share it on a volume. Do not set it "
            "together with --state-url, which keeps glossaries in Redis. Default: in memory."
        ),
    )
    keep_glossaries: CliImplicitFlag[bool] = Field(
        True,
        description=(
            "Let clients create glossaries. Set --no-keep-glossaries for several routers that share "
            "neither --state-url nor --glossary-dir."
        ),
    )
    common_glossaries: CliImplicitFlag[bool] = Field(
        False,
        description="Let every caller use, change and delete the glossaries of all callers.",
    )

    state_url: SecretStr | None = Field(
        None,
        description=(
            "URL of a Redis or Valkey server (redis://, rediss://, valkey:// or valkeys://) through "
            "which routers share usage, rate limits and glossaries. If the URL has a password, set "
            "DRAGOMAN_ROUTER_STATE_URL instead of the flag. Default: routers share nothing."
        ),
    )
    state_prefix: str = Field("dragoman:", description="Prefix of all keys in the server of --state-url.")
    state_timeout_s: float = Field(
        0.25,
        gt=0,
        le=10,
        description="Maximum seconds to connect to the server of --state-url, and to wait for each response.",
    )

    host: str = Field(ANY_HOST, description="Address to listen on. `::` is every address of IPv6 and IPv4.")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description=(
            "Addresses or networks (CIDR) of proxies in front of the router, separated by commas. The "
            "router takes the client's address from the header X-Forwarded-For of these proxies. "
            "Default: none."
        ),
    )
    port: int = Field(ROUTER_PORT, ge=0, le=65535, description="Port for clients. 0: any free port.")
    admin_port: int = Field(
        ROUTER_ADMIN_PORT,
        ge=0,
        le=65535,
        description="Port of probes, metrics and the load report that the operator reads.",
    )
    router_id: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        max_length=253,
        description="Unique name of this router.",
    )

    request_timeout_s: float = Field(
        REQUEST_TIMEOUT_S,
        gt=0,
        le=3600,
        description="Maximum seconds for a request that translates no file. Time in the queue counts, except while no "
        "replica is available.",
    )
    file_timeout_s: float = Field(
        FILE_TIMEOUT_S,
        gt=0,
        le=86400,
        description="Maximum seconds to translate a file. Engine pods set a lower limit for small files.",
    )
    body_timeout_s: float = Field(30, gt=0, le=3600, description="Maximum seconds to receive a request body.")
    write_timeout_s: float = Field(
        WRITE_TIMEOUT_S,
        ge=0.1,
        le=3600,
        description=(
            "Seconds without progress after which a client that does not read its response is disconnected."
        ),
    )
    max_body_bytes: int = Field(
        1024 * 1024,
        ge=1024,
        description=(
            "Maximum size of a request body, in bytes. Engine pods have a limit of their own "
            "(--max-body-bytes of dragoman serve)."
        ),
    )
    max_file_bytes: int = Field(
        MAX_FILE_BYTES,
        ge=1024,
        description=(
            "Maximum size of a request that uploads a file, in bytes. Engine pods accept 10 MiB, or their "
            "--max-body-bytes if that is more."
        ),
    )
    max_memory_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="Maximum memory for all request bodies together, in bytes.",
    )
    max_connections: int = Field(
        10_000,
        ge=1,
        description="Maximum number of client connections. Requests on further connections get status 503.",
    )
    max_queued_requests: int = Field(
        1000, ge=0, description="Maximum number of queued requests per deployment."
    )
    max_queued_bytes: int = Field(
        64 * 1024 * 1024,
        ge=0,
        description="Maximum size of the bodies of queued requests per deployment, in bytes.",
    )
    max_queue_s: float = Field(
        120,
        ge=0,
        le=3600,
        description=(
            "Maximum seconds in the queue, for example while the first replica starts. After that, the "
            "client gets status 503."
        ),
    )
    route_headers: bool = Field(
        True,
        description="Add the headers X-Dragoman-Deployment, X-Dragoman-Endpoint and X-Dragoman-Route to responses.",
    )

    lame_duck_s: float = Field(
        5,
        ge=0,
        le=300,
        description="Seconds after SIGTERM in which requests are still accepted while /readyz fails.",
    )
    drain_timeout_s: float = Field(
        60, ge=0, le=3600, description="Maximum seconds to finish in-flight requests, after --lame-duck-s."
    )

    keys_dir: Path | None = Field(
        None, description="Directory with API keys, one file per key. Default: no API keys."
    )
    public_lists: CliImplicitFlag[bool] = Field(
        True,
        description="List languages without a key or token where the publisher of the API does: /languages and "
        "/frontend/settings. They have the languages of all deployments.",
    )
    quota_reset_day: int = Field(
        1,
        ge=1,
        le=28,
        description="Day of the month (UTC) on which the monthly limits of characters (characterLimit) begin again.",
    )
    anonymous_requests_per_s: float | None = Field(
        None,
        gt=0,
        description=(
            "Maximum requests per second of one client address, if neither API keys nor tokens are "
            "required. Default: no limit."
        ),
    )
    auth_failures_per_s: float = Field(
        1,
        ge=0,
        description=(
            "Maximum requests per second with a wrong key or token from one client address, averaged "
            "over a minute. Above the limit, requests from this address get status 429. Still "
            "accepted: valid tokens, and keys that were accepted from this address before. 0: no limit."
        ),
    )
    oidc_issuer: str | None = Field(
        None,
        pattern=r"^https?://[^\s?#]+$",
        description=(
            "OpenID Connect issuer of bearer tokens, exactly as in the claim iss of the tokens. Default: "
            "no tokens are accepted."
        ),
    )
    oidc_audience: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Accepted audiences, separated by commas. The claim aud of a token must have one of them. "
        "Required with --oidc-issuer.",
    )
    oidc_name_claim: str = Field("sub", min_length=1, description="Claim of a token with the caller's name.")
    oidc_limits_claim: str | None = Field(
        None,
        description=(
            "Claim of a token whose value selects the caller's limits in --oidc-limits. If the claim is "
            "a list, the first value with an entry in --oidc-limits counts."
        ),
    )
    oidc_limits: dict[str, TokenLimits] = Field(
        {},
        description=(
            "Limits of callers with tokens, as a JSON object. Its keys are values of the claim that "
            "--oidc-limits-claim names. For example, "
            '{"team-a": {"requestsPerS": 10}} limits each caller whose claim has the value team-a. '
            'The key "*" is for all other callers. The fields of a limit are those of API keys: requestsPerS, '
            "charactersPerS, characterLimit, burstS, deployments, fleet."
        ),
    )
    tls_cert: Path | None = Field(
        None, description="Certificate chain (PEM file), reloaded on change. Default: HTTP without TLS."
    )
    tls_key: Path | None = Field(None, description="Private key of --tls-cert (PEM file).")

    page: CliImplicitFlag[bool] = Field(True, description="Serve a web page for translations at /.")
    audit_log: CliImplicitFlag[bool] = Field(
        False,
        description="Write a line of JSON to standard output for each request: caller, deployment, languages, "
        "characters and status, but no text.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level of log messages."
    )

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
        return read_command_line(Settings, argv)
    except CommandLineError as error:
        raise SettingsError(str(error)) from error
