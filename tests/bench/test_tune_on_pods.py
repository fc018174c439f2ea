"""The tuner over real pods with a scripted engine: a sweep, an interruption, an SLO that no setting keeps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.timeout(300)

# Slow enough that it is the engine that limits, on however busy a machine.
SCRIPT = json.dumps({"token_s": 0.02, "slowdown_ratio": 0.05})


def tune(
    output: Path, slo_s: str = "5", in_flight: str = "4", script: str = SCRIPT
) -> subprocess.CompletedProcess[str]:
    requests = output.parent / "requests.jsonl"
    # Equal texts in flight would be one to the engine.
    texts = [f"a b c d e f g {number}" for number in range(100, 164)]
    lines = [json.dumps({"text": text, "source_lang": "en", "target_lang": "de"}) for text in texts]
    requests.write_text("\n".join(lines))
    command = [sys.executable, "-m", "dragoman", "tune", "--model", "org/model", "--requests", str(requests)]
    command += ["--slo-p95", slo_s, "--in-flight", in_flight, "--window", "1.5", "--ramp", "5"]
    command += ["--output", str(output), "--", "--engine", "scripted", "--engine-args", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def test_a_sweep_ends_with_a_patch_and_goes_on_where_it_was(tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = tune(output)
    assert done.returncode == 0, done.stdout + done.stderr
    assert yaml.safe_load((output / "patch.yaml").read_text())["spec"]["engine"]["maxNumSeqs"] == 4
    assert "← recommended" in (output / "table.md").read_text()
    trials = (output / "trials.jsonl").read_text().splitlines()
    # The last two as if the sweep had been stopped before them.
    (output / "trials.jsonl").write_text("\n".join(trials[:-2]) + "\n")
    again = tune(output)
    assert f"going on after {len(trials) - 3} trials" in again.stdout
    assert again.returncode == 0
    settings = [
        json.dumps(json.loads(line)["setting"])
        for line in (output / "trials.jsonl").read_text().splitlines()
        if "setting" in line
    ]
    assert len(settings) == len(set(settings)) > len(trials) - 3


def test_where_no_setting_keeps_the_slo_none_is_recommended(tmp_path: Path) -> None:
    done = tune(tmp_path / "out", slo_s="0.001", in_flight="2")
    assert done.returncode == 1
    assert "no setting keeps p95 within 0.001 s" in done.stdout
    assert not (tmp_path / "out" / "patch.yaml").exists()


def test_a_model_that_does_not_start_ends_the_sweep_with_its_reason(tmp_path: Path) -> None:
    done = tune(tmp_path / "out", in_flight="2", script='{"fail_load": "not enough GPU memory"}')
    assert "not enough GPU memory" in done.stdout
    assert done.returncode == 1
