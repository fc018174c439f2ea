"""Which examples property tests try, what `make check` leaves out, and which tests share a worker of pytest-xdist.

Profiles of hypothesis: `check` and `test` try the same examples in every run; `search` draws new ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.support.redis"]

TESTS = Path(__file__).parent
SHARED = {
    "e2e": "vllm",
    "bench": "vllm",
    "demo_model": "vllm",
    "wire/clients": "clients",
    "cluster/operator": "operator",
    "cluster/chart": "chart",
    "cluster/router": "router",
    "cluster/devcluster": "devcluster",
}
"""Folders whose tests run in one worker: they share a pod, a cluster or the memory that vLLM takes."""
FAST_CPU_S = 1.0
"""CPU time that a test without the marker `slow` may use in `make check`."""

settings.register_profile("check", derandomize=True, max_examples=10, deadline=None, print_blob=True)
settings.register_profile("test", derandomize=True, max_examples=60, deadline=None, print_blob=True)
settings.register_profile("search", derandomize=False, max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bound-cpu`, which `make check` passes."""
    parser.addoption(
        "--bound-cpu", action="store_true", help=f"fail tests that use over {FAST_CPU_S:g} s of CPU"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Outside tests/unit, the tests of one file share what their module's fixtures start, so they stay together."""
    for item in items:
        path = item.path.relative_to(TESTS)
        if path.parts[0] == "unit":
            continue
        shared = (group for folder, group in SHARED.items() if path.as_posix().startswith(f"{folder}/"))
        group = "vllm" if item.get_closest_marker("vllm") else next(shared, path.as_posix())
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that is too slow for `make check`, by the CPU time that it used in this process."""
    began_s = time.process_time()
    yield
    used_s = time.process_time() - began_s
    if item.config.getoption("--bound-cpu") and used_s > FAST_CPU_S and not item.get_closest_marker("slow"):
        pytest.fail(f"{used_s:.1f} s of CPU: mark it slow, or make it faster", pytrace=False)
