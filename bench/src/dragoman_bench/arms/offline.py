"""`LLM.generate` on a list of prompts: vLLM without any serving around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import Any

from dragoman_bench.arms.driver import Run, RunRequest, driver_app
from dragoman_bench.arms.options import ArmOptions, arm_options, serve
from dragoman_bench.arms.translation_processor import TranslationProcessor
from dragoman_bench.loads import stream
from dragoman_tune.figures import Figures

ROUNDS = 4
"""Requests in the list, as a multiple of those in flight: its tail, where the last few run alone, is part of
what offline costs, and with fewer rounds would be most of it."""


def started(options: ArmOptions) -> tuple[Run, Callable[[], None]]:
    """An engine, and what gives it a list."""
    processor = TranslationProcessor(options)

    async def run(wanted: RunRequest) -> dict[str, Any]:
        requests = list(
            islice(
                stream(wanted.kind, options.model, wanted.requests, wanted.seed), ROUNDS * wanted.in_flight
            )
        )
        began_s = time.monotonic()
        await asyncio.to_thread(processor.translate_batch, requests)
        span_s = time.monotonic() - began_s
        tokens = [request.output_tokens for request in requests if request.output_tokens is not None]
        return asdict(
            Figures(
                requests_per_s=len(requests) / span_s,
                output_tokens_per_s=sum(tokens) / span_s if len(tokens) == len(requests) else None,
                p50_s=None,
                p95_s=None,
                p99_s=None,
                mean_s=None,
                queue_s=None,
                compute_s=None,
                answered=len(requests),
                steady=True,
                errors={},
            )
        )

    return run, lambda: None


if __name__ == "__main__":
    chosen = arm_options()
    serve(driver_app(lambda: started(chosen)), chosen.port)
