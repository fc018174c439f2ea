import sys

import pytest

from dragoman_bench.errors import NoGPUError
from dragoman_bench.gpu import GPU, Reading, first_visible, summary


def test_the_share_below_a_fifth_is_of_the_window_alone() -> None:
    readings = [
        Reading(at, busy, 5) for at, busy in ((0, 0.0), (1, 0.93), (2, 0.0), (3, 0.93), (4, 0.1), (5, 0.0))
    ]
    found = summary(readings, 1, 5)
    assert found is not None
    assert found.idle_share == 0.5
    assert found.busy_ratio == pytest.approx(0.49)
    assert summary(readings, 10, 20) is None


def test_without_a_gpu_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoGPUError, match="pip install nvidia-ml-py"):
        GPU()


@pytest.mark.parametrize(
    ("devices", "first"), [("", 0), ("3", 3), ("1,0", 1), ("GPU-8932f937-d72c", "GPU-8932f937-d72c")]
)
def test_the_gpu_that_is_read_is_the_one_that_cuda_uses(devices: str, first: int | str) -> None:
    assert first_visible(devices) == first
