"""A short ladder over real engines on a CPU: that every arm answers and every value is there, not how fast."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.vllm_start, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
ARMS = ("b0-queues", "b2-static-batch", "final")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ladder")
    sentences = [line.split("\t") for line in (ROOT / "examples/sentences.txt").read_text().splitlines()[1:]]
    requests = directory / "requests.jsonl"
    rows = ({"source_lang": s, "target_lang": t, "text": text} for s, t, text, _ in sentences)
    requests.write_text("\n".join(map(json.dumps, rows)))
    command = [
        *(sys.executable, "-m", "dragoman", "bench", "ladder", "--device", "cpu", "--arms", ",".join(ARMS)),
        *("--model", str(ROOT / "examples/demo-model"), "--requests", str(requests)),
        *("--max-model-len", "1024", "--in-flight", "4", "--window", "4", "--ramp", "20"),
        *("--output", str(directory / "out")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=580, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "out"


@pytest.fixture(scope="module")
def document(output: Path) -> dict[str, Any]:
    return dict(json.loads((output / "results.json").read_text()))


def test_every_arm_answers_and_none_fails(document: dict[str, Any]) -> None:
    assert [entry["arm"] for entry in document["arms"]] == list(ARMS)
    for entry in document["arms"]:
        assert entry["failed"] is None
        assert entry["start_s"] > 0
        (point,) = entry["points"]
        assert point["answered"] > 0
        assert not point["errors"]
        assert 0 < point["p50_s"] <= point["p95_s"] <= point["p99_s"]
        assert point["compute_s"] > 0
        assert point["queue_s"] >= 0
        assert point["host_memory_bytes"] > 10**8


def test_the_pod_has_the_time_of_its_first_token_and_the_queues_have_not(document: dict[str, Any]) -> None:
    points = {entry["arm"]: entry["points"][0] for entry in document["arms"]}
    assert points["final"]["first_token_s"] > 0
    assert points["final"]["per_output_token_s"] > 0
    assert points["b0-queues"]["first_token_s"] is None


def test_a_queue_is_where_the_baselines_time_goes(document: dict[str, Any]) -> None:
    baseline = document["arms"][0]["points"][0]
    # Four in flight, one at a time: three of four parts of an answer's time are waiting, at any speed.
    assert baseline["queue_s"] > baseline["compute_s"]


def test_table_and_machine_are_there(output: Path, document: dict[str, Any]) -> None:
    table = (output / "table.md").read_text()
    assert all(entry["title"] in table for entry in document["arms"])
    assert document["machine"]["versions"]["torch"]
    assert document["machine"]["gpu"] is None
