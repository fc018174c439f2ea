"""`spec.model`."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field

from dragoman_contract.prompts import CUSTOM_FAMILY, PromptFamily
from dragoman_operator.api.fields import Name, Quantity, Rule, SecretKey, SpecModel

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
        description="PersistentVolumeClaim for downloaded weights and compiled kernels. Without it, every "
        "new pod downloads and compiles again.",
    )
    size_limit: Quantity | None = Field(
        None, description="Maximum disk space of the cache on the node without a claim, such as 50Gi."
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
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
        description="Location of the model: hf://ORG/NAME, pvc://CLAIM/PATH, s3://BUCKET/PATH, "
        "oci://IMAGE:TAG (an image volume) or file:///PATH (inside the engine's image).",
    )
    revision: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=r"^[\w./-]+$",
        description="Commit, tag or branch of a hf:// model. Pin a commit to always load the same weights.",
    )
    token_secret_ref: SecretKey | None = Field(
        None, description="Secret with a Hugging Face token. Required for gated and private models."
    )
    prompt_family: PromptFamily = Field(
        description="Prompt format of the model family. custom requires promptTemplate."
    )
    prompt_template: str | None = Field(
        None,
        min_length=6,
        max_length=8192,
        description="Prompt for promptFamily custom. Must contain {text}, and {target} or {target_code}; "
        "{source} and {source_code} are optional.",
    )
    cache: ModelCache = Field(
        ModelCache(), description="Cache of weights and compiled kernels between starts."
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.uri.matches(r'{URI_PATTERN}')",
            "model.uri must be hf://ORG/NAME, pvc://CLAIM/PATH, s3://BUCKET/PATH, oci://IMAGE:TAG or "
            "file:///PATH",
            lambda model: re.match(URI_PATTERN, model.uri) is not None,
        ),
        Rule(
            f"(self.promptFamily == '{CUSTOM_FAMILY}') == has(self.promptTemplate)",
            "promptTemplate is required with promptFamily custom and not allowed with other families",
            lambda model: (model.prompt_family == CUSTOM_FAMILY) == (model.prompt_template is not None),
        ),
        Rule(
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
        Rule(
            "!has(self.revision) || self.uri.startsWith('hf://')",
            "model.revision applies to hf:// models only; put the version into model.uri",
            lambda model: model.revision is None or model.uri.startswith("hf://"),
        ),
    )
