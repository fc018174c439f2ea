"""A maxNumSeqs that fits what the pods measure is recommended."""

from typing import Any

import pytest

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_operator.observed.snapshot import size_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FAST = {"autoscaling-interval-s": 1}
WINDOW = "10s"
LONG_S = 120.0
PACE = {"token_s": 0.01}
"""A request of the load below takes about a tenth of a second alone."""


def engine(max_num_seqs: int, script: dict[str, Any]) -> dict[str, Any]:
    return {"device": "cpu", "maxNumSeqs": max_num_seqs, "extraArgs": script}


async def sizes(world: Any) -> list[int]:
    """The sizes of the pods that stay, and of those alone that are ready."""
    return sorted(size_of(pod) for pod in await world.pods())


async def test_recommend_reports_what_fits_and_changes_nothing(world):
    world.operator(**FAST)
    await world.create(engine=engine(2, PACE), tuning={"mode": "Recommend", "window": WINDOW})
    await world.until_complete()
    load = world.load((await world.status())["url"])
    generation = (await world.get(DEPLOYMENT))["metadata"]["generation"]
    async with load.kept_up(8):
        found = await world.until(
            world.status,
            lambda status: status.get("recommendation", {}).get("maxNumSeqs", 2) != 2,
            timeout_s=LONG_S,
        )
    recommendation, evidence = found["recommendation"], found["recommendation"]["measurements"]
    assert recommendation["maxNumSeqs"] in (8, 16)
    assert f"{recommendation['maxNumSeqs']} instead of 2" in recommendation["reason"]
    assert 6 <= evidence["concurrencyP95"] <= 9
    assert 0.5 <= evidence["queuedRequestRatio"] <= 0.9
    assert evidence["queueTimeSeconds"] > 0
    assert evidence["requests"] >= 100
    assert evidence["samples"] >= 5
    assert evidence["timePerOutputTokenSeconds"] > 0
    # The scripted engine counts no preemptions: that is missing, and not zero.
    assert "preemptionsPerRequest" not in evidence
    assert found["tuning"]["mode"] == "Recommend"
    message = await world.until_condition("Tuning", "True", "RecommendationProvided")
    assert message == recommendation["reason"]
    assert await sizes(world) == [2]
    assert (await world.get(DEPLOYMENT))["metadata"]["generation"] == generation
    await world.edit(tuning={"mode": "Off"})
    await world.until(world.status, lambda status: "recommendation" not in status and "tuning" not in status)
    assert "Tuning" not in await world.conditions()
    assert load.failed == []
