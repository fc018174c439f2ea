"""The Deployment of the engine pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.core.manifests.metadata import metadata, selector
from dragoman_operator.core.manifests.pod import START_PERIOD_S, pod_template, start_attempts
from dragoman_operator.core.replicas import sizing
from dragoman_operator.core.rollout import strategy

PROGRESS_MARGIN_S = 300
"""Added to the time a pod may take to start: scheduling and pulling an image come before it."""


@dataclass(frozen=True)
class Images:
    """Engine images where the spec names none."""

    cuda: str
    cpu: str

    def of(self, td: TranslationDeployment) -> str:
        """The image that runs `td`."""
        return td.spec.image or getattr(self, td.spec.engine.device)


def deployment(td: TranslationDeployment, images: Images) -> dict[str, Any]:
    """The Deployment: as many pods as `sizing` says, replaced as `strategy` says.

    Args:
        td: What should run.
        images: What runs where `td` names no image.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(td),
        "spec": {
            "replicas": sizing(td.spec).replicas,
            "selector": {"matchLabels": selector(td.name)},
            "strategy": strategy(td.spec.rollout),
            "progressDeadlineSeconds": start_attempts(td) * START_PERIOD_S + PROGRESS_MARGIN_S,
            "revisionHistoryLimit": 3,
            "template": pod_template(td, images.of(td)),
        },
    }
