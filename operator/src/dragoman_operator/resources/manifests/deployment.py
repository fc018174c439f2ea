"""The Deployment of the engine pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_operator.api.labels import metadata, selector
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.resources.manifests.pod import START_PERIOD_S, pod_template, start_attempts

PAUSE_S = 86_400
"""minReadySeconds of a rollout that pauses after its first pod, which serves but does not count as available. Longer
than any comparison, so that the rollout does not continue without evaluation while no operator runs."""


@dataclass(frozen=True)
class Images:
    """Default engine images."""

    cuda: str
    cpu: str

    def of(self, td: TranslationDeployment) -> str:
        """The image for `td`."""
        return td.spec.image or getattr(self, td.spec.engine.device)


def deployment(
    td: TranslationDeployment,
    images: Images,
    replicas: int,
    strategy: Mapping[str, object],
    template: Mapping[str, Any] | None = None,
    *,
    paused_after_first_pod: bool = False,
) -> dict[str, Any]:
    """The Deployment.

    Args:
        td: The object.
        images: Default engine images.
        replicas: Desired number of pods.
        strategy: Strategy of the rolling update.
        template: That of a former version, if it is kept; None: that of `td`.
        paused_after_first_pod: Whether a rollout stops at its first pod.
    """
    hold_s = PAUSE_S if paused_after_first_pod else 0
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(td),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector(td.name)},
            "strategy": dict(strategy),
            **({"minReadySeconds": hold_s} if hold_s else {}),
            "progressDeadlineSeconds": start_attempts(td) * START_PERIOD_S + PROGRESS_MARGIN_S + hold_s,
            "revisionHistoryLimit": 3,
            "template": dict(template or pod_template(td, images.of(td))),
        },
    }
