"""Seconds until a pod is ready: with nothing in its caches, and with what the pod before it left there.

    python bench/start/cold_and_warm.py [--rounds 2] [--shape qwen3-1.7b] [--device cuda] [--json FILE]

A start with an empty `--cache-dir`, and two more with what it left, in each round; random weights, so that nothing is
fetched. The page cache stays as it is: weights and libraries are read from memory in all but the first start.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.gpu import GPU
from dragoman_bench.machine import machine
from dragoman_bench.prompting import COUNTING_TEMPLATE
from dragoman_tune.server import free_port

POLL_S = 0.1
END_S = 60


def start(model: Path, cache: Path, device: str) -> dict[str, Any]:
    """Start a pod and end it once it is ready.

    Returns:
        Seconds until then (`ready_s`), and when each phase began (`phases`).

    Raises:
        RuntimeError: It ended before; its last lines say why.
    """
    port = free_port()
    flags = ["--host", "127.0.0.1", "--port", str(port), "--model", str(model), "--device", device]
    flags += ["--prompt-family", "custom", "--prompt-template", COUNTING_TEMPLATE, "--max-model-len", "2048"]
    flags += ["--max-num-seqs", "512", "--max-num-batched-tokens", "8192", "--cache-dir", str(cache)]
    if device == "cuda":
        flags += ["--gpu-memory-utilization", "0.3"]
    phases: dict[str, float] = {}
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as log:
        pod = subprocess.Popen([sys.executable, "-m", "dragoman", "serve", *flags], stdout=log, stderr=log)
        try:
            while "ready" not in phases:
                if pod.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(log.read()[-1000:].decode(errors="replace"))
                if phase := _phase(port):
                    phases.setdefault(phase, round(time.monotonic() - began_s, 1))
                time.sleep(POLL_S)
        finally:
            pod.terminate()
            pod.wait(END_S)
    return {"ready_s": phases["ready"], "phases": phases}


def _phase(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/startupz", timeout=2) as answer:
            return str(json.load(answer)["phase"])
    except urllib.error.HTTPError as starting:
        return str(json.load(starting)["phase"])
    except OSError:
        return None


def main() -> int:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--shape", choices=list(SHAPES), default="qwen3-1.7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tokenizer", type=Path, default=Path("examples/demo-model"))
    parser.add_argument("--json", type=Path, help="write every figure here")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="start-") as temporary:
        model = Path(temporary) / "model"
        write_checkpoint(model, SHAPES[arguments.shape], arguments.tokenizer, arguments.device)
        for number in range(arguments.rounds):
            for caches in ("cold", "warm", "warm"):
                row = start(model, Path(temporary) / f"cache-{number}", arguments.device)
                rows.append({"round": number, "caches": caches, **row})
                print(json.dumps(rows[-1]), flush=True)
    cold, warm = (
        statistics.median(row["ready_s"] for row in rows if row["caches"] == caches)
        for caches in ("cold", "warm")
    )
    print(f"cold {cold:.1f} s, warm {warm:.1f} s: {warm / cold:.2f}")
    if arguments.json:
        head = {"machine": machine(GPU() if arguments.device == "cuda" else None), "shape": arguments.shape}
        arguments.json.write_text(json.dumps({**head, "starts": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
