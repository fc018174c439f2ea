"""`dragoman simulate --from-deployment` with an object of a cluster and the metrics of its pod."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_simulate.__main__ import main

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]

ENGINE = {"device": "cpu", "maxNumSeqs": 4, "extraArgs": {"first_token_s": 0.02}}


async def test_other_sizes_of_a_deployment_are_answered_from_what_its_pod_has_measured(
    world: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.operator(**{"autoscaling-interval-s": 1})
    await world.create(
        engine=ENGINE,
        autoscaling={"minReplicas": 1, "maxReplicas": 2, "targetQueueTime": "30s", "targetConcurrency": 8},
    )
    await world.until_condition("Available", "True")
    (pod,) = await world.pods()
    load = world.load(f"http://{pod['status']['podIP']}:8000")
    async with load.kept_up(4):
        await load.more(60)
    trace, speeds = tmp_path / "trace.jsonl", tmp_path / "speeds.json"
    lines = ({"time": second, "count": 60, "source_tokens": 9, "target_tokens": 10} for second in range(60))
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = [
        *("--from-deployment", f"{world.namespace}/demo", "--kubeconfig", str(world.kubeconfig)),
        *("--trace", str(trace), "--output", str(speeds)),
    ]
    assert await asyncio.to_thread(main, arguments) == 0
    printed = capsys.readouterr().out
    assert "1 replica of 4 sequences" in printed
    for size in ("as it is", "1 replica, not autoscaled", "maxNumSeqs 2", "maxNumSeqs 8", "start-up"):
        assert f"| {size}" in printed
    assert "wait over 30 s" in printed
    table = json.loads(speeds.read_text())
    assert max(row["running"] for row in table["rows"]) <= 4
    at_full = max(table["rows"], key=lambda row: row["running"])
    tokens = 10
    assert at_full["ms_per_request"] + tokens * at_full["ms_per_token"] >= 20
