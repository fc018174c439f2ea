"""A deployment that is gone takes its series with it."""

from __future__ import annotations

from random import Random

from prometheus_client import generate_latest

from dragoman_router.fleet.backend import Backend
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.metrics import Metrics
from dragoman_router.routing.deployments import Deployment


async def test_series_of_a_deployment_that_is_gone_go_with_it() -> None:
    fleet = Fleet(QueueLimits(1, 1, 1), Random(1))
    metrics = Metrics(fleet, dict)
    backends: dict[str, Backend] = {}

    def count(key: str) -> None:
        backends[key].responses.add("native", 200, 0.1)
        metrics.failed(key, "refused")
        metrics.waited(key, 0.1)

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
