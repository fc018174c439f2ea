"""`spec.admission`, `translation`, `glossary` and `tracing`.

Fields that are not set are left out of the pods' command line, so that the engine pod's defaults apply.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from dragoman_kube.quantity import parse
from dragoman_operator.api.fields import Duration, Name, Quantity, Rule, SpecModel, within

_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
ENDPOINT_PATTERN = rf"^(https?)://([^\s/?#@:\[\]]+|\[[0-9a-fA-F:]+\])(:({_PORT}))?(/[^\s?#]*)?$"
"""A URL with its scheme and port in groups 1 and 4. Must be valid for RE2 (API server) and Python."""


class Admission(SpecModel):
    """Admission limits of each pod; requests above them are refused with 503 (429 in DeepL's API)."""

    max_queued_requests: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Maximum number of generations that wait for the engine; a request counts one per "
        "segment, target and alternative. Default: 8 × maxNumSeqs.",
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="Maximum number of estimated tokens that wait for the engine. Default: as many as run "
        "at once.",
    )
    deadline_aware: bool | None = Field(
        None,
        description="Refuse a request immediately if, at the measured throughput, it would exceed its "
        "time limit. Default: true.",
    )
    request_timeout: Duration | None = Field(
        None,
        description="Maximum time of a request; after it the answer is 504. Default: 30s. Routers have "
        "their own limit (router.bounds.requestTimeoutSeconds of the chart).",
    )
    unready_when_overloaded: bool | None = Field(
        None,
        description="Fail the readiness probe while requests are refused because of overload, for load "
        "balancers that use readiness only. Default: false.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (within("admission", "requestTimeout", "1s", "1h"),)


class Translation(SpecModel):
    """Translation settings of the pods."""

    split: Literal["Lines", "Sentences", "NoNewlines", "None"] | None = Field(
        None,
        description="How plain text is split if a request does not say. Lines: at line breaks; lines too "
        "long for the model also at sentences. Sentences: at sentences. NoNewlines: at sentences, line "
        "breaks count as spaces. None: not at all; texts that do not fit are refused. Default: the model "
        "family's preference.",
    )
    cache_size: Quantity | None = Field(
        None,
        description="Memory per pod for a cache of translated segments, such as 256Mi. Default: no cache.",
    )

    @property
    def cache_bytes(self) -> int | None:
        """`cache_size` as a number of bytes."""
        return None if self.cache_size is None else int(parse(self.cache_size))


class ConfigMapKey(SpecModel):
    """One key of a ConfigMap in the same namespace."""

    name: Name = Field(description="Name of the ConfigMap.")
    key: str = Field(
        "glossary.yaml",
        max_length=253,
        pattern=r"^[-_a-zA-Z0-9][-._a-zA-Z0-9]*$",
        description="Key in the ConfigMap. A name ending in .tsv: tab-separated lines; otherwise YAML.",
    )


class Glossary(SpecModel):
    """Terminology for all requests; terms in a request take precedence."""

    config_map_key_ref: ConfigMapKey = Field(
        description="ConfigMap key with the terms. Changes take effect in running pods within about a "
        "minute. Invalid content is ignored: the last valid terms stay in use."
    )


class Tracing(SpecModel):
    """Destination of request traces."""

    otlp_endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=ENDPOINT_PATTERN,
        description="OTLP/HTTP endpoint for OpenTelemetry traces, such as "
        "http://otel-collector.monitoring:4318. The NetworkPolicy of the pods allows its port.",
    )

    @property
    def port(self) -> int | None:
        """The endpoint's TCP port; None without tracing."""
        match = re.match(ENDPOINT_PATTERN, self.otlp_endpoint or "")
        if match is None:
            return None
        return int(match[4] or {"http": 80, "https": 443}[match[1]])
