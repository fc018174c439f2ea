"""The autoscaler: decides by the metrics of pods, and enqueues objects whose number of replicas changes.

The decision is the pure function `recommend`; the reconciler reads it with `view` and applies it. The history is
written to the status with the decision, so that the next operator continues from it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman_kube.objects import Key
from dragoman_operator.api.scaling import Prometheus
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.observation import STALE_TICKS
from dragoman_operator.autoscaling.decision.recommend import recommend, request
from dragoman_operator.autoscaling.decision.values import History
from dragoman_operator.autoscaling.inputs import policy_of, samples_of
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.autoscaling.view import (
    CLOCKS_DIFFER_S,
    ScalingView,
    decode,
    initial_replicas,
    max_start_s,
    metrics_state,
    stored_metrics,
    worth_publishing,
)
from dragoman_operator.observed.snapshot import EnginePod, Manifest
from dragoman_operator.scraping.engine_metrics import LOAD_NAMES
from dragoman_operator.scraping.prometheus import PrometheusServers
from dragoman_operator.scraping.routers import Routers
from dragoman_operator.scraping.values import Scrape, TotalLoad

log = logging.getLogger(__name__)

PODS = "the pods' own /metrics"

QUIET_EVERY_S = 30.0
"""Between two evaluations of an object that has nothing to measure; many objects are at zero replicas."""


@dataclass
class Scaled:
    """One object that is scaled by load."""

    td: TranslationDeployment
    shown: ScalingView
    """The decision that is in the status, or will be after the next reconciliation."""
    latest: ScalingView
    requested_at_s: float
    """When the number of replicas last changed."""
    starts: Starts
    replica_sets: Collection[str] = ()
    """The uids of the ReplicaSets whose pods are its replicas."""
    scrape_interval_s: float = 0.0
    failure: str | None = None
    failing_since: float | None = None
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Changes of the number of replicas, by direction and rule."""

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics to scrape from its pods; none if Prometheus does."""
        return () if prometheus_of(self.td) else LOAD_NAMES


class Autoscaler:
    """Decides for all objects in mode Internal.

    Args:
        prometheus: Sources of metrics for objects that name a Prometheus.
    """

    def __init__(
        self,
        prometheus: PrometheusServers,
        routers: Routers,
        enqueue: Callable[[Key], None],
        interval_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._prometheus = prometheus
        self._routers = routers
        self._enqueue = enqueue
        self._interval_s = interval_s
        self._clock = clock
        self._deployments: dict[Key, Scaled] = {}
        self._delegated: set[Key] = set()

    def view(
        self,
        td: TranslationDeployment,
        status: Mapping[str, Any],
        deployment: Manifest | None,
        replica_sets: Collection[str],
    ) -> ScalingView | None:
        """The last decision for one object; None in other modes. Registers the object."""
        key = Key(td.namespace, td.name)
        if td.spec.autoscaling_mode != "Internal":
            self.forget(key)
            self._delegated.add(key)
            return None
        known = self._deployments.get(key)
        if known is None or known.td.uid != td.uid:
            known = self._deployments[key] = self._restored(td, status, deployment)
            self._delegated.discard(key)
        known.td, known.replica_sets = td, replica_sets
        if td.spec.replicas != known.latest.observed_spec_replicas:
            self._request(key, known, td.spec.replicas)
        return known.shown

    def acknowledge(self, key: Key, replicas: int) -> None:
        """The operator itself wrote this number to `spec.replicas`: it is no request."""
        if (deployment := self._deployments.get(key)) is not None:
            deployment.latest = replace(deployment.latest, observed_spec_replicas=replicas)
            deployment.shown = replace(deployment.shown, observed_spec_replicas=replicas)

    def forget(self, key: Key) -> None:
        """The object was deleted, or is in another mode."""
        self._deployments.pop(key, None)
        self._delegated.discard(key)

    def scale_from_zero(self, key: Key) -> None:
        """Decide at once for an object without replicas: a router has a queued request for it."""
        deployment = self._deployments.get(key)
        if deployment is not None and deployment.latest.replicas == 0:
            self._decide(key, deployment, [], Scrape(failure=deployment.failure))

    def deployments(self) -> Mapping[Key, Scaled]:
        """The objects that are scaled, for the metrics."""
        return self._deployments

    def loads(self) -> dict[Key, TotalLoad]:
        """The routers' load of each registered object, in every mode."""
        return {key: self._routers.load(key) for key in (*self._deployments, *self._delegated)}

    def begin(self) -> dict[Key, Scaled]:
        """Start of a tick: the objects to evaluate."""
        self._prometheus.begin(
            (key.namespace, chosen)
            for key, deployment in self._deployments.items()
            if (chosen := prometheus_of(deployment.td)) is not None
        )
        return dict(self._deployments)

    async def evaluate(self, key: Key, deployment: Scaled, pods: list[EnginePod], scraped: Scrape) -> None:
        """Decide for one object, by the metrics of its pods or of its Prometheus."""
        if self._is_quiet(key, deployment, pods, scraped):
            return
        deployment.starts = deployment.starts.seen(pods, max_start_s(deployment.td.spec))
        if (chosen := prometheus_of(deployment.td)) is not None:
            scraped = await self._prometheus.read(key.namespace, chosen, pods)
        if self._deployments.get(key) is deployment:
            self._decide(key, deployment, pods, scraped)

    def _is_quiet(self, key: Key, deployment: Scaled, pods: list[EnginePod], scraped: Scrape) -> bool:
        """Whether another decision would be the last one: at the minimum, without pods, load and failures."""
        latest, scaling = deployment.latest, deployment.td.spec.autoscaling
        return (
            not (pods or latest.ready or scraped.failure or deployment.failure)
            and latest.metrics is not None
            and scaling is not None
            and scaling.prometheus is None
            and latest.replicas == scaling.lowest_replicas
            and latest.load == self._routers.load(key) == TotalLoad()
            and abs(self._clock() - latest.at) < QUIET_EVERY_S
        )

    def _decide(self, key: Key, deployment: Scaled, pods: list[EnginePod], scraped: Scrape) -> None:
        before, now = self._last(deployment)
        load = self._routers.load(key)
        deployment.scrape_interval_s = scraped.interval_s or deployment.scrape_interval_s
        policy = policy_of(deployment.td.spec, self._interval_s, deployment.scrape_interval_s)
        samples = samples_of(
            before.replicas,
            deployment.requested_at_s,
            pods,
            scraped.readings,
            load,
            deployment.starts,
            now,
        )
        decision = recommend(policy, samples, before.history, now)
        deployment.failure = scraped.failure
        if scraped.failure is None:
            deployment.failing_since = None
        elif deployment.failing_since is None:
            deployment.failing_since = now
        since = deployment.failing_since
        failing = since is not None and now - since >= STALE_TICKS * policy.tick_s
        deployment.latest = ScalingView(
            replicas=decision.replicas,
            rule=decision.rule,
            reason=decision.reason,
            at=now,
            source=self._source_of(deployment.td),
            metrics=metrics_state(pods, decision, scraped.problems, scraped.failure, failing),
            signals=decision.signals,
            load=load,
            ready=samples.ready,
            time_to_ready_s=samples.time_to_ready_s,
            history=decision.history,
            starts=deployment.starts,
            observed_spec_replicas=before.observed_spec_replicas,
        )
        _count_change(key, deployment, before)
        if worth_publishing(deployment.latest, deployment.shown):
            deployment.shown = deployment.latest
            self._enqueue(key)

    def _last(self, deployment: Scaled) -> tuple[ScalingView, float]:
        """The last decision, and the time of this one, which is not earlier.

        If the clock was set back by more than the clocks of two operators may differ, the history begins again.
        """
        before, now = deployment.latest, self._clock()
        if before.at <= now + CLOCKS_DIFFER_S:
            return before, max(before.at, now)
        log.warning("the clock was set back by %.0f s: the observation begins again", before.at - now)
        deployment.requested_at_s, deployment.failing_since = now, None
        deployment.shown = replace(deployment.shown, at=now)
        return replace(before, at=now, history=History()), now

    def _source_of(self, td: TranslationDeployment) -> str:
        chosen = prometheus_of(td)
        return PODS if chosen is None else self._prometheus.named(chosen)

    def _request(self, key: Key, deployment: Scaled, replicas: int) -> None:
        """Decide at once about a number that another client wrote to `spec.replicas`."""
        before, now = self._last(deployment)
        latest = before
        if replicas != before.replicas:
            policy = policy_of(deployment.td.spec, self._interval_s, deployment.scrape_interval_s)
            proposal, history = request(policy, before.history, before.replicas, replicas, now)
            latest = replace(
                before,
                replicas=proposal.replicas,
                rule=proposal.rule,
                reason=proposal.reason,
                at=now,
                history=history,
                restored=False,
            )
        deployment.latest = deployment.shown = replace(latest, observed_spec_replicas=replicas)
        _count_change(key, deployment, before)

    def _restored(
        self, td: TranslationDeployment, status: Mapping[str, Any], deployment: Manifest | None
    ) -> Scaled:
        sized = initial_replicas(td.spec, status, deployment)
        stored = status.get("scaling") or {}
        now = self._clock()
        internal = stored.get("mode") == "Internal"
        memory = stored.get("state") if internal else None
        observed = stored.get("observedSpecReplicas") if internal else None
        history, measured = decode(memory, now)
        starts = Starts.from_fields(measured, max_start_s(td.spec), now)
        began = ScalingView(
            replicas=sized.replicas,
            rule=sized.rule,
            reason=sized.reason,
            at=now,
            source=self._source_of(td),
            time_to_ready_s=starts.time_to_ready_s,
            history=history,
            starts=starts,
            # Without one, spec.replicas is from before the mode, and no request.
            observed_spec_replicas=td.spec.replicas if observed is None else int(observed),
            ready=int(status.get("readyReplicas") or 0) if internal else 0,
            metrics=stored_metrics(status) if internal else None,
            restored=internal,
        )
        return Scaled(td=td, shown=began, latest=began, requested_at_s=now, starts=starts)


def prometheus_of(td: TranslationDeployment) -> Prometheus | None:
    """The source of metrics that an object names instead of its pods."""
    return td.spec.autoscaling.prometheus if td.spec.autoscaling else None


def _count_change(key: Key, deployment: Scaled, before: ScalingView) -> None:
    """Count and log a change of the number of replicas."""
    after = deployment.latest
    if after.replicas == before.replicas:
        return
    deployment.requested_at_s = after.at
    deployment.changes["up" if after.replicas > before.replicas else "down", after.rule] += 1
    log.info("%d → %d: %s", before.replicas, after.replicas, after.reason, extra={"key": str(key)})
