"""What the GPU does while something is measured, by NVML.

NVML's utilisation is the share of its last sampling period (a sixth of a second to a second, by product) in
which any kernel ran; it says nothing of how full the GPU was.

Source: https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from dragoman_bench.errors import NoGPUError, TooLittleMemoryError

EVERY_S = 0.1
IDLE_BELOW_RATIO = 0.2


@dataclass(frozen=True)
class Reading:
    """One reading of the GPU: when (monotonic), how busy (0 to 1), how much memory is in use, by any process."""

    at_s: float
    busy_ratio: float
    memory_bytes: int


@dataclass(frozen=True)
class GPUFigures:
    """A window of readings.

    Args:
        busy_ratio: Mean utilisation, 0 to 1.
        idle_share: Share of readings below 20%.
    """

    busy_ratio: float
    idle_share: float
    memory_bytes: int


def summary(readings: list[Reading], began_s: float, ended_s: float) -> GPUFigures | None:
    """The figures of those readings that fall into a window; None of none."""
    within = [reading for reading in readings if began_s <= reading.at_s < ended_s]
    if not within:
        return None
    return GPUFigures(
        busy_ratio=fmean(reading.busy_ratio for reading in within),
        idle_share=sum(reading.busy_ratio < IDLE_BELOW_RATIO for reading in within) / len(within),
        memory_bytes=max(reading.memory_bytes for reading in within),
    )


def first_visible(devices: str) -> int | str:
    """The first of `CUDA_VISIBLE_DEVICES`, which NVML itself does not know of: a number, or a UUID.

    Args:
        devices: Its value; empty where it is not set.
    """
    first = devices.split(",")[0].strip()
    return first if first.startswith(("GPU-", "MIG-")) else int(first or 0)


class GPU:
    """The first GPU that this process may use, read in a thread of its own.

    Raises:
        NoGPUError: There is none, or NVML is not installed.
    """

    def __init__(self) -> None:
        try:
            import pynvml
        except ModuleNotFoundError as missing:
            raise NoGPUError("nvidia-ml-py is not installed: pip install nvidia-ml-py") from missing
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            first = first_visible(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
            by = (
                pynvml.nvmlDeviceGetHandleByUUID
                if isinstance(first, str)
                else pynvml.nvmlDeviceGetHandleByIndex
            )
            self._handle: Any = by(first)
        except pynvml.NVMLError as error:
            raise NoGPUError(
                f"no NVIDIA GPU here ({error}): use --device cpu, or a machine with one"
            ) from error
        self.readings: list[Reading] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="nvml", daemon=True)

    @property
    def name(self) -> str:
        """As NVML calls it."""
        return str(self._nvml.nvmlDeviceGetName(self._handle))

    @property
    def driver(self) -> str:
        """Version of the driver."""
        return str(self._nvml.nvmlSystemGetDriverVersion())

    @property
    def total_bytes(self) -> int:
        """All of its memory."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total)

    @property
    def used_bytes(self) -> int:
        """Memory in use, by whomever."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    def require(self, share: float) -> None:
        """Make sure that an engine can have its share of memory.

        Args:
            share: Of all memory, 0 to 1.

        Raises:
            TooLittleMemoryError: Less is free.
        """
        free, total = self.total_bytes - self.used_bytes, self.total_bytes
        if free < share * total:
            raise TooLittleMemoryError(
                f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free on {self.name} and {share:.0%} are required: "
                "end what uses the GPU, or lower --gpu-memory-utilization"
            )

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _read(self) -> None:
        while not self._stop.wait(EVERY_S):
            with suppress(self._nvml.NVMLError):
                busy = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu / 100
                self.readings.append(Reading(time.monotonic(), busy, self.used_bytes))
