"""vLLM's GPU worker, with most of its CUDA graphs captured after the pod is ready.

This module is loaded in vLLM's engine process. Tested with vLLM 0.32.

Source: `vllm/v1/worker/gpu_worker.py`
"""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from vllm.distributed import parallel_state
from vllm.v1.worker.gpu_worker import Worker

from dragoman_service.engine.vllm.graphs import USED, DeferredGraphs

SPARE_BYTES = 2 << 30
"""Free GPU memory below which no deferred graph is captured; twice as much is needed to defer any. An engine without
memory for a step dies."""


class GPUWorker(Worker):  # type: ignore[misc]
    """Defers graphs if the size of the KV cache is given or known from an earlier start.

    Otherwise vLLM measures the memory of the graphs in this start, for the next ones: then all of them are captured.
    With several GPUs it defers none, because this was not tested.
    """

    _deferred: DeferredGraphs | None = None

    def compile_or_warm_up_model(self) -> Any:
        """Compile, capture graphs and warm up."""
        if self.cache_config.kv_cache_memory_bytes is not None and _is_deferrable(self):
            _share_stream()
            self._deferred = DeferredGraphs(self.model_runner.cudagraph_manager)
        return super().compile_or_warm_up_model()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def capture_next_graphs(self) -> int:
        """Capture the graphs of one more size; called between two steps.

        Returns:
            The number of sizes that are left.
        """
        deferred = self._deferred
        if deferred is None or not deferred.left:
            return 0
        from vllm.v1.worker.gpu import cudagraph_utils

        # A thread of vLLM may wait for an output meanwhile, which the default mode forbids.
        graph = partial(torch.cuda.graph, capture_error_mode="thread_local")
        torch.accelerator.synchronize()
        if _free_bytes() < SPARE_BYTES:
            deferred.give_up(f"under {SPARE_BYTES >> 30} GiB of GPU memory are free")
            return 0
        with patch.object(torch.cuda, "graph", graph), patch.object(cudagraph_utils, "tqdm", _without_bar):
            deferred.capture_next()
        torch.accelerator.synchronize()
        return deferred.left


def _is_deferrable(worker: Any) -> bool:
    """Whether nothing is captured but the model's own graphs, by one GPU and the manager that `DeferredGraphs` knows.

    Several GPUs have to capture in step: data parallel ones would wait for each other. Breakable graphs
    (`VLLM_USE_BREAKABLE_CUDAGRAPH`) are captured in a mode that forbids what other threads do while the pod serves.
    """
    return (
        worker.use_v2_model_runner
        and _has_one_gpu(worker)
        and not worker.model_config.enforce_eager
        and worker.vllm_config.lora_config is None
        and worker.vllm_config.speculative_config is None
        and worker.vllm_config.kv_transfer_config is None
        and hasattr(parallel_state, "GraphCaptureContext")
        and all(hasattr(worker.model_runner.cudagraph_manager, name) for name in USED)
        and worker.model_runner.cudagraph_manager.needs_capture()
        and not worker.model_runner.cudagraph_manager.use_breakable_cg
        and _free_bytes() >= 2 * SPARE_BYTES
    )


def _has_one_gpu(worker: Any) -> bool:
    """Whether the engine uses one GPU."""
    parallel = worker.parallel_config
    return bool(parallel.world_size == parallel.data_parallel_size == 1)


def _free_bytes() -> int:
    """Free GPU memory, without what PyTorch holds for later."""
    torch.accelerator.empty_cache()
    return int(torch.accelerator.get_memory_info()[0])


def _share_stream() -> None:
    """Have all captures of this process use one stream: PyTorch reuses the memory of graphs by stream."""
    contexts: dict[str, Any] = {}
    original = parallel_state.GraphCaptureContext

    def shared(stream: Any) -> Any:
        return contexts.setdefault("only", original(stream))

    parallel_state.GraphCaptureContext = shared


def _without_bar(graphs: Any, **_options: Any) -> Any:
    return graphs
