"""Defaults of a device."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from dragoman_service.engine.vllm.arguments import (
    cpu_arguments,
    gpu_arguments,
    graph_sizes,
    prefill_schedule_interval,
)
from dragoman_service.settings import Settings


def test_cpu_defaults_give_way_to_arguments() -> None:
    assert cpu_arguments({}, {}) == {
        "enforce_eager": True,
        "kv_cache_memory_bytes": 512 * 1024**2,
        "max_model_len": -1,
    }
    given = {"enforce_eager": False, "kv_cache_memory_bytes": 5, "max_model_len": 9}
    assert cpu_arguments(given, {}) == given
    assert "kv_cache_memory_bytes" not in cpu_arguments({"gpu_memory_utilization": 0.5}, {})
    assert "kv_cache_memory_bytes" not in cpu_arguments({}, {"VLLM_CPU_KVCACHE_SPACE": "4"})


def test_a_gpu_captures_graphs_for_steps_that_begin_requests() -> None:
    sizes = gpu_arguments({"max_num_seqs": 16})["cudagraph_capture_sizes"]
    assert sizes == graph_sizes(2048)
    assert (sizes[0], sizes[-1]) == (1, 2048)
    # What is between two sizes is padded to the larger, at the cost of computing it.
    assert all(after - before <= max(8, before / 8) for before, after in pairwise(sizes))


def test_no_graph_is_larger_than_a_step() -> None:
    assert max(gpu_arguments({"max_num_batched_tokens": 1000})["cudagraph_capture_sizes"]) == 960


@pytest.mark.parametrize(
    "given",
    [
        {"cudagraph_capture_sizes": [1, 2]},
        {"max_cudagraph_capture_size": 64},
        {"compilation_config": {"cudagraph_mode": "NONE"}},
        {"enforce_eager": True},
    ],
)
def test_arguments_about_graphs_are_left_to_vllm(given: dict[str, object]) -> None:
    assert gpu_arguments(given) == given


def test_requests_are_prefilled_together_on_a_gpu_by_default(
    make_settings: Callable[..., Settings],
) -> None:
    assert prefill_schedule_interval(make_settings(device="cuda")) == 32
    assert prefill_schedule_interval(make_settings(device="cpu")) == 1
    assert prefill_schedule_interval(make_settings(device="cuda", prefill_schedule_interval=1)) == 1
