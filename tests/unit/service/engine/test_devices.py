from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.engine.devices import GPUMetrics, GPUs, gpu_facts, gpu_uuids, gpus, visible


class NVMLError(Exception):
    pass


class NVML:
    """Two GPUs; the second is partitioned."""

    NVMLError = NVMLError

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, at: int) -> int:
        if at > 1:
            raise NVMLError
        return at

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:
        if name != "GPU-abc":
            raise NVMLError
        return 1

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=1000 + handle, total=4000)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if handle == 1:
            raise NVMLError
        return SimpleNamespace(gpu=93)


@pytest.mark.parametrize(
    ("devices", "labels"),
    [
        (None, {"0": 0, "1": 1}),
        ("1", {"1": 1}),
        ("GPU-abc, 0", {"GPU-abc": 1, "0": 0}),
        ("0,7,1", {"0": 0}),
        ("", {}),
        ("-1", {}),
    ],
)
def test_only_what_the_process_may_use_is_watched(devices: str | None, labels: dict[str, int]) -> None:
    assert visible(NVML(), devices) == labels


def test_each_gpu_is_reported() -> None:
    registry = CollectorRegistry()
    registry.register(GPUMetrics(lambda: True, lambda: GPUs(NVML(), {"0": 0, "1": 1})))

    def value(name: str, gpu: str) -> float | None:
        return registry.get_sample_value(f"dragoman_gpu_{name}", {"gpu": gpu})

    assert value("utilization_ratio", "0") == 0.93
    assert value("utilization_ratio", "1") is None
    assert value("memory_used_bytes", "1") == 1001
    assert value("memory_bytes", "0") == 4000


def test_without_a_driver_there_is_nothing_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert gpus({}) is None
    assert gpu_facts() is None
    assert gpu_uuids() == []


def test_nvml_is_closed_while_an_engine_process_may_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, open_times, may_open = NVML(), [], False
    monkeypatch.setattr(nvml, "nvmlInit", lambda: open_times.append(1), raising=False)
    monkeypatch.setattr(nvml, "nvmlShutdown", lambda: open_times.append(-1), raising=False)
    monkeypatch.setattr(nvml, "nvmlDeviceGetUUID", str, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", nvml)
    registry = CollectorRegistry()
    registry.register(GPUMetrics(lambda: may_open))
    assert gpu_uuids() == ["0", "1"]
    assert not list(registry.collect())
    assert sum(open_times) == 0
    may_open = True
    for _ in range(2):
        assert {family.name for family in registry.collect()} > {"dragoman_gpu_memory_bytes"}
    assert sum(open_times) == 1
