"""`spec.model` and `spec.languages`: what translates, and between which languages."""

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
"""Where a model may lie. Read by RE2 in the API server and by Python here."""


class ModelCache(SpecModel):
    """Where weights and vLLM's compile cache are kept between starts."""

    persistent_volume_claim: Name | None = Field(
        None,
        description="PersistentVolumeClaim that keeps downloaded weights and compiled kernels; without one "
        "every new pod downloads and compiles again.",
    )
    size_limit: Quantity | None = Field(
        None, description="Most that a cache without a claim may take from the node's disk, such as 50Gi."
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.persistentVolumeClaim) && has(self.sizeLimit))",
            "cache.sizeLimit only bounds a cache without a claim: remove it or cache.persistentVolumeClaim",
            lambda cache: cache.persistent_volume_claim is None or cache.size_limit is None,
        ),
    )


class Model(SpecModel):
    """The model that translates."""

    uri: str = Field(
        min_length=6,
        max_length=512,
        description="Where the model is: hf://ORG/NAME, pvc://CLAIM/PATH, s3://BUCKET/PATH, oci://IMAGE:TAG "
        "(an image volume) or file:///PATH (inside the engine's image).",
    )
    revision: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        pattern=r"^[\w./-]+$",
        description="Commit, tag or branch of a hf:// model; pin a commit to get the same weights each time.",
    )
    token_secret_ref: SecretKey | None = Field(
        None, description="Secret with the Hugging Face token, for models that need one."
    )
    prompt_family: PromptFamily = Field(
        description="How the model wants to be asked; custom takes promptTemplate."
    )
    prompt_template: str | None = Field(
        None,
        min_length=6,
        max_length=8192,
        description="The prompt of promptFamily custom, with {text} and {target}; {source} and the codes "
        "{source_code} and {target_code} are known as well.",
    )
    cache: ModelCache = Field(
        ModelCache(), description="Where weights and compiled kernels are kept between starts."
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
            "promptFamily custom needs promptTemplate, and no other family takes one",
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
            "model.revision only means something for hf:// models; name the version in the uri instead",
            lambda model: model.revision is None or model.uri.startswith("hf://"),
        ),
    )
