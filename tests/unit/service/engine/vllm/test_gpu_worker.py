"""vLLM's GPU worker with deferred graphs, without a GPU: the installed release has what it uses."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm import compat
from dragoman_service.engine.vllm.compat import Reach, missing_of
from dragoman_service.engine.vllm.graphs import USED
from dragoman_service.engine.vllm.process import OUR_WORKER, VLLM_WORKER, _replace_worker

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]


def with_worker(name: str) -> Any:
    return SimpleNamespace(parallel_config=SimpleNamespace(worker_cls=name))


def test_vllm_s_own_worker_has_a_successor() -> None:
    from vllm.utils.import_utils import resolve_obj_by_qualname

    config = with_worker(VLLM_WORKER)
    assert _replace_worker(config, "0.32.0")
    found = resolve_obj_by_qualname(config.parallel_config.worker_cls)
    assert issubclass(found, resolve_obj_by_qualname(VLLM_WORKER))
    assert callable(found.capture_next_graphs)


def test_another_worker_is_left_alone() -> None:
    config = with_worker("vllm.v1.worker.cpu_worker.CPUWorker")
    assert not _replace_worker(config, "0.32.0")
    assert config.parallel_config.worker_cls != OUR_WORKER


def test_releases_without_a_test_on_a_gpu_capture_all_graphs_before_the_pod_is_ready() -> None:
    config = with_worker(VLLM_WORKER)
    assert not _replace_worker(config, "0.33.0")
    assert config.parallel_config.worker_cls == VLLM_WORKER
    assert compat.FALLBACK.labels(compat.GPU_WORKER)._value.get() == 1
    compat.FALLBACK.clear()


def test_the_release_has_what_deferred_graphs_use() -> None:
    uses = {
        "v1.worker.gpu.cudagraph_utils": "tqdm graph_capture",
        "v1.worker.gpu.cudagraph_utils:CudaGraphManager": " ".join(USED),
        "v1.worker.gpu_worker:Worker": "compile_or_warm_up_model use_v2_model_runner",
        "distributed.parallel_state": "GraphCaptureContext",
    }
    assert missing_of(Reach("graphs", uses)) == []


def test_all_captures_of_a_process_use_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.distributed import parallel_state

    from dragoman_service.engine.vllm.gpu_worker import _share_stream

    monkeypatch.setattr(parallel_state, "GraphCaptureContext", parallel_state.GraphCaptureContext)
    _share_stream()
    first, second = (parallel_state.GraphCaptureContext(stream) for stream in ("first", "second"))
    assert first.stream == second.stream == "first"
