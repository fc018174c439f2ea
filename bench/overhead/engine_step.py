"""Time of vLLM's engine for a step of its scheduler, with and without the shortcut of `open_blocks`; no model runs.

The scheduler is the pod's, with vLLM's own KV cache manager, in this process. An executor writes a token of each
sequence at once. Both ways take turns within one run:

    python bench/overhead/engine_step.py
"""

from __future__ import annotations

import argparse
import os
import random
import time
from concurrent.futures import Future
from pathlib import Path
from statistics import median
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

from vllm import EngineArgs, SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.llm_engine import LLMEngine
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.outputs import ModelRunnerOutput

from dragoman_service.engine.vllm.open_blocks import block_size_of, with_shortcut
from dragoman_service.engine.vllm.scheduler import CoalescingScheduler

MODEL = Path(__file__).parents[2] / "examples/demo-model"
BLOCK_TOKENS = 32
"""The fewest on a CPU; a GPU has 16."""

TURN_STEPS = 50
WORD = 100


class Instant(UniProcExecutor):  # type: ignore[misc]
    """Writes the same word for each sequence of a step."""

    def execute_model(self, step: Any, non_block: bool = False) -> Any:
        """The output of a step."""
        ids = list(step.num_scheduled_tokens)
        rows = {name: row for row, name in enumerate(ids)}
        output = ModelRunnerOutput(req_ids=ids, req_id_to_index=rows, sampled_token_ids=[[WORD]] * len(ids))
        if not non_block:
            return output
        done: Future[Any] = Future()
        done.set_result(output)
        return done


def step_ms(running: int, steps: int) -> dict[str, float]:
    """Median milliseconds of a step, without and with the shortcut.

    Args:
        running: Sequences that run at all times.
        steps: Both ways together; the first tenth of each is not counted.
    """
    arguments = EngineArgs(
        model=str(MODEL),
        max_num_seqs=running,
        max_num_batched_tokens=8192,
        max_model_len=1024,
        block_size=BLOCK_TOKENS,
        kv_cache_memory_bytes=1 << 29,
        enforce_eager=True,
        # Each prompt in one step: `Instant` does not know which are not computed yet.
        enable_chunked_prefill=False,
        distributed_executor_backend=Instant,
        scheduler_cls=CoalescingScheduler,
    )
    engine = LLMEngine.from_engine_args(arguments)
    core = engine.engine_core.engine_core
    manager = core.scheduler.kv_cache_manager
    # The scheduler has set the shortcut on the instance.
    del manager.allocate_slots
    plain = manager.allocate_slots
    block_size = block_size_of(core.scheduler)
    assert block_size == BLOCK_TOKENS, block_size
    ways = {"vllm": plain, "shortcut": with_shortcut(plain, manager.empty_kv_cache_blocks, block_size)}
    draw, numbers = random.Random(1), iter(range(10**9))

    def add() -> None:
        prompt = [draw.randrange(200, 2000) for _ in range(draw.randint(20, 200))]
        sampling = SamplingParams(
            max_tokens=draw.randint(10, 200),
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        engine.add_request(str(next(numbers)), {"prompt_token_ids": prompt}, sampling)

    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(steps):
        way = list(ways)[number // TURN_STEPS % len(ways)]
        manager.allocate_slots = ways[way]
        while len(core.scheduler.requests) < 2 * running:
            add()
        began_s = time.perf_counter()
        core.step_fn()
        times[way].append(time.perf_counter() - began_s)
    warm = steps // 10
    return {way: 1000 * median(found[warm:]) for way, found in times.items()}


def main() -> None:
    """Measure one number of sequences: an engine in this process cannot be followed by another."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--running", type=int, default=128, metavar="N", help="sequences (128)")
    parser.add_argument("--steps", type=int, default=4000, metavar="N", help="(4000)")
    arguments = parser.parse_args()
    found = step_ms(arguments.running, arguments.steps)
    ratio = found["shortcut"] / found["vllm"]
    print(
        f"{arguments.running} sequences: {found['vllm']:.3f} ms a step, {found['shortcut']:.3f} ms with the shortcut, "
        f"ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
