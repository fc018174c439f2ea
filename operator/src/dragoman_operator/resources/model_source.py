"""From a model's URI to the engine's argument and volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman_operator.errors import SpecError

MODEL_MOUNT = "/mnt/model"


@dataclass(frozen=True)
class ModelSource:
    """Location of the model for the engine."""

    argument: str
    """Value of `dragoman serve --model`."""
    volume: dict[str, Any] | None = None
    """The pod's volume `model`, mounted read-only at `MODEL_MOUNT`."""


def is_remote(uri: str) -> bool:
    """Whether the engine pod itself downloads the model."""
    return uri.startswith(("hf://", "s3://"))


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
