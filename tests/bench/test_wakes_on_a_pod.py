"""Rounds with a scripted pod: that every value is there, and that a request to a sleeping pod is the slower one."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_bench.__main__ import main
from dragoman_bench.plan import RunPlan
from dragoman_bench.prompting import COUNTING_TEMPLATE
from dragoman_bench.wakes import SCRIPTED_WAKE_S, Rounds, command_line
from dragoman_service.settings import read_settings

pytestmark = pytest.mark.slow


def measured(output: Path, *options: str) -> tuple[int, dict[str, Any]]:
    status = main(["wakes", "--scripted", "--sleep-after-s", "0.3", "--output", str(output), *options])
    return status, dict(json.loads((output / "results.json").read_text()))


def test_rounds_with_a_scripted_pod(tmp_path: Path) -> None:
    status, found = measured(tmp_path, "--rounds", "3", "--limit-s", "60")
    assert (status, found["failed"]) == (0, None)
    figures = found["figures"]
    assert (figures["rounds"], figures["lost"], figures["changed"]) == (3, 0, 0)
    for name in ("asleep_s", "awake_s", "wake_s", "to_sleep_s"):
        assert len(found["samples"][name]) == 3
        assert 0 < figures[name]["p50"] <= figures[name]["p99"] <= figures[name]["max"]
    assert min(found["samples"]["wake_s"]) > 0.9 * SCRIPTED_WAKE_S
    assert min(found["samples"]["asleep_s"]) > max(found["samples"]["awake_s"])
    assert figures["host_asleep_bytes"] > 10**7


def test_what_was_measured_is_written_when_the_time_is_up(tmp_path: Path) -> None:
    status, found = measured(tmp_path, "--rounds", "500", "--limit-s", "15")
    assert status == 1
    assert found["failed"] == f"the time was up after {found['figures']['rounds']} rounds"
    assert found["figures"]["rounds"] >= 1


def test_the_pod_understands_the_command_line(tmp_path: Path) -> None:
    plan = RunPlan(tmp_path / "model", COUNTING_TEMPLATE, "cuda", 0.9, 2048, None, 60.0)
    command = command_line(plan, 8000, Rounds(50, 1.0, 60.0), scripted=False)
    settings = read_settings(command[command.index("serve") + 1 :])
    assert (settings.engine, settings.device, settings.sleep_after_s) == ("vllm", "cuda", 1.0)
    assert (settings.gpu_memory_utilization, settings.max_num_seqs) == (0.9, 64)
