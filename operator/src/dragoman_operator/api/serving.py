"""`spec.admission`, `translation`, `glossary`, `tracing`: how pods take requests on, translate and report.

What is unset is left out of the pods' command line, so that the engine pod's own default holds.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field

from dragoman_operator.api.fields import Duration, Name, Quantity, Rule, SpecModel, amount, within

_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
ENDPOINT_PATTERN = rf"^(https?)://([^\s/?#@:\[\]]+|\[[0-9a-fA-F:]+\])(:({_PORT}))?(/[^\s?#]*)?$"
"""A URL with its scheme and port in groups 1 and 4. Read by RE2 in the API server and by Python here."""


class Admission(SpecModel):
    """What each pod takes on at once, and what it refuses with 503 (429 over DeepL's API)."""

    max_queued_requests: int | None = Field(
        None,
        ge=0,
        le=1_000_000,
        description="Most requests that may wait for the engine; 8 for each of maxNumSeqs where unset.",
    )
    max_queued_tokens: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="Most estimated tokens that may wait for the engine; as many as it runs at once where unset.",
    )
    refuse_late: bool | None = Field(
        None,
        description="Whether requests are refused at once that, by the measured pace, will miss their time "
        "limit; true where unset.",
    )
    request_timeout: Duration | None = Field(
        None,
        description="Time after which a request is given up with 504; 30s where unset. A router has a limit of "
        "its own (router.bounds.requestSeconds of the chart).",
    )
    unready_when_overloaded: bool | None = Field(
        None,
        description="Whether a pod turns unready while it refuses requests for load, for load balancers that "
        "look at readiness alone; false where unset.",
    )

    RULES: ClassVar[tuple[Rule, ...]] = (within("admission", "requestTimeout", "1s", "1h"),)


class Translation(SpecModel):
    """How pods translate."""

    split: Literal["Lines", "Sentences", "NoLines", "None"] | None = Field(
        None,
        description="What ends a segment of plain text where a request does not say. Lines: line breaks, and "
        "sentences where a line is too long for the model. Sentences: each sentence. NoLines: each sentence, a "
        "line break being white space. None: a text is one segment, and refused where it does not fit. As the "
        "model wants it where unset.",
    )
    cache_size: Quantity | None = Field(
        None,
        description="Memory of each pod for translated segments to answer from again, such as 256Mi; none "
        "where unset.",
    )

    @property
    def cache_bytes(self) -> int | None:
        """`cache_size` as a number of bytes."""
        return None if self.cache_size is None else int(amount(self.cache_size))


class ConfigMapKey(SpecModel):
    """One key of a ConfigMap in the same namespace."""

    name: Name = Field(description="Name of the ConfigMap.")
    key: str = Field(
        "glossary.yaml",
        max_length=253,
        pattern=r"^[-_a-zA-Z0-9][-._a-zA-Z0-9]*$",
        description="Key in the ConfigMap; one that ends in .tsv holds lines with tabs, any other YAML.",
    )


class Glossary(SpecModel):
    """Terms that hold for every request; a request's own terms win."""

    config_map_ref: ConfigMapKey = Field(
        description="ConfigMap with the terms. An edit takes effect in the running pods within about a minute; "
        "one that is no glossary leaves the last good terms in force."
    )


class Tracing(SpecModel):
    """Where traces of requests go."""

    otlp_endpoint: str | None = Field(
        None,
        max_length=512,
        pattern=ENDPOINT_PATTERN,
        description="Collector of OpenTelemetry traces by OTLP over HTTP, such as "
        "http://otel-collector.monitoring:4318. The pods' NetworkPolicy lets them reach its port.",
    )

    @property
    def port(self) -> int | None:
        """The collector's TCP port; None where there is no collector."""
        match = re.match(ENDPOINT_PATTERN, self.otlp_endpoint or "")
        if match is None:
            return None
        return int(match[4] or {"http": 80, "https": 443}[match[1]])
