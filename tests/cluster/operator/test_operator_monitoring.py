"""Every query of dashboards and alerts finds data in a real Prometheus that scrapes an operator, a router and pods."""

import asyncio
import itertools
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from faults.prometheus import PROMETHEUS, Prometheus
from tests.support.servers import RouterProcess

ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(400),
    pytest.mark.skipif(PROMETHEUS is None, reason="no prometheus on PATH (Debian: apt install prometheus)"),
]

CHART = ROOT / "charts/dragoman"
HELM = Path(sys.executable).parent / "helm"
PAGE = (ROOT / "docs/reference/metrics.md").read_text()
KEY = "the-key-of-a-team"
GPU_ENGINE = {"device": "cuda", "maxNumSeqs": 8, "extraArgs": {"first_token_s": 0.2}}
"""One replica serves the clients of `traffic`, however slow the machine is: the scale-down does not depend on it."""

ABSENT = {
    "dragoman_operator_failures_total": "unexpected errors",
    "dragoman_router_failed_attempts_total": "a replica failed",
    "dragoman_gpu_utilization_ratio": "a GPU with NVML",
    "dragoman_gpu_memory_used_bytes": "the same",
    "vllm:num_preemptions_total": "vLLM; tests/wire/test_serve_vllm.py",
    "dragoman_deployment_condition{type=\"Degraded\",status=\"True\"}": "a degraded object",
    "dragoman_router_requests_total{status=~\"5..\"}": "a failed request",
    "dragoman_router_errors_total{status=~\"5..\",deployment=\"\"}": "the same",
    "dragoman_router_errors_total{status=~\"5..\",deployment!=\"\"}": "the same",
    'dragoman_router_errors_total{deployment="test-': "the router could not answer for a deployment",
    "deployment:dragoman_router_failures:ratio_rate": "a failed request",
}  # fmt: skip
"""What is not there in health and without GPUs, and what it needs; tests/chart/test_alerts.py has alerts on these."""


@pytest.fixture(scope="module")
def cluster(api_kind: str, start_cluster: Any) -> Iterator[Any]:
    """A cluster with GPUs, which cost something."""
    if api_kind != "embedded":
        pytest.skip("metrics do not depend on the API server")
    # Two for replicas, and two for those that still end: a pod that waits for a GPU makes its object Degraded.
    with start_cluster(gpus=4) as started:
        yield started


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    made = Prometheus(tmp_path / "prometheus", [CHART / "files/monitoring/rules.yaml"])
    made.start()
    yield made
    made.kill()


@pytest.fixture
def router(
    cluster: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RouterProcess]:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "team").write_text(KEY)
    made = RouterProcess(tmp_path, f"--namespaces={namespace}", f"--keys-dir={keys}")
    made.wait_until_ready()
    yield made
    made.close()


def dashboards() -> dict[str, dict[str, Any]]:
    """The dashboards that the chart makes, by the names of their files."""
    command = [str(HELM), "template", "release", str(CHART), "--set", "monitoring.enabled=true"]
    command += ["--show-only", "templates/monitoring/dashboards.yaml"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = (item["data"] for item in yaml.safe_load_all(rendered))
    return {name: json.loads(text) for data in found for name, text in data.items()}


def panel_queries(namespace: str) -> Iterator[str]:
    """The queries of all panels, with their variables filled in."""
    values = {
        "$namespace": namespace,
        "$name": "demo",
        "$price": "2",
        "$__rate_interval": "1m",
        "$__range": "5m",
    }
    for board in dashboards().values():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                query = target["expr"]
                for name, value in values.items():
                    query = query.replace(name, value)
                assert "$" not in query, f"{panel['title']}: {query}"
                yield query


def alert_selectors() -> Iterator[str]:
    """The series that rules read; their thresholds are not reached in health."""
    for group in yaml.safe_load((CHART / "files/monitoring/rules.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            if "record" in rule:
                yield rule["record"]
            yield from re.findall(r"(?:dragoman_|vllm:|deployment:)[\w:]+(?:\{[^}]*\})?", rule["expr"])


def absent(query: str) -> bool:
    """Whether a query is for what is not there in health."""
    return any(query.startswith(name) or f"({name}" in query for name in ABSENT)


def documented_query() -> str:
    """The cost of a million characters, as docs/how-to/install.md has it."""
    page = (ROOT / "docs/how-to/install.md").read_text()
    return "1e6" + page.partition("\n```\n1e6")[2].partition("```")[0].rstrip()


async def keep_scraping(world: Any, prometheus: Prometheus, router: RouterProcess) -> None:
    """What the PodMonitors of the chart do."""
    own = {
        f"127.0.0.1:{world.operators[0].metrics_port}": {"namespace": "dragoman-system", "pod": "operator"},
        f"127.0.0.1:{router.admin_port}": {"namespace": "dragoman-system", "pod": "router"},
    }
    while True:
        with suppress(Exception):
            pods = {
                f"{pod['status']['podIP']}:8000": {
                    "namespace": world.namespace,
                    "pod": pod["metadata"]["name"],
                    "deployment": "demo",
                }
                for pod in await world.pods()
                if pod.get("status", {}).get("podIP")
            }
            await asyncio.to_thread(prometheus.scrape_only, own | pods)
        await asyncio.sleep(0.3)


@asynccontextmanager
async def traffic(router: RouterProcess) -> AsyncIterator[None]:
    """Translations, and requests that are refused, meanwhile."""
    numbers = itertools.count()

    async def send(key: str, target: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=router.url, headers=headers, timeout=30) as http:
            while True:
                text = f"Good morning, number {next(numbers)}."
                await http.post("/translate", json={"text": text, "source_lang": "en", "target_lang": target})
                await asyncio.sleep(0.1)

    callers = [(KEY, "de"), (KEY, "fr"), ("another-key", "de"), (KEY, "nl")]
    tasks = [asyncio.create_task(send(*caller)) for caller in callers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError)
            for end in await asyncio.gather(*tasks, return_exceptions=True)
        )


async def values(http: httpx.AsyncClient, query: str) -> list[float]:
    """The numbers that a query returns now.

    Raises:
        AssertionError: Prometheus does not understand it.
    """
    answer = (await http.post("/api/v1/query", data={"query": query})).json()
    assert answer["status"] == "success", f"{query}: {answer}"
    numbers = [float(each["value"][1]) for each in answer["data"]["result"]]
    return [number for number in numbers if number == number]


async def test_every_query_returns_data(world: Any, prometheus: Prometheus, router: RouterProcess) -> None:
    world.operator(**{"autoscaling-interval-s": 2})
    scaling = {"minReplicas": 1, "maxReplicas": 2, "scaleDownStabilizationWindow": "5s"}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    await world.create(engine=GPU_ENGINE, autoscaling=scaling, resources=limits, replicas=1)
    scraping = asyncio.create_task(keep_scraping(world, prometheus, router))
    async with httpx.AsyncClient(base_url=prometheus.url, timeout=10) as http:
        try:
            await world.until_complete()
            async with traffic(router):
                await world.scale(2)
                await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
                await world.until(world.status, lambda status: status.get("desiredReplicas") == 1)
                wanted = {*panel_queries(world.namespace), *alert_selectors(), documented_query()}
                missing = {query for query in wanted if not absent(query)}
                assert len(missing) > 60
                end_s = asyncio.get_running_loop().time() + 120
                while missing:
                    found = {query for query in missing if await values(http, query)}
                    missing -= found
                    assert asyncio.get_running_loop().time() < end_s, "without data:\n" + "\n".join(missing)
                    await asyncio.sleep(0.5)
            unexpected = {query for query in wanted if absent(query) and await values(http, query)}
            assert not unexpected, "not absent: take them from the list"
            (cost,) = await values(http, documented_query())
            assert 0 < cost < float("inf")
            raised = (await http.get("/api/v1/alerts")).json()["data"]["alerts"]
            assert [alert for alert in raised if alert["state"] == "firing"] == []
        finally:
            scraping.cancel()


@pytest.mark.parametrize(
    "name", [name for name in ABSENT if "{" not in name and name.startswith("dragoman_")]
)
def test_what_is_absent_is_documented(name: str) -> None:
    assert name in PAGE
