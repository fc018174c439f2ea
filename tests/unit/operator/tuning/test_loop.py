"""Effects of tuning on children and status, and its tick; the API server and the pods are stand-ins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from tests.support.deployments import (
    children_of,
    condition,
    make_observed,
    make_td,
    planned,
    running_pod,
    shown,
)

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import Key
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.controller.ticker import Ticker
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.drift import signed
from dragoman_operator.observed.snapshot import TEMPLATE_HASH, Observed, size_of
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.values import TotalLoad
from dragoman_operator.status.events import transitions
from dragoman_operator.tuning.decision.recommendation import Recommendation
from dragoman_operator.tuning.decision.state import fresh
from dragoman_operator.tuning.loop import Tuner, TuningView, minimum_size, throughput_digest

T0 = 1_767_323_045.0
TICK_S = 5.0
RECOMMEND = {"tuning": {"mode": "Recommend", "window": "100s"}}


def size_in(manifest: dict[str, Any] | None) -> int:
    assert manifest is not None
    return size_of(manifest["spec"]["template"])


def test_size_of_a_pod_is_the_one_it_was_started_with() -> None:
    assert size_in(children_of(make_td())[DEPLOYMENT]) == 8
    other = make_td(engine={"maxNumSeqs": 24})
    assert size_in(children_of(other)[DEPLOYMENT]) == 24
    assert size_of({"spec": {"containers": [{"name": "other"}]}}) == 0


@pytest.mark.parametrize(
    ("autoscaling", "follows"),
    [
        (None, False),
        ({"mode": "External", "maxReplicas": 4}, False),
        ({"maxReplicas": 4}, True),
        ({"mode": "KEDA", "maxReplicas": 4}, True),
        ({"maxReplicas": 4, "targetConcurrency": 9}, False),
        ({"minReplicas": 4, "maxReplicas": 4}, False),
    ],
)
def test_no_less_than_the_spec_where_the_autoscaler_follows(
    autoscaling: dict[str, Any] | None, follows: bool
) -> None:
    assert minimum_size(make_td(autoscaling=autoscaling).spec) == (8 if follows else 1)


def test_version_has_the_fields_that_influence_throughput() -> None:
    td = make_td()
    same = [
        make_td(engine={"maxNumSeqs": 99}),
        make_td(replicas=9, rollout={"surge": "Never", "drainTimeout": "9s"}, tuning={"mode": "Recommend"}),
    ]
    others = [make_td(image="other"), make_td(engine={"maxModelLen": 512})]
    assert {throughput_digest(each) for each in same} == {throughput_digest(td)}
    assert throughput_digest(td) not in {throughput_digest(each) for each in others}


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({}, "False", "CollectingMetrics"),
        ({"recommendation": Recommendation(8, "8 fits")}, "False", "UpToDate"),
        ({"recommendation": Recommendation(24, "24 instead of 8")}, "True", "RecommendationProvided"),
    ],
)
def test_each_step_is_a_condition_and_an_event(change: dict[str, Any], status: str, reason: str) -> None:
    td = make_td(**RECOMMEND)
    observed = make_observed(td)
    tuned = TuningView("Recommend", replace(fresh("v1", 8, T0), **change), T0)
    written = shown(td, observed, plan=planned(td, observed, tuned=tuned), tuned=tuned)
    assert condition(written, "Tuning") == (status, reason)
    assert written["tuning"]["mode"] == "Recommend"
    before = TuningView("Recommend", fresh("v0", 8, T0), T0)
    old = shown(td, observed, plan=planned(td, observed), tuned=before)
    events = [transition.reason for transition in transitions(old, written)]
    assert (reason in events) == (reason != "CollectingMetrics")


def test_status_without_tuning_has_no_fields_of_it() -> None:
    td = make_td()
    observed = make_observed(td)
    written = shown(td, observed, plan=planned(td, observed))
    assert written.keys() & {"tuning", "recommendation"} == set()


class Metrics(PodMetrics):
    """The pods' pages, computed instead of scraped."""

    def __init__(self, world: World) -> None:
        super().__init__(None, 1.0, lambda: world.now)  # type: ignore[arg-type]
        self.world = world
        self.pages = 0

    async def _page(self, address: str) -> str:
        if self.world.unresponsive:
            raise MetricsError("/metrics answers 503")
        self.pages += 1
        running = min(self.world.in_flight, float(address.rpartition(".")[2]))
        tokens = self.world.counted * running * 300
        lines = {
            "vllm:num_requests_running": running,
            "vllm:num_requests_waiting": self.world.in_flight - running,
            "vllm:generation_tokens_total": tokens,
            "vllm:request_queue_time_seconds_sum": tokens / 850,
            "vllm:request_queue_time_seconds_count": tokens / 85,
        }
        return "\n".join(f"{name} {value}" for name, value in lines.items())


class World:
    """A clock, a Deployment's pods, and what they count: closed loop, all requests on all pods alike."""

    def __init__(self) -> None:
        self.now = T0
        self.sizes = [8, 8]
        self.templates = ["old", "old"]
        self.ready = 2
        self.ready_since = "2026-01-02T03:00:00Z"
        self.in_flight = 20.0
        self.unresponsive = False
        self.counted = 0.0
        self.enqueued: list[Key] = []
        self.failures: list[str] = []
        self.metrics = Metrics(self)
        self.tuner = self.another()

    def another(self) -> Tuner:
        """An operator that has just started."""
        return Tuner(self.enqueued.append, TICK_S, lambda: self.now)

    def ticker(self, tuner: Tuner) -> Ticker:
        """The loop of one operator."""
        return Ticker(
            {"tuner": tuner},
            lambda _, uids: self.pods(),
            self.metrics,
            TICK_S,
            self.failures.append,
            lambda: self.now,
        )

    def pods(self) -> list[dict[str, Any]]:
        return [self.pod(number, size) for number, size in enumerate(self.sizes)]

    def pod(self, number: int, size: int) -> dict[str, Any]:
        metadata = {
            "uid": f"{number}-{size}",
            "labels": {"dragoman.io/deployment": "demo", TEMPLATE_HASH: self.templates[number]},
            "ownerReferences": [{"kind": "ReplicaSet", "uid": "rs", "controller": True}],
        }
        ready = {"type": "Ready", "status": str(number < self.ready), "lastTransitionTime": self.ready_since}
        found = running_pod(f"demo-{number}", metadata=metadata, podIP=f"127.0.0.{size}", conditions=[ready])
        return found | {"spec": {"containers": [{"args": ["serve", "--max-num-seqs", str(size)]}]}}

    async def ticks(self, number: int, tuner: Tuner | None = None) -> None:
        ticker = self.ticker(tuner or self.tuner)
        for _ in range(number):
            self.now += TICK_S
            self.counted += TICK_S
            await ticker.tick()


@pytest.fixture
def world() -> World:
    return World()


def view(
    world: World, td: TranslationDeployment, observed: Observed, tuner: Tuner | None = None
) -> TuningView:
    replica_set = {"metadata": {"uid": "rs"}}
    observed = replace(observed, pods=tuple(world.pods()), replica_sets=(replica_set,))
    tuned = (tuner or world.tuner).view(td, observed)
    assert tuned is not None
    return tuned


def samples(world: World) -> float:
    """In the current window."""
    return world.tuner.begin()[Key("default", "demo")].state.current.samples


async def test_a_size_is_recommended_tick_by_tick_and_the_next_operator_has_it_from_the_status(
    world: World,
) -> None:
    td = make_td(**RECOMMEND)
    observed = make_observed(td)
    assert view(world, td, observed).state.recommendation is None
    await world.ticks(25)
    tuned = view(world, td, observed)
    assert tuned.state.recommendation is not None
    assert tuned.state.recommendation.max_num_seqs == 32
    assert world.enqueued[-1] == Key("default", "demo")
    status = shown(td, observed, plan=planned(td, observed), tuned=tuned)
    resumed = view(world, td, replace(observed, status=status), world.another())
    assert resumed.state.recommendation == tuned.state.recommendation


async def test_autoscaling_and_tuning_share_one_scrape(world: World) -> None:
    td = make_td(**RECOMMEND, autoscaling={"maxReplicas": 2})
    view(world, td, make_observed(td))
    autoscaler = Autoscaler(Mock(), Mock(load=lambda _: TotalLoad()), world.enqueued.append, TICK_S)
    autoscaler.view(td, {}, None, frozenset({"rs"}))
    parts: dict[str, Any] = {"autoscaler": autoscaler, "tuner": world.tuner}
    ticker = Ticker(parts, lambda _, uids: world.pods(), world.metrics, TICK_S, world.failures.append)
    for _ in range(13):
        world.now += TICK_S
        world.counted += TICK_S
        await ticker.tick()
    assert world.failures == []
    assert world.metrics.pages == 13 * len(world.sizes)
    assert autoscaler.deployments()[Key("default", "demo")].latest.ready == 2
    assert view(world, td, make_observed(td)).state.current.samples == 24


@pytest.mark.parametrize(
    ("templates", "ready"),
    [(["old", "new"], 2), (["new"], 1), (["new", "new"], 1)],
    ids=["both versions", "the second new pod is missing", "the second new pod starts"],
)
async def test_a_rollout_is_not_measured(world: World, templates: list[str], ready: int) -> None:
    """Fewer pods have all the load meanwhile, and old ones are not what the spec describes."""
    td = make_td(**RECOMMEND, replicas=2)
    observed = make_observed(td)
    view(world, td, observed)
    await world.ticks(3)
    changed = make_td(**RECOMMEND, replicas=2, engine={"maxModelLen": 512})
    world.sizes, world.templates, world.ready = [8] * len(templates), templates, ready
    view(world, changed, observed)
    await world.ticks(10)
    assert samples(world) == 0
    world.sizes, world.templates, world.ready = [8, 8], ["new", "new"], 2
    await world.ticks(3)
    assert samples(world) > 0


async def test_the_load_is_measured_once_the_newest_replica_has_its_share(world: World) -> None:
    world.ready_since = "2026-01-02T03:04:05Z"
    td = make_td(**RECOMMEND, replicas=2)
    view(world, td, make_observed(td))
    await world.ticks(2)
    assert samples(world) == 0
    await world.ticks(1)
    assert samples(world) == 2


async def test_a_window_begins_after_the_rollout(world: World) -> None:
    """Its end is not a moment after the first sample."""
    td = make_td(**RECOMMEND, replicas=2)
    view(world, td, make_observed(td))
    world.ready = 1
    await world.ticks(18)
    world.ready = 2
    await world.ticks(15)
    assert samples(world) > 20
    assert view(world, td, make_observed(td)).state.recommendation is None
    await world.ticks(6)
    assert view(world, td, make_observed(td)).state.recommendation is not None


async def test_replicas_that_start_beside_those_of_a_complete_rollout_do_not_end_measuring(
    world: World,
) -> None:
    """A replica may wait for a GPU for ever."""
    td = make_td(**RECOMMEND, replicas=3)
    status = {"rollout": {"lastReadyTemplateHash": "old"}}
    world.sizes, world.templates, world.ready = [8, 8, 8], ["old", "old", "old"], 2
    view(world, td, replace(make_observed(td), status=status))
    await world.ticks(3)
    assert samples(world) == 4


async def test_unresponsive_pods_and_gaps_give_no_samples(world: World) -> None:
    td = make_td(**RECOMMEND)
    observed = make_observed(td)
    view(world, td, observed)
    world.unresponsive = True
    await world.ticks(30)
    assert view(world, td, observed).state.current.samples == 0
    world.unresponsive = False
    await world.ticks(1)
    world.now += 100 * TICK_S
    await world.ticks(1)
    assert view(world, td, observed).state.current.samples == 0


async def test_deleted_objects_and_those_with_tuning_off_are_not_scraped(world: World) -> None:
    td = make_td(**RECOMMEND)
    observed = make_observed(td)
    view(world, td, observed)
    assert world.tuner.view(make_td(), observed) is None
    await world.ticks(1)
    assert world.metrics.pages == 0


def test_signature_of_a_plain_deployment_is_as_ever() -> None:
    """An operator with tuning replaces no pods of objects without it."""
    untuned = children_of(make_td())[DEPLOYMENT]
    settled = children_of(make_td(**RECOMMEND), tuned=TuningView("Recommend", fresh("v", 8, T0), T0))
    assert untuned is not None
    assert signed(untuned) == signed(settled[DEPLOYMENT] or {})
