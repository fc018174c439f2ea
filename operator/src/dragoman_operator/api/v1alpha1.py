"""`dragoman.io/v1alpha1`, kind TranslationDeployment: the spec as a whole, and reading an object into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from dragoman_contract.languages import Languages
from dragoman_operator.api.engine import Engine, Resources, typed_again
from dragoman_operator.api.fields import Rule, SpecModel
from dragoman_operator.api.model import Model
from dragoman_operator.api.pods import LocalObjectReference, NetworkPolicy, PodTemplate, Rollout, Service
from dragoman_operator.api.scaling import MAX_REPLICAS, Autoscaling
from dragoman_operator.api.serving import Admission, Glossary, Tracing, Translation
from dragoman_operator.api.tuning import Tuning
from dragoman_operator.errors import SpecError

GPU_PREFIX = "nvidia.com/"
_GPU, _MIG = "nvidia.com/gpu", "nvidia.com/mig-"

NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_LIMIT = 52
"""The Service of the same name must be a DNS label, and pods add up to eleven characters to theirs."""


def _gpus_fit(spec: TranslationDeploymentSpec) -> bool:
    limits = spec.resources.limits
    if spec.engine.device != "cuda" or any(name.startswith(_MIG) for name in limits):
        return True
    return str(limits.get(_GPU)) == str(spec.engine.tensor_parallel_size)


class TranslationDeploymentSpec(SpecModel):
    """What should run: a model, the languages it serves, and how many pods of what kind."""

    model: Model = Field(description="The model that translates.")
    languages: Annotated[tuple[Languages, ...], Field(max_length=200)] = Field(
        (),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["source"]},
        description="Language pairs that are served, one entry for each source; empty serves every pair.",
    )
    engine: Engine = Field(Engine(), description="How vLLM runs in each pod.")
    admission: Admission = Field(Admission(), description="What each pod takes on at once, and refuses.")
    translation: Translation = Field(Translation(), description="How pods translate.")
    glossary: Glossary | None = Field(None, description="Terms that hold for every request.")
    tracing: Tracing = Field(Tracing(), description="Where traces of requests go.")
    resources: Resources = Field(Resources(), description="What each pod asks of its node.")
    image: str | None = Field(
        None, min_length=1, max_length=512, description="Engine image; the operator's own where unset."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When the image is pulled."
    )
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Field(max_length=16)] = Field(
        (), description="Secrets with credentials of the image's registry."
    )
    replicas: int = Field(
        1,
        ge=0,
        le=MAX_REPLICAS,
        description="Engine pods, where autoscaling is off or external; the scale subresource writes it.",
    )
    autoscaling: Autoscaling | None = Field(
        None, description="Who decides how many replicas there are; spec.replicas alone where unset."
    )
    tuning: Tuning = Field(Tuning(), description="Whether engine.maxNumSeqs follows the measured load.")
    rollout: Rollout = Field(Rollout(), description="How pods are replaced when the spec changes.")
    pod_template: PodTemplate = Field(PodTemplate(), description="What is added to every engine pod.")
    service: Service = Field(Service(), description="The Service in front of the pods.")
    network_policy: NetworkPolicy = Field(
        NetworkPolicy(), description="What may reach the pods, and what they may reach."
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"self.engine.device != 'cuda' || self.resources.limits.exists(key, key.startsWith('{_MIG}')) || "
            f"('{_GPU}' in self.resources.limits && "
            f"string(self.resources.limits['{_GPU}']) == string(self.engine.tensorParallelSize))",
            f"device cuda needs resources.limits {_GPU} equal to engine.tensorParallelSize (or a MIG slice); "
            "without a GPU set engine.device to cpu",
            _gpus_fit,
        ),
        Rule(
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
        Rule(
            "self.engine.device != 'cpu' || self.engine.tensorParallelSize == 1",
            "device cpu runs with tensorParallelSize 1",
            lambda spec: spec.engine.device != "cpu" or spec.engine.tensor_parallel_size == 1,
        ),
        Rule(
            "self.replicas > 0 || !has(self.autoscaling) || self.autoscaling.mode == 'Off' || "
            "self.autoscaling.minReplicas == 0",
            "replicas 0 needs autoscaling.minReplicas 0: otherwise the autoscaler would start pods again",
            lambda spec: (
                spec.replicas > 0
                or spec.autoscaling is None
                or spec.autoscaling.mode == "Off"
                or spec.autoscaling.min_replicas == 0
            ),
        ),
    )

    @field_validator("engine")
    @classmethod
    def _said_once(cls, engine: Engine) -> Engine:
        if again := typed_again(engine):
            raise ValueError(f"extraArgs says {', '.join(again)}, which the engine's own fields set")
        return engine

    @model_validator(mode="after")
    def _sources_differ(self) -> TranslationDeploymentSpec:
        sources = [entry.source for entry in self.languages]
        if len(set(sources)) < len(sources):
            raise ValueError("languages must have one entry for each source: join their targets")
        return self


OBJECT_RULES = (
    Rule(
        f"self.metadata.name.size() <= {NAME_LIMIT} && self.metadata.name.matches('{NAME_PATTERN}')",
        f"metadata.name must be at most {NAME_LIMIT} lower-case letters, digits and hyphens and begin with a "
        "letter, because the Service takes it",
        lambda name: len(name) <= NAME_LIMIT,
    ),
)
"""Rules over the object as a whole."""


@dataclass(frozen=True)
class TranslationDeployment:
    """One object as the operator works with it."""

    name: str
    namespace: str
    uid: str
    generation: int
    """Counts changes of the spec; the status says which it was drawn from."""
    spec: TranslationDeploymentSpec


def parse(body: Mapping[str, Any]) -> TranslationDeployment:
    """Read an object of the API.

    Args:
        body: The object as the API server returned it.

    Raises:
        SpecError: The spec is not one that this operator understands; the message says which field and why.
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
    """One finding of pydantic as ``spec.engine.maxNumSeqs: Input should be …``."""
    path = ".".join(("spec", *(str(part) for part in error["loc"])))
    if error["type"] == "extra_forbidden":
        return f"{path} is not known to this operator: remove it, or update the operator"
    return f"{path}: {str(error['msg']).removeprefix('Value error, ')}"
