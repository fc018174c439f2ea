"""First calls of vLLM's kernel for `top_k` and `top_p` on a GPU, with and without the pod's plugin.

    python bench/overhead/sampling_kernel.py

A first call that takes seconds has compiled the kernel. All requests of a pod would wait for it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time

VOCABULARY = 151_936
"""Of Qwen3."""

CALLS = (
    *((512, True, True), (128, True, True), (121, True, True), (120, True, True), (9, True, True)),
    *((256, True, True), (64, True, False), (63, True, False), (64, False, True), (63, False, True)),
)
"""Sequences, and whether they have a `top_k` and a `top_p`. The first is what vLLM compiles during the start."""


def calls(variant: str) -> None:
    """Make all calls in this process, and print each: its time, and a digest of its result."""
    import torch
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    from dragoman_service.engine.vllm import plugin

    if variant == "plugin":
        plugin.register()
    for sequences, with_top_k, with_top_p in CALLS:
        draw = torch.Generator("cuda").manual_seed(sequences)
        logits = torch.randn(sequences, VOCABULARY, device="cuda", generator=draw) * 3
        top_k = torch.randint(1, 60, (sequences,), device="cuda", generator=draw, dtype=torch.int32)
        top_p = torch.rand(sequences, device="cuda", generator=draw) * 0.8 + 0.15
        limits = (top_k if with_top_k else None, top_p if with_top_p else None)
        torch.cuda.synchronize()
        began_s = time.perf_counter()
        limited = sampler.apply_top_k_top_p(logits, *limits)
        torch.cuda.synchronize()
        took_s = time.perf_counter() - began_s
        digest = hashlib.sha256(limited.cpu().numpy().tobytes()).hexdigest()[:12]
        print(
            f"{variant:8} {sequences:4} sequences, top_k {with_top_k}, top_p {with_top_p}: "
            f"{took_s:.3f} s, result {digest}",
            flush=True,
        )


def main() -> None:
    """Each variant in a process, and with an empty cache of Triton, of its own."""
    if len(sys.argv) == 2:
        calls(sys.argv[1])
        return
    for variant in ("vllm", "plugin"):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "TRITON_CACHE_DIR": cache}
            subprocess.run([sys.executable, __file__, variant], check=True, env=environment)


if __name__ == "__main__":
    main()
