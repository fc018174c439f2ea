"""maxNumSeqs follows what the pods measure: recommended, tried on one replica, applied or turned down."""

from __future__ import annotations

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
CROWDED = {**PACE, "slowdown_ratio": 0.3, "slowdown_power": 2.0}
"""Two at once write 1.5 times what one writes, eight half of it."""


def engine(max_num_seqs: int, script: dict[str, Any]) -> dict[str, Any]:
    return {"device": "cpu", "maxNumSeqs": max_num_seqs, "extraArgs": script}


async def sizes(world: Any) -> list[int]:
    """The sizes of the pods that stay, and of those alone that are ready."""
    return sorted(size_of(pod) for pod in await world.pods())


async def tuning(world: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await world.status()).get("tuning") or {}
    return found


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
    assert (found["tuning"]["mode"], found["tuning"]["maxNumSeqs"]) == ("Recommend", 2)
    message = await world.until_condition("Tuning", "False", "RecommendationProvided")
    assert message == recommendation["reason"]
    assert await sizes(world) == [2]
    assert (await world.get(DEPLOYMENT))["metadata"]["generation"] == generation
    await world.edit(tuning={"mode": "Off"})
    await world.until(world.status, lambda status: "recommendation" not in status and "tuning" not in status)
    assert "Tuning" not in await world.conditions()
    assert load.failed == []


async def test_a_better_size_goes_from_one_replica_to_all_across_a_restart(world):
    first = world.operator("first", **FAST)
    await world.create(engine=engine(2, PACE), replicas=2, tuning={"mode": "Apply", "window": WINDOW})
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    load = world.load((await world.status())["url"])
    async with load.kept_up(16):
        await world.until(
            lambda: tuning(world),
            lambda found: found.get("trial", {}).get("result") == "Comparing",
            timeout_s=LONG_S,
        )
        trial = (await tuning(world))["trial"]
        assert trial["from"] == 2
        assert trial["to"] > 2
        # One more replica gets the new size and the others keep theirs: sizes are rolled out stepwise.
        assert await sizes(world) == [2, 2, trial["to"]]
        assert (await world.conditions())["Tuning"]["reason"] == "TrialComparing"
        # Events follow the status, so a kill between the two would lose this one.
        await world.until(world.events, lambda found: "TrialComparing" in {reason for _, reason, _ in found})
        first.kill()
        world.operator("second", **FAST)
        found = await world.until(
            lambda: tuning(world), lambda found: bool(found.get("trials")), timeout_s=LONG_S
        )
        (ended,) = found["trials"]
        assert (ended["to"], ended["result"]) == (trial["to"], "Applied"), ended
        assert found["maxNumSeqs"] == trial["to"]
        await world.until(lambda: sizes(world), lambda found: found == [trial["to"]] * 2, timeout_s=60)
        await world.until(world.status, lambda status: status["readyReplicas"] == status["replicas"] == 2)
    assert load.failed == []
    assert "minReadySeconds" not in (await world.get(DEPLOYMENT))["spec"] or (
        (await world.get(DEPLOYMENT))["spec"]["minReadySeconds"] == 0
    )
    await world.until(
        world.events,
        lambda found: {"TrialStarting", "TrialApplied"} <= {reason for _, reason, _ in found},
    )
    # The spec is its author's: Off goes back to it.
    await world.edit(tuning={"mode": "Off"})
    await world.until(lambda: sizes(world), lambda found: found == [2, 2], timeout_s=60)


async def test_a_worse_size_is_reverted_and_stored(world):
    world.operator(**FAST)
    # Its crowded pod needs a while for what it has.
    rollout = {"drainTimeout": "30s"}
    tuned = {"mode": "Apply", "window": WINDOW}
    await world.create(engine=engine(2, CROWDED), replicas=2, tuning=tuned, rollout=rollout)
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    load = world.load((await world.status())["url"])
    async with load.kept_up(16):
        found = await world.until(
            lambda: tuning(world), lambda found: bool(found.get("trials")), timeout_s=LONG_S
        )
        (ended,) = found["trials"]
        assert (ended["from"], ended["result"]) == (2, "Rejected"), ended
        assert "throughput" in ended["reason"]
        assert found["maxNumSeqs"] == 2
        await world.until(lambda: sizes(world), lambda found: found == [2, 2])
        await world.until_complete()
        # The figures still ask for it, and it is not tried again.
        since = (await world.status())["recommendation"]["measurements"]["samples"]
        await world.until(
            world.status,
            lambda status: status["recommendation"]["measurements"]["samples"] != since,
            timeout_s=LONG_S,
        )
        assert len((await tuning(world))["trials"]) == 1
        assert await sizes(world) == [2, 2]
    assert load.failed == []
    message = await world.until_condition("Tuning", "False", "TrialRejected")
    assert "instead of 2" in message


async def test_one_replica_is_compared_with_its_own_past(world):
    """At equal requests in flight: the engine takes long enough for the callers' own time not to change them."""
    world.operator(**FAST)
    await world.create(engine=engine(2, {"token_s": 0.04}), tuning={"mode": "Apply", "window": WINDOW})
    await world.until_complete()
    load = world.load((await world.status())["url"])
    async with load.kept_up(8):
        found = await world.until(
            lambda: tuning(world), lambda found: bool(found.get("trials")), timeout_s=LONG_S
        )
        (ended,) = found["trials"]
        assert (ended["from"], ended["result"]) == (2, "Applied"), ended["reason"]
        assert await sizes(world) == [ended["to"]]
    assert load.failed == []


async def test_a_size_that_does_not_start_goes_back(world):
    """The engine refuses more than four sequences; that is not reported as a fault of the spec."""
    world.operator(**FAST)
    await world.create(
        engine=engine(2, {**PACE, "most_seqs": 4}), replicas=2, tuning={"mode": "Apply", "window": WINDOW}
    )
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    load = world.load((await world.status())["url"])
    async with load.kept_up(16):
        found = await world.until(
            lambda: tuning(world), lambda found: bool(found.get("trials")), timeout_s=LONG_S
        )
        (ended,) = found["trials"]
        assert ended["result"] == "Rejected"
        assert "does not start" in ended["reason"]
        await world.until(lambda: sizes(world), lambda found: found == [2, 2])
        await world.until_condition("Degraded", "False")
    assert load.failed == []
