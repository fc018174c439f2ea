"""The demo model, through the pod that tests share, on texts it never saw."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.demo_pod import DemoPod

MODEL = Path(__file__).parents[2] / "examples" / "demo-model"
TEXTS = 80  # each in five directions
LOWEST = 0.95


def test_held_out_texts_come_back_exactly(demo_pod: DemoPod) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "training.evaluate", "--url", demo_pod.url, "--texts", str(TEXTS), "--json"],
        cwd=MODEL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    shares = json.loads(finished.stdout.strip().splitlines()[-1])
    assert len(shares) == 5
    assert min(shares.values()) >= LOWEST, shares
