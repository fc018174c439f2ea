"""`dragoman.io/v1alpha1`, kind TranslationDeployment: the spec, and parsing of objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman_contract.languages import ANY, Languages
from dragoman_contract.model_code import TRUST, code_arguments
from dragoman_operator.api.engine import Engine, Model, Resources, typed_again
from dragoman_operator.api.fields import LocalObjectReference, SpecModel, ValidationRule
from dragoman_operator.api.pods import (
    Admission,
    Glossary,
    NetworkPolicy,
    PodTemplate,
    Rollout,
    Service,
    Tracing,
    Translation,
)
from dragoman_operator.api.scaling import MAX_REPLICAS, Autoscaling, Tuning
from dragoman_operator.errors import SpecError

GPU_PREFIX = "nvidia.com/"
MIG = f"{GPU_PREFIX}mig-"
_GPU = f"{GPU_PREFIX}gpu"

NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_LIMIT = 52
"""The Service has the same name and must be a DNS label; pod names have up to eleven characters more."""


def _gpus_fit(spec: TranslationDeploymentSpec) -> bool:
    limits = spec.resources.limits
    if spec.engine.device != "cuda" or any(name.startswith(MIG) for name in limits):
        return True
    return str(limits.get(_GPU)) == str(spec.engine.tensor_parallel_size)


class TranslationDeploymentSpec(SpecModel):
    """The model, its languages, and the pods that serve them."""

    model: Model = Field(description="The translation model.")
    languages: Annotated[tuple[Languages, ...], Field(max_length=200)] = Field(
        (),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["source"]},
        description="Language pairs that are served, one entry for each source language. Empty: all pairs.",
    )
    engine: Engine = Field(Engine(), description="vLLM settings of each pod.")
    admission: Admission = Field(
        Admission(),
        description=("When a pod refuses requests. The status of a refusal is 503, or 429 in some APIs."),
    )
    translation: Translation = Field(Translation(), description="How pods split and cache texts.")
    glossary: Glossary | None = Field(
        None,
        description="Terms and their translations, for all requests. Terms in a request take precedence.",
    )
    tracing: Tracing = Field(Tracing(), description="Export of traces.")
    resources: Resources = Field(Resources(), description="Resource requests and limits of each pod.")
    image: str | None = Field(
        None,
        min_length=1,
        max_length=512,
        description=(
            "Image of the engine pods. Default: the chart value engineImages.cuda or engineImages.cpu."
        ),
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="Pull policy of the image of the engine pods."
    )
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Field(max_length=16)] = Field(
        (),
        description=(
            "Secrets with the credentials for the registry of the image of the engine pods. Default: those of the "
            "chart value global.imagePullSecrets, which have to be in the same namespace."
        ),
    )
    replicas: int = Field(
        1,
        ge=0,
        le=MAX_REPLICAS,
        description=(
            "Number of engine pods. With spec.autoscaling (except mode Off), leave this field out of "
            "your manifest, because the autoscaler writes it."
        ),
    )
    autoscaling: Autoscaling | None = Field(
        None,
        description=(
            "Automatic choice of the number of replicas. Without spec.autoscaling, spec.replicas is fixed."
        ),
    )
    tuning: Tuning = Field(
        Tuning(), description="Measurement of the load, to recommend a value for engine.maxNumSeqs."
    )
    rollout: Rollout = Field(Rollout(), description="How pods are started, replaced and terminated.")
    pod_template: PodTemplate = Field(PodTemplate(), description="Additions to every engine pod.")
    service: Service = Field(Service(), description="The Service in front of the engine pods.")
    network_policy: NetworkPolicy = Field(NetworkPolicy(), description="NetworkPolicy of the engine pods.")

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"self.engine.device != 'cuda' || self.resources.limits.exists(key, key.startsWith('{MIG}')) || "
            f"('{_GPU}' in self.resources.limits && "
            f"string(self.resources.limits['{_GPU}']) == string(self.engine.tensorParallelSize))",
            f"device cuda needs resources.limits {_GPU} equal to engine.tensorParallelSize, or a MIG device; "
            "without a GPU, set engine.device to cpu",
            _gpus_fit,
        ),
        ValidationRule(
            "self.engine.device != 'cpu' || "
            f"(self.resources.limits.all(key, !key.startsWith('{GPU_PREFIX}')) && "
            f"self.resources.requests.all(key, !key.startsWith('{GPU_PREFIX}')))",
            f"device cpu takes no GPU: remove {GPU_PREFIX}… from resources, or set engine.device to cuda",
            lambda spec: (
                spec.engine.device != "cpu"
                or not any(
                    name.startswith(GPU_PREFIX) for name in (*spec.resources.limits, *spec.resources.requests)
                )
            ),
        ),
        ValidationRule(
            "self.engine.device != 'cpu' || self.engine.tensorParallelSize == 1",
            "device cpu needs engine.tensorParallelSize 1",
            lambda spec: spec.engine.device != "cpu" or spec.engine.tensor_parallel_size == 1,
        ),
        ValidationRule(
            "self.replicas > 0 || !has(self.autoscaling) || self.autoscaling.mode != 'HPA'",
            "autoscaling.mode HPA does not allow replicas 0: set replicas to 1 or more, or autoscaling.mode to "
            "Internal or KEDA",
            lambda spec: spec.replicas > 0 or spec.autoscaling is None or spec.autoscaling.mode != "HPA",
        ),
        ValidationRule(
            "!has(self.autoscaling) || self.autoscaling.idle != 'Sleep' || self.engine.device == 'cuda'",
            "autoscaling.idle Sleep needs engine.device cuda",
            lambda spec: (
                spec.autoscaling is None or spec.autoscaling.idle != "Sleep" or spec.engine.device == "cuda"
            ),
        ),
        ValidationRule(
            "!has(self.autoscaling) || !has(self.autoscaling.turnsSecretRef) || self.engine.tensorParallelSize == 1",
            "autoscaling.turnsSecretRef needs engine.tensorParallelSize 1",
            lambda spec: (
                spec.autoscaling is None
                or spec.autoscaling.turns_secret_ref is None
                or spec.engine.tensor_parallel_size == 1
            ),
        ),
        ValidationRule(
            "!has(self.languages) || self.languages.all(entry, entry.source == '*' || "
            "entry.targets.exists(target, target != entry.source))",
            "languages: each entry needs a target that differs from the source",
            lambda spec: all(
                entry.source == ANY or set(entry.targets) != {entry.source} for entry in spec.languages
            ),
        ),
    )

    @property
    def autoscaling_mode(self) -> str:
        """`autoscaling.mode`; Off without autoscaling."""
        return "Off" if self.autoscaling is None else self.autoscaling.mode

    @field_validator("engine")
    @classmethod
    def _no_duplicate_arguments(cls, engine: Engine) -> Engine:
        if again := typed_again(engine):
            raise ValueError(f"engine.extraArgs repeats {', '.join(again)}: use the fields of spec.engine")
        return engine

    @model_validator(mode="after")
    def _code_is_trusted(self) -> TranslationDeploymentSpec:
        if TRUST in (name.replace("-", "_") for name in self.engine.extra_args):
            raise ValueError(f"engine.extraArgs: use model.trustRemoteCode instead of {TRUST}")
        found = () if self.model.trust_remote_code else code_arguments(self.engine.extra_args)
        if found:
            raise ValueError(
                f"engine.extraArgs: {', '.join(found)} may run code of the model, or code that is named there: set "
                "model.trustRemoteCode to true if you trust it"
            )
        return self

    @model_validator(mode="after")
    def _sources_differ(self) -> TranslationDeploymentSpec:
        sources = [entry.source for entry in self.languages]
        if len(set(sources)) < len(sources):
            raise ValueError("languages must have one entry for each source: join their targets")
        return self


OBJECT_RULES = (
    ValidationRule(
        f"self.metadata.name.size() <= {NAME_LIMIT} && self.metadata.name.matches('{NAME_PATTERN}')",
        f"metadata.name must be a DNS label of at most {NAME_LIMIT} characters that starts with a letter",
        lambda name: len(name) <= NAME_LIMIT,
    ),
)
"""Rules for the whole object."""


NOT_IN_PODS: Mapping[str, Any] = {
    **dict.fromkeys(("replicas", "autoscaling", "tuning", "service", "network_policy"), True),
    "rollout": {"surge"},
}
"""Fields of the spec that pods do not depend on, but for the idle time and turns of replicas that sleep."""


@dataclass(frozen=True)
class TranslationDeployment:
    """A parsed object."""

    name: str
    namespace: str
    uid: str
    generation: int
    """Counts changes of the spec; used in the status."""
    spec: TranslationDeploymentSpec

    @cached_property
    def pod_fields(self) -> Mapping[str, Any]:
        """The fields of the spec that pods depend on, as JSON.

        Defaults are left out: a field that a later version adds changes no digest of them.
        """
        fields = self.spec.model_dump(mode="json", exclude=NOT_IN_PODS, exclude_defaults=True)
        return {name: value for name, value in fields.items() if value != {}}


def parse(body: Mapping[str, Any]) -> TranslationDeployment:
    """Parse an object of the API.

    Raises:
        SpecError: The spec is invalid; the message has the field and the reason.
    """
    metadata = body["metadata"]
    try:
        spec = TranslationDeploymentSpec.model_validate(body.get("spec") or {})
    except ValidationError as error:
        raise SpecError("; ".join(map(_sentence, error.errors()[:5]))) from error
    return TranslationDeployment(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        spec=spec,
    )


def _sentence(error: Mapping[str, Any]) -> str:
    """One error of pydantic as ``spec.engine.maxNumSeqs: Input should be …``."""
    path = ".".join(("spec", *(str(part) for part in error["loc"])))
    if error["type"] == "extra_forbidden":
        return f"{path} is not known to this operator: remove it, or update the operator"
    return f"{path}: {str(error['msg']).removeprefix('Value error, ')}"
