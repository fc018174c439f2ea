"""A pod's own download, from a hub on loopback; in a process, since huggingface_hub reads its environment once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hub import Hub

pytest.importorskip("huggingface_hub", reason="comes with vLLM")
pytestmark = pytest.mark.slow

FILES = {"config.json": b"{}", "model.safetensors": b"x" * 3_000_000, "pytorch_model.bin": b"y" * 3_000_000}
FETCH = """
from dragoman_service.engine.vllm import weights
from dragoman_service.engine.vllm.start_report import failure
from dragoman_service.engine.vllm.failures import reason
weights.POLL_S = 0.001
shares = []
try:
    print(weights.fetch("org/open", None, False, shares.append))
except Exception as error:
    print(reason(failure(error), "org/open"))
else:
    assert shares[0] is None and all(0 <= share <= 1 for share in shares if share is not None), shares
"""


def fetch(endpoint: str, cache: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment = kept | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FETCH], env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model_is_fetched_and_found_again_offline(tmp_path: Path) -> None:
    with Hub(FILES) as hub:
        directory = Path(fetch(hub.url, tmp_path))
    assert sorted(file.name for file in directory.iterdir()) == ["config.json", "model.safetensors"]
    assert (directory / "model.safetensors").stat().st_size == 3_000_000
    assert Path(fetch("http://127.0.0.1:9", tmp_path)) == directory


def test_an_unreachable_hub_and_an_empty_cache(tmp_path: Path) -> None:
    assert "Hugging Face cannot be reached" in fetch("http://127.0.0.1:9", tmp_path)
