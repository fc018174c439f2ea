"""The router's fleet view in Chromium, while the operator scales a deployment under a burst."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import ARGUMENTS, CHROMIUM, NEEDED
from tests.support.servers import RouterProcess

playwright = pytest.importorskip("playwright.async_api", reason="requirements/test.txt has it")
expect = playwright.expect
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), NEEDED]

SLOW = {"device": "cpu", "maxNumSeqs": 2, "extraArgs": {"first_token_s": 1.0}}
"""Two requests at once, each a second long."""
SCALING = {"minReplicas": 1, "maxReplicas": 2, "scaleDownStabilizationWindow": "5s"}
DEADLINE_MS = 90_000


@pytest.fixture
def start_router(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A router of a namespace, with the right to read it."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    routers: list[RouterProcess] = []

    def start(namespace: str) -> str:
        routers.append(RouterProcess(tmp_path, f"--namespaces={namespace}"))
        routers[-1].wait_until_ready()
        return routers[-1].url

    yield start
    for router in routers:
        router.close()


@pytest.fixture
async def page() -> AsyncIterator[Any]:
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield await browser.new_page()
        await browser.close()


async def test_a_burst_is_seen_to_scale_a_deployment_with_the_reason(
    world: Any, start_router: Any, page: Any
) -> None:
    world.operator(**{"autoscaling-interval-s": 1})
    await world.create(engine=SLOW, autoscaling=SCALING)
    await world.until_condition("Available", "True")
    url = await asyncio.to_thread(start_router, world.namespace)
    await page.goto(f"{url}/page/fleet.html")
    card = page.get_by_role("region", name=f"{world.namespace}/demo", exact=True)

    def tile(title: str) -> Any:
        return card.locator(".tile", has_text=title)

    ready = tile("Replicas ready")
    await expect(ready.locator(".value")).to_have_text("1", timeout=DEADLINE_MS)
    await expect(ready.locator(".note")).to_have_text("of 1 wanted")
    load = world.load(url)
    async with load.kept_up(12):
        await expect(ready.locator(".note")).to_have_text("of 2 wanted", timeout=DEADLINE_MS)
        await expect(tile("Queue").locator(".value")).not_to_have_text("0", timeout=DEADLINE_MS)
        await expect(ready.locator(".value")).to_have_text("2", timeout=DEADLINE_MS)
        await expect(tile("Duration, p95").locator(".value")).to_have_text(re.compile(r"^\d.* s$"))
    change = card.get_by_role("listitem").filter(has_text="1 → 2")
    await expect(change).to_contain_text(re.compile(r"(Load|Backlog): \d+ replicas: .*request"))
    assert load.failed == []
    # Both lines of the chart have the step.
    for line in ("first", "second"):
        assert re.search(r"V0(H|$)", await ready.locator(f"path.{line}").get_attribute("d"))
