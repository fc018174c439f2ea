"""A pod with vLLM, compiled on the CPU, starts with what an earlier one has compiled."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.demo_pod import LANGUAGES, MODEL
from tests.support.servers import VLLM_START_S, PodProcess

from dragoman_bench.starts.relay import Relay

pytestmark = [pytest.mark.vllm, pytest.mark.vllm_start, pytest.mark.timeout(2 * VLLM_START_S)]

SECRET = "a secret of this deployment, 32 bytes or more"
COMPILED = "vllm/torch_compile_cache"


@pytest.fixture
def relay() -> Iterator[Relay]:
    made = Relay()
    yield made
    made.close()


def kernels(cache: Path) -> dict[str, str]:
    """Compiled libraries, by their path, with their checksums."""
    return {
        file.relative_to(cache).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (cache / COMPILED).rglob("*.so")
    }


def test_no_kernel_is_compiled_that_a_sibling_has(
    start_pod: Callable[..., PodProcess], relay: Relay, tmp_path: Path
) -> None:
    """The pods have the cache at the same path, as in containers: it is part of compiled code."""
    cache = tmp_path / "cache"
    flags = (
        *("--model", str(MODEL), "--device", "cpu", "--max-num-seqs", "4", "--max-model-len", "512"),
        *("--languages", json.dumps(LANGUAGES), "--engine-args", json.dumps({"enforce_eager": False})),
        *("--cache-dir", str(cache), "--start-cache-url", relay.url, "--start-cache-secret", SECRET),
    )
    first = start_pod(*flags)
    assert first.wait_for("/startupz", deadline_s=VLLM_START_S)["start_cache"] == "mismatch"
    relay.archive = relay.read_from(first.url)
    compiled = kernels(cache)
    assert compiled
    assert first.end() == 0
    shutil.rmtree(cache)

    second = start_pod(*flags)
    assert second.wait_for("/startupz", deadline_s=VLLM_START_S)["start_cache"] == "taken"
    assert second.translate("The cat sleeps.").status_code == 200
    written = [os.stat(cache / path).st_mtime for path in kernels(cache)]
    taken = max((cache / "vllm/start-cache").iterdir(), key=os.path.getmtime).stat().st_mtime
    assert kernels(cache) == compiled
    assert max(written) <= taken
