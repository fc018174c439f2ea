"""Series of deployments, and the characters that cost is divided by."""

from random import Random

import pytest
from prometheus_client import generate_latest

from dragoman_contract.metrics import Metric
from dragoman_protocols.served import Need
from dragoman_router import metric_definitions
from dragoman_router.fleet.backend import Backend
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.metrics import MAX_CALLERS, MAX_PAIRS, CharacterCounts, Metrics, shares
from dragoman_router.routing.deployments import Deployment
from dragoman_router.state.redis import StateMetrics

NEEDS = (Need("en", ("de",), ("Hello",)),)


async def test_series_of_a_deployment_that_is_gone_go_with_it() -> None:
    fleet = Fleet(QueueLimits(1, 1, 1), Random(1))
    metrics = Metrics(fleet)
    backends: dict[str, Backend] = {}

    def count(key: str) -> None:
        backends[key].responses.add("native", 200, 0.1)
        metrics.failed(key, "refused")
        metrics.waited(key, 0.1)
        metrics.refused((key,), "no_replica", 503)
        metrics.translated(key, NEEDS, "alice", 7)

    for name in ("demo", "other"):
        backends[f"default/{name}"] = fleet.put(Deployment(f"default/{name}"))
        count(f"default/{name}")
    assert b"default/demo" in generate_latest(metrics.registry)
    fleet.remove("default/demo")
    assert b"default/demo" not in generate_latest(metrics.registry)
    # What was in flight ends later.
    count("default/demo")
    page = generate_latest(metrics.registry)
    assert b"default/demo" not in page
    assert page.count(b'dragoman_router_requests_total{api="native",deployment="default/other"') == 1
    assert page.count(b'dragoman_router_errors_total{code="no_replica",deployment="",status="503"} 1.0') == 1


async def test_an_error_belongs_to_the_first_deployment_that_could_have_answered() -> None:
    fleet = Fleet(QueueLimits(1, 1, 1), Random(1))
    metrics = Metrics(fleet)
    fleet.put(Deployment("default/demo"))
    for candidates in ((), ("default/demo",), ("default/gone", "default/demo"), ("default/gone",)):
        metrics.refused(candidates, "timeout", 504)

    def count(deployment: str) -> float | None:
        labels = {"deployment": deployment, "code": "timeout", "status": "504"}
        return metrics.registry.get_sample_value("dragoman_router_errors_total", labels)

    assert (count("default/demo"), count("")) == (2, 2)


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ((), {("other", "other"): 10}),
        ((Need(None, ("de",)),), {("auto", "de"): 10}),
        ((Need("en", ("de", "fr")),), {("en", "de"): 5, ("en", "fr"): 5}),
        (
            (Need("en", ("de",), ("abc",)), Need("fr", ("de",), ("abcdefg",))),
            {("en", "de"): 3, ("fr", "de"): 7},
        ),
        ((Need("en", ("de", "fr", "ne"), ("a",)),), {("en", "de"): 3, ("en", "fr"): 3, ("en", "ne"): 4}),
    ],
    ids=["none", "open", "files", "two-sources", "remainder"],
)
def test_pairs_share_the_characters_of_a_request(
    needs: tuple[Need, ...], found: dict[tuple[str, str], int]
) -> None:
    assert dict(shares(needs, 10)) == found


def test_pairs_with_labels_of_their_own_are_bounded_and_nothing_is_taken_back() -> None:
    counts = CharacterCounts()
    for number in range(MAX_PAIRS + 5):
        counts.add("default/demo", (Need("en", (f"x{number}",)),), None, 2)
    counts.add("default/demo", NEEDS, None, -100)
    (family,) = counts.collect()
    found = {sample.labels["target"]: sample.value for sample in family.samples}
    assert len(found) == MAX_PAIRS + 1
    assert found["other"] == 10
    assert sum(found.values()) == 2 * (MAX_PAIRS + 5)


async def test_a_router_exports_the_metrics_that_are_defined() -> None:
    metrics = Metrics(Fleet(QueueLimits(1, 1, 1), Random(1)))
    metrics.watch(lambda: 0, lambda: 0, lambda: 0)
    StateMetrics().register(metrics.registry)
    shown = {family.name + "_total" * (family.type == "counter") for family in metrics.registry.collect()}
    defined = [each.name for each in vars(metric_definitions).values() if isinstance(each, Metric)]
    assert sorted(defined) == sorted(shown)


def test_callers_with_tokens_have_a_bounded_number_of_series() -> None:
    counts = CharacterCounts()
    for number in range(MAX_CALLERS + 5):
        counts.add("default/demo", NEEDS, f"oidc/{number}", 2)
        counts.add("default/demo", NEEDS, f"key-{number}", 2)
    (family,) = counts.collect()
    found = {sample.labels["key"]: sample.value for sample in family.samples}
    assert len(found) == MAX_CALLERS + MAX_CALLERS + 5 + 1
    assert found["other"] == 2 * 5
