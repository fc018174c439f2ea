"""The ladder's wiring, over arms that are small servers instead of engines."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman_bench.catalogue import Arm
from dragoman_bench.fleet import Bench
from dragoman_bench.plan import RunPlan
from dragoman_bench.prompting import Prompting
from dragoman_bench.results import RESULTS, ArmResults
from dragoman_bench.runs import climb, compare, turned
from dragoman_tune.closed_loop import Pace
from dragoman_tune.server import session_members

PROGRAM = """
import asyncio, sys
from aiohttp import web

port, dies_after = int(sys.argv[1]), int(sys.argv[2])
answered = 0

async def translate(request):
    global answered
    await request.json()
    await asyncio.sleep(0.005)
    answered += 1
    if dies_after and answered > dies_after:
        sys.stderr.write("EngineDeadError: the engine is gone\\n")
        sys.stderr.flush()
        import os
        os._exit(3)
    return web.json_response({"translation": "x"}, headers={"Server-Timing": "queue;dur=2.5, compute;dur=5"})

async def ready(_):
    return web.json_response({})

app = web.Application()
app.add_routes([web.post("/translate", translate), web.get("/readyz", ready)])
web.run_app(app, host="127.0.0.1", port=port, print=None)
"""


def stub(name: str, dies_after: int = 0, program: str = PROGRAM) -> Arm:
    return Arm(
        name,
        name,
        lambda _, port: [sys.executable, "-c", program, str(port), str(dies_after)],
        metrics=False,
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}))
    plan = RunPlan(tmp_path, "{text}", "cpu", 0.3, 1024, requests, 60.0)
    results = ArmResults(tmp_path / "out", {"kind": "ladder"})
    points, pace = [("real", 2), ("real", 4)], Pace(0.3, 2.0, 2.0)
    return Bench(plan, points, pace, 7, Prompting(None, "{text}", 1024), results, None, lambda _: None)


def kept(bench: Bench) -> list[dict[str, Any]]:
    document = json.loads((bench.results.directory / RESULTS).read_text())
    return list(document["arms"])


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
async def test_every_arm_has_all_its_points(bench: Bench, together: bool) -> None:
    await climb([stub("a"), stub("b")], bench, together=together)
    for entry in kept(bench):
        assert entry["failed"] is None
        assert entry["start_s"] > 0
        assert [point["in_flight"] for point in entry["points"]] == [2, 4]
        for point in entry["points"]:
            assert point["answered"] > 0
            assert point["steady"]
            assert point["p50_s"] >= 0.005
            assert point["queue_s"] == pytest.approx(0.0025)
            assert point["compute_s"] == pytest.approx(0.005)
            assert point["host_memory_bytes"] > 0
        assert sys.executable not in entry["command"]


@pytest.mark.slow
async def test_an_arm_that_does_not_start_is_written_and_the_next_is_measured(bench: Bench) -> None:
    await climb([stub("never", program="raise ValueError('no GPU')"), stub("lives")], bench, together=False)
    never, lives = kept(bench)
    assert "ValueError: no GPU" in never["failed"]
    assert len(lives["points"]) == 2


@pytest.mark.slow
async def test_a_server_that_ends_under_load_is_written_with_its_reason(bench: Bench) -> None:
    await climb([stub("dies", dies_after=3), stub("lives")], bench, together=False)
    dies, lives = kept(bench)
    assert dies["points"] == []
    assert "ended with status 3: EngineDeadError: the engine is gone" in dies["failed"]
    assert len(lives["points"]) == 2


@pytest.mark.slow
async def test_repetitions_are_interleaved(bench: Bench) -> None:
    lines: list[str] = []
    await compare([stub("a"), stub("b")], replace(bench, say=lines.append), repetitions=2)
    order = [line.partition(":")[0] for line in lines if "in flight" in line]
    assert order == ["a", "b", "a", "b", "b", "a", "b", "a"]
    assert [point["seed"] for point in kept(bench)[0]["points"]] == [7, 7, 8, 8]


@pytest.mark.slow
async def test_stopping_ends_the_servers(bench: Bench) -> None:
    patient = replace(bench, points=[("real", 2)], pace=Pace(60, 60, 60))
    others = set(_python_children())
    task = asyncio.create_task(climb([stub("a")], patient, together=False))
    async with asyncio.timeout(30):
        while not kept(bench) or kept(bench)[0]["start_s"] is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    pids = [pid for pid in set(_python_children()) - others if session_members(pid)]
    assert pids
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not any(session_members(pid) for pid in pids)


def _python_children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for one in tasks for pid in one.read_text().split()]


def test_another_arm_goes_first_each_time() -> None:
    arms = [stub("a"), stub("b"), stub("c")]
    assert [arm.name for arm in turned(arms, 4)] == ["b", "c", "a"]
