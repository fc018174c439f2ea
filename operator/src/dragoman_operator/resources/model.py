"""Where the engine finds the model: in a volume, in the image, or downloaded by the init container."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.errors import SpecError
from dragoman_operator.observed.drift import digest

CACHE_MOUNT = "/var/cache/dragoman"
MODEL_MOUNT = "/mnt/model"


@dataclass(frozen=True)
class ModelSource:
    """Location of the model for the engine."""

    argument: str
    """Value of `dragoman serve --model`."""
    volume: dict[str, Any] | None = None
    """The pod's volume `model`, mounted read-only at `MODEL_MOUNT`."""


def model_source(uri: str) -> ModelSource:
    """Read `spec.model.uri`.

    Args:
        uri: ``hf://ORG/NAME``, ``pvc://CLAIM/PATH``, ``s3://BUCKET/PATH``, ``oci://IMAGE:TAG`` or
            ``file:///PATH``.

    Raises:
        SpecError: It is none of these.
    Source: https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/ for ``oci://``.
    """
    scheme, _, rest = uri.partition("://")
    match scheme:
        case "hf":
            return ModelSource(rest)
        case "s3":
            return ModelSource(uri)
        case "file":
            return ModelSource(rest)
        case "pvc":
            claim, _, path = rest.partition("/")
            return ModelSource(
                f"{MODEL_MOUNT}/{path}".rstrip("/"),
                {"name": "model", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}},
            )
        case "oci":
            return ModelSource(
                MODEL_MOUNT,
                {"name": "model", "image": {"reference": rest, "pullPolicy": "IfNotPresent"}},
            )
    raise SpecError(f"spec.model.uri: {uri!r} has none of the schemes hf, pvc, s3, oci and file")


def is_fetched(td: TranslationDeployment) -> bool:
    """Whether the init container downloads the model; with a `load_format` of its own vLLM does, in its own way."""
    return td.spec.model.is_remote and "load_format" not in (
        name.replace("-", "_") for name in td.spec.engine.extra_args
    )


def fetched_model(td: TranslationDeployment) -> str:
    """Where the init container makes a link to the model: one for each uri and revision, in a volume of many models."""
    model = td.spec.model
    name = re.sub(r"[^A-Za-z0-9.]+", "-", model.uri.partition("://")[2])[:80]
    return f"{CACHE_MOUNT}/models/{name}-{digest({'uri': model.uri, 'revision': model.revision})[:12]}"
