"""The README's first command, as a user runs it."""

import json
import subprocess
import sys

import pytest


@pytest.mark.vllm
@pytest.mark.cluster
@pytest.mark.timeout(620)
def test_the_demo_translates_scales_and_leaves_nothing_behind() -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "dragoman", "demo", "--api", "embedded"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    result = json.loads(demo.stdout.splitlines()[-1])
    assert result["translations"] >= 60
    assert result["exact"] >= 0.95 * result["translations"]
    assert result["api"] == "embedded"
    assert result["replicas_max"] >= 2
    assert result["lost"] == 0
