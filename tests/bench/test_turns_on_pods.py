"""Scripted pods that share a GPU: all requests are answered, and a request that waits for a turn is the slower one."""

import json
from pathlib import Path

import pytest

from dragoman_bench.__main__ import main
from dragoman_bench.errors import BenchError
from dragoman_bench.plan import RunPlan
from dragoman_bench.prompting import COUNTING_TEMPLATE
from dragoman_bench.turns import STORES, Sharing, command_line, measure
from dragoman_service.settings import read_settings

pytestmark = pytest.mark.slow


def plan(directory: Path) -> RunPlan:
    return RunPlan(directory / "model", COUNTING_TEMPLATE, "cuda", 0.8, 2048, None, 60.0)


def test_two_pods_on_one_gpu(tmp_path: Path, redis_server: object) -> None:
    options = ("--scripted", "--pods", "2", "--per-s", "1.5", "--duration-s", "6", "--output", str(tmp_path))
    assert main(["turns", *options]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    figures = found["figures"]
    assert figures["lost"] == 0
    assert figures["requests"] == len(found["shared"]) > 5
    assert {sample["pod"] for sample in found["shared"]} == {0, 1}
    assert figures["wakes"] >= 2
    assert figures["shared_s"]["p99"] > figures["alone_s"]["p50"] > 0


def test_the_pod_understands_the_command_line(tmp_path: Path) -> None:
    command = command_line(plan(tmp_path), 8000, "redis://127.0.0.1:6379/0", None)
    settings = read_settings(command[command.index("serve") + 1 :])
    assert settings.turns_url is not None
    assert (settings.engine, settings.turns_url.get_secret_value()) == ("vllm", "redis://127.0.0.1:6379/0")
    assert (settings.turns_device, settings.gpu_memory_utilization) == (None, 0.8)


async def test_without_a_store_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BenchError, match=f"none of {', '.join(STORES)} on PATH: apt-get install"):
        await measure(plan(tmp_path), Sharing(1, 1.0, 1.0, 9.0), tmp_path, None, print, scripted=True)
