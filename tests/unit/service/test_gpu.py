from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.engine.devices import GPUs, gpus, visible


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
    registry.register(GPUs(NVML(), {"0": 0, "1": 1}))

    def value(name: str, gpu: str) -> float | None:
        return registry.get_sample_value(f"dragoman_gpu_{name}", {"gpu": gpu})

    assert value("utilization_ratio", "0") == 0.93
    assert value("utilization_ratio", "1") is None
    assert value("memory_used_bytes", "1") == 1001
    assert value("memory_bytes", "0") == 4000


def test_without_a_driver_there_is_nothing_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert gpus({}) is None
