"""The autoscaler's tick: what it reads, decides, publishes and stores; its parts are stand-ins."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.deployments import make_observed, make_td, running_pod, shown

from dragoman_kube.objects import Key, controller_of
from dragoman_operator.api.scaling import Autoscaling, ratio
from dragoman_operator.api.status import ConditionValue, encode_state
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.rules import describe_expected
from dragoman_operator.autoscaling.decision.values import (
    Expected,
    History,
    ReplicaSample,
    Rule,
    Signals,
)
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.autoscaling.view import ScalingView, decode, encode, worth_publishing
from dragoman_operator.controller.ticker import Ticker
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.scraping.values import EngineMetrics, Reading, Scrape, TotalLoad

DEMO = Key("default", "demo")
T0 = 1_767_323_045.0
TICK_S = 5.0


def reading(sample: ReplicaSample, at: float) -> Reading:
    """Two readings of a pod, a tick apart, with the rates of `sample`."""
    rates = sample.finished_per_s, sample.refused_per_s
    finished, refused = (None if rate is None else rate * TICK_S for rate in rates)
    now = EngineMetrics(
        at, sample.running, sample.waiting, sample.kv_usage, finished=finished, refused=refused
    )
    return Reading(now, EngineMetrics(at - TICK_S, 0.0, 0.0, finished=0.0, refused=0.0))


class World:
    """A clock, the pods that there are, their metrics, and the load of the routers."""

    def __init__(self) -> None:
        self.now = T0 + 1000
        self.ready = 1
        self.each = ReplicaSample(None, 0.0, 0.0)
        self.reporting = 10_000
        self.failure: str | None = None
        self.broken = False
        self.load_ = TotalLoad()
        self.enqueued: list[Key] = []
        self.failures: list[str] = []
        self.scraped: set[str] = set()
        self.others: list[dict[str, Any]] = []
        self.unknown: set[str] = set()
        """Namespaces whose pods may not be read."""
        self.autoscaler = Autoscaler(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.enqueued.append,
            TICK_S,
            lambda: self.now,
        )
        self.ticker = Ticker(
            {"autoscaler": self.autoscaler},
            self.own_pods,
            self,  # type: ignore[arg-type]
            TICK_S,
            self.failures.append,
            lambda: self.now,
        )

    def view(
        self,
        td: TranslationDeployment | None = None,
        status: Mapping[str, Any] | None = None,
        running: int | None = None,
    ) -> ScalingView:
        """The decision as the reconciler reads it, with `running` replicas in the Deployment."""
        deployment = None if running is None else {"spec": {"replicas": running}}
        view = self.autoscaler.view(td or internal(), status or {}, deployment, frozenset({"rs"}))
        assert view is not None
        return view

    # The mirror.
    def own_pods(self, key: Key, replica_sets: Collection[str]) -> list[dict[str, Any]] | None:
        pods = self.pods(key)
        return pods and [pod for pod in pods if (controller_of(pod) or {}).get("uid") in replica_sets]

    def pods(self, key: Key) -> list[dict[str, Any]] | None:
        assert key.name == "demo"
        if key.namespace in self.unknown:
            return None
        owners = [{"kind": "ReplicaSet", "uid": "rs", "controller": True}]
        names = (f"demo-{number}" for number in range(self.ready))
        own = (running_pod(name, metadata={"ownerReferences": owners}) for name in names)
        return [*own, *self.others]

    # Prometheus.
    def begin(self, keys: Iterable[Key]) -> None:
        self.deployments = set(keys)

    # The metrics of pods.
    def keep(self, uids: object) -> None:
        return None

    async def read(self, pods: list[EnginePod], names: tuple[str, ...]) -> Scrape:
        if self.broken:
            raise RuntimeError("a defect")
        self.scraped |= {pod.name for pod in pods}
        answering = pods[: self.reporting]
        readings = {pod.uid: reading(self.each, self.now) for pod in answering}
        problems = {pod.name: "no answer within 2 s" for pod in pods[self.reporting :]}
        return Scrape(readings, problems, self.failure)

    # The routers.
    def load(self, key: Key) -> TotalLoad:
        return self.load_

    async def ticks(self, times: int = 1) -> ScalingView:
        for _ in range(times):
            self.now += TICK_S
            await self.ticker.tick()
        return self.autoscaler.deployments()[DEMO].latest


def metrics(scaled: ScalingView) -> ConditionValue:
    assert scaled.metrics is not None
    return scaled.metrics


@pytest.fixture
def world() -> World:
    return World()


def internal(**scaling: Any) -> TranslationDeployment:
    return make_td(replicas=1, autoscaling={"minReplicas": 1, "maxReplicas": 4, **scaling})


async def test_queue_scales_up_and_enqueues_the_object(world: World) -> None:
    td = internal()
    began = world.view(td)
    assert (began.replicas, began.rule, began.metrics) == (1, "Resumed", None)
    world.each = ReplicaSample(None, 8.0, 12.0)
    scaled = await world.ticks()
    assert (scaled.replicas, scaled.rule) == (4, "Load")
    assert world.view(td) == scaled
    assert world.enqueued == [DEMO]
    assert world.autoscaler.deployments()[DEMO].changes == {("up", "Load"): 1}
    world.autoscaler.forget(DEMO)
    assert world.autoscaler.deployments() == {}
    assert metrics(scaled).message == "1 of 1 ready replicas report metrics"
    assert scaled.time_to_ready_s == 30


async def test_measurements_are_published_once_a_minute(world: World) -> None:
    world.view()
    world.each = ReplicaSample(None, 1.0, 0.0)
    await world.ticks(2)
    world.enqueued.clear()
    await world.ticks(60)
    # The first minute has no window yet, so that one rule takes over from another.
    assert 4 <= len(world.enqueued) <= 7


async def test_object_without_load_is_published_every_ten_minutes(world: World) -> None:
    world.view()
    await world.ticks(60)
    world.enqueued.clear()
    await world.ticks(2 * 120)
    assert len(world.enqueued) == 2


async def test_arrivals_of_the_last_minute_are_not_left_in_the_status_of_an_idle_object(world: World) -> None:
    world.view()
    idle = await world.ticks(60)
    shown = replace(idle, at=idle.at - 60, signals=replace(idle.signals, arrivals_per_s=1.2))
    assert worth_publishing(idle, shown)
    assert not worth_publishing(idle, replace(shown, signals=idle.signals))


async def test_reasons_count_a_single_replica(world: World) -> None:
    world.view()
    assert (await world.ticks(60)).reason.startswith("1 replica: ")


async def test_restored_state_continues(world: World) -> None:
    td = internal()
    world.view(td)
    world.each = ReplicaSample(None, 8.0, 12.0)
    before = await world.ticks(3)
    status = shown(td, make_observed(), scaled=before)
    after = World()
    after.now = world.now
    resumed = after.view(td, status, 9)
    assert (resumed.replicas, resumed.rule, resumed.time_to_ready_s) == (4, before.rule, 30)
    assert resumed.restored
    assert resumed.history.observed_since == before.history.observed_since
    after.each = world.each
    world.ready = after.ready = 4
    assert (await after.ticks()).replicas == (await world.ticks()).replicas == 4


async def test_replicas_requested_after_a_restart_replace_the_restored_decision(world: World) -> None:
    status = {
        "desiredReplicas": 3,
        "scaling": {"mode": "Internal", "rule": "Load", "observedSpecReplicas": 1},
    }
    restored = world.view(internal(), status, 3)
    assert (restored.replicas, restored.restored) == (3, True)
    requested = world.view(replace_replicas(internal(), 4), status, 3)
    assert (requested.replicas, requested.restored) == (4, False)


async def test_running_deployment_keeps_its_replicas_at_first(world: World) -> None:
    scaled = world.view(running=3)
    assert scaled.replicas == 3
    other_mode = {"desiredReplicas": 4, "scaling": {"mode": "External"}}
    world.autoscaler.forget(DEMO)
    scaled = world.view(internal(), other_mode, 2)
    assert scaled.replicas == 2


async def test_pods_without_metrics_keep_the_number_with_a_reason(world: World) -> None:
    world.view(running=3)
    world.ready = 3
    await world.ticks()
    world.enqueued.clear()
    world.reporting = 1
    scaled = await world.ticks()
    assert (scaled.replicas, scaled.rule) == (3, "MetricsMissing")
    assert not metrics(scaled).status
    assert "2 of 3 ready replicas report no metrics" in metrics(scaled).message
    assert "demo-1: no answer within 2 s" in metrics(scaled).message
    assert world.enqueued == [DEMO]
    world.reporting = 3
    scaled = await world.ticks()
    assert metrics(scaled).status


async def test_source_that_fails_for_long_is_named_even_without_replicas(world: World) -> None:
    world.view(internal(minReplicas=0), running=0)
    world.ready, world.failure = 0, "http://prom:9090: cannot be reached"
    scaled = await world.ticks(3)
    assert metrics(scaled).status
    scaled = await world.ticks()
    assert (metrics(scaled).status, metrics(scaled).reason) == (False, "MetricsSourceUnavailable")
    assert "http://prom:9090: cannot be reached" in metrics(scaled).message
    world.failure = None
    scaled = await world.ticks()
    assert metrics(scaled).status


async def test_object_with_nothing_to_measure_is_evaluated_every_30_s(world: World) -> None:
    world.view()
    world.ready = 0
    first = await world.ticks()
    assert await world.ticks(5) is first
    assert (await world.ticks()).at == first.at + 30


@pytest.mark.parametrize("changed", ["a pod", "load", "a router without reports", "failure", "minimum"])
async def test_object_with_something_to_measure_is_evaluated_at_each_tick(world: World, changed: str) -> None:
    world.view()
    world.ready = 0
    quiet = await world.ticks()
    match changed:
        case "a pod":
            world.ready = 1
        case "load":
            world.load_ = TotalLoad(in_flight=1)
        case "a router without reports":
            world.load_ = TotalLoad(not_reporting=1)
        case "failure":
            world.failure = "no answer"
        case "minimum":
            world.view(internal(minReplicas=2))
    assert (await world.ticks()).at == quiet.at + TICK_S
    if changed != "minimum":
        assert (await world.ticks()).at == quiet.at + 2 * TICK_S
    # The end of it is evaluated, too.
    world.ready, world.load_, world.failure = 0, TotalLoad(), None
    now = world.now
    assert (await world.ticks()).at == now + TICK_S or changed == "minimum"


async def test_queued_request_scales_at_once_and_only_from_zero(world: World) -> None:
    world.view(internal(minReplicas=0), running=0)
    world.ready = 0
    await world.ticks()
    world.enqueued.clear()
    world.load_ = TotalLoad(queued=1)
    world.autoscaler.scale_from_zero(DEMO)
    scaled = world.autoscaler.deployments()[DEMO].latest
    assert (scaled.replicas, scaled.rule) == (1, "ScaleFromZero")
    assert world.enqueued == [DEMO]
    world.autoscaler.scale_from_zero(DEMO)
    world.autoscaler.scale_from_zero(Key("default", "unknown"))
    assert world.autoscaler.deployments()[DEMO].latest is scaled


async def test_one_replica_is_kept_to_sleep(world: World) -> None:
    gpu: dict[str, Any] = {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    scaling = {"minReplicas": 0, "maxReplicas": 4, "idleSeconds": 20, "idle": "Sleep"}
    world.view(make_td(replicas=0, autoscaling=scaling, **gpu))
    assert (await world.ticks(100)).replicas == 1


async def test_router_without_reports_keeps_the_last_replica(world: World) -> None:
    world.view(internal(minReplicas=0, idleSeconds=20))
    world.load_ = TotalLoad(not_reporting=1)
    assert (await world.ticks(100)).replicas == 1
    world.load_ = TotalLoad()
    scaled = await world.ticks()
    assert (scaled.replicas, scaled.rule) == (0, "Idle")


async def test_defect_in_one_evaluation_does_not_affect_others(world: World) -> None:
    world.view(running=3)
    world.broken = True
    assert (await world.ticks()).replicas == 3


async def test_clock_that_is_set_back_does_no_harm(world: World) -> None:
    world.view()
    await world.ticks(3)
    world.now -= 3600
    assert (await world.ticks(2)).replicas == 1


async def test_a_clock_that_was_ahead_once_does_not_stop_scaling(world: World) -> None:
    world.view()
    await world.ticks(3)
    world.now += 3600
    await world.ticks()
    world.now -= 3600
    world.each = ReplicaSample(None, 8.0, 12.0)
    scaled = await world.ticks()
    assert (scaled.replicas, scaled.rule, scaled.at) == (4, "Load", world.now)


@pytest.mark.parametrize("mode", ["Off", "External", "HPA", "KEDA"])
async def test_other_modes_are_not_scaled(world: World, mode: str) -> None:
    world.view()
    assert world.autoscaler.view(internal(mode=mode), {}, None, frozenset()) is None
    await world.ticker.tick()
    assert world.autoscaler.deployments() == {}
    # KEDA reads from our metrics what routers hold.
    assert world.autoscaler.loads() == {DEMO: TotalLoad()}
    world.autoscaler.forget(DEMO)
    assert world.autoscaler.loads() == {}


async def test_new_bounds_hold_at_the_next_tick(world: World) -> None:
    world.view(running=3)
    world.ready = 3
    world.view(internal(maxReplicas=2))
    scaled = await world.ticks()
    assert (scaled.replicas, scaled.rule) == (2, "Bounds")


@pytest.mark.parametrize(
    "word", [None, "", "!", "AAAA", "eJwrSS0uAQAEXQHB"], ids=["none", "empty", "odd", "no zip", "no JSON"]
)
def test_malformed_state_is_an_empty_history(word: str | None) -> None:
    assert decode(word, T0) == (History(), None)


async def test_state_stays_small(world: World) -> None:
    td = internal()
    world.view(td)
    for number in range(400):
        world.each = ReplicaSample(None, 1.0 + number % 7, 3.0 * (number % 5), 0.1, 4.321 + number % 3)
        scaled = await world.ticks()
    word = encode(scaled.history, scaled.starts)
    assert len(word) < 4096
    history, starts = decode(word, world.now)
    assert encode(history, Starts.from_fields(starts, 900.0, world.now)) == word
    shown = replace(scaled, at=scaled.at - 59)
    assert not worth_publishing(scaled, shown)
    assert worth_publishing(scaled, replace(shown, ready=2))


@pytest.mark.parametrize("labels", [None, {}, {"dragoman.io/deployment": ""}])
async def test_pod_without_our_label_does_not_stop_the_tick(
    labels: dict[str, str] | None, world: World
) -> None:
    world.view()
    world.others = [running_pod("x", metadata={"labels": labels}), {}]
    world.each = ReplicaSample(None, 8.0, 12.0)
    assert (await world.ticks()).replicas == 4


async def test_pod_of_another_owner_is_neither_counted_nor_scraped(world: World) -> None:
    world.view()
    theirs = [{"kind": "ReplicaSet", "uid": "other", "controller": True}]
    world.others = [
        running_pod("x", metadata={"ownerReferences": None}),
        running_pod("x", metadata={"ownerReferences": theirs}),
    ]
    scaled = await world.ticks()
    assert scaled.ready == 1
    assert world.scraped == {"demo-0"}


async def test_namespace_that_may_not_be_listed_affects_only_its_own(world: World) -> None:
    world.view()
    gone = replace(internal(), namespace="gone", uid="gone")
    world.view(gone, {}, 3)
    world.unknown = {"gone"}
    world.each = ReplicaSample(None, 8.0, 12.0)
    assert (await world.ticks()).replicas == 4
    # Without its pods nothing is decided: they are not gone, they are not known.
    assert world.autoscaler.deployments()[Key("gone", "demo")].latest.metrics is None


async def test_object_that_fails_is_counted_and_retried_less_and_less(world: World) -> None:
    world.view()
    world.broken = True
    for _ in range(40):
        world.now += 5.0
        await world.ticker.tick()
    assert world.failures == ["autoscaler"] * len(world.failures)
    assert 4 <= len(world.failures) <= 12
    world.broken = False
    world.each = ReplicaSample(None, 8.0, 12.0)
    assert (await world.ticks(13)).replicas == 4


async def test_failure_of_scaling_from_zero_does_not_end_the_routers_stream(world: World) -> None:
    world.view(internal(minReplicas=0), running=0)
    world.load_ = "no load"  # type: ignore[assignment]
    with world.ticker.guarded("autoscaler", DEMO):
        world.autoscaler.scale_from_zero(DEMO)
    assert world.failures == ["autoscaler"]


@pytest.mark.parametrize(
    "state",
    [
        '{"points": [[1, 0, 1, 1, 1]]}',
        '{"points": [[1, 5, -1, 1, 1]]}',
        '{"peaks": [[1, -3]]}',
        '{"grown": [[1, 1e999]]}',
        '{"window_s": -5}',
        '{"seen": [1, 1, 1, 1e999, 0]}',
        '{"last_scale_down": 1e12}',
        '{"peaks": [[1e12, 100]]}',
    ],
)
def test_state_with_implausible_values_is_an_empty_history(state: str) -> None:
    assert decode(encode_state(state), T0)[0] == History()


async def test_requests_in_spec_replicas_are_decided_at_once(world: World) -> None:
    world.view()
    await world.ticks(70)
    four = replace_replicas(internal(), 4)
    scaled = world.view(four)
    assert (scaled.replicas, scaled.rule, scaled.observed_spec_replicas) == (4, "Requested", 4)
    assert world.autoscaler.deployments()[DEMO].changes == {("up", "Requested"): 1}
    world.ready = 4
    assert (await world.ticks(5)).replicas == 4
    scaled = world.view(replace_replicas(four, 1))
    assert (scaled.replicas, scaled.observed_spec_replicas) == (1, 1)


async def test_own_write_is_no_request(world: World) -> None:
    td = internal()
    world.view(td)
    world.each = ReplicaSample(None, 8.0, 12.0)
    await world.ticks()
    world.autoscaler.acknowledge(DEMO, 4)
    world.ready, world.each = 4, ReplicaSample(None, 0.0, 0.0)
    decided = await world.ticks(100)
    assert decided.replicas == 1
    scaled = world.view(replace_replicas(td, 4))
    assert (scaled.replicas, scaled.rule) == (1, decided.rule)


@pytest.mark.parametrize(
    ("stored", "spec", "replicas", "rule"),
    [
        ({}, 1, 3, "Resumed"),
        ({"observedSpecReplicas": 3}, 3, 3, "Resumed"),
        ({"observedSpecReplicas": 1}, 4, 4, "Requested"),
        ({"observedSpecReplicas": 3}, 1, 3, "Requested"),
    ],
    ids=["not stored", "written", "higher", "lower, without a window"],
)
async def test_request_while_no_operator_ran(
    stored: dict[str, int], spec: int, replicas: int, rule: str, world: World
) -> None:
    status = {"desiredReplicas": 3, "scaling": {"mode": "Internal", **stored}}
    scaled = world.view(replace_replicas(internal(), spec), status, 3)
    assert (scaled.replicas, scaled.rule, scaled.observed_spec_replicas) == (replicas, rule, spec)


def replace_replicas(td: TranslationDeployment, replicas: int) -> TranslationDeployment:
    return replace(td, spec=td.spec.model_copy(update={"replicas": replicas}))


def test_status_has_what_the_objective_lets_expect():
    expected = (Expected(3, 0.00412), Expected(2, 0.06))
    words = describe_expected(expected, 2.0)
    assert words == "with 3 replicas, 0.41% of requests would wait over 2 s; with 2, 6%"
    signals = Signals(expected=expected, expectation=words)
    view = ScalingView(3, Rule.OBJECTIVE, "kept for bursts", 0.0, signals=signals)
    scaling = shown(internal(), make_observed(), scaled=view)["scaling"]
    assert scaling["expectation"] == words
    assert scaling["expected"] == [{"replicas": 3, "lateRatio": 0.0041}, {"replicas": 2, "lateRatio": 0.06}]


@pytest.mark.parametrize("wrong", ["0%", "100%", "99", "0.99", "99.9999%", "-1%"])
def test_an_objective_is_a_percentage(wrong):
    with pytest.raises(ValidationError, match="objective"):
        Autoscaling(max_replicas=3, objective=wrong)


def test_the_objective_becomes_a_ratio():
    assert ratio("99.9%") == pytest.approx(0.999)
    assert ratio(Autoscaling(max_replicas=3).objective) == pytest.approx(0.95)
