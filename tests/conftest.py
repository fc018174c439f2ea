"""Which examples property tests try, which tests share a worker of pytest-xdist, and how much CPU a fast test may use.

Profiles of hypothesis: `check` and `test` try the same examples in every run; `search` draws new ones.
"""

import gc
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.servers import VLLM_START_S

pytest_plugins = [
    "tests.support.demo_pod",
    "tests.support.failed_tests",
    "tests.support.http_server",
    "tests.support.redis",
]

TESTS = Path(__file__).parent
SHARED = {
    "e2e": "vllm",
    "bench": "vllm",
    "demo_model": "vllm",
    "wire/clients": "clients",
    "cluster/chart": "chart",
    "cluster/router": "router",
    "cluster/devcluster": "devcluster",
}
"""Folders whose tests run in one worker: they share a pod, a cluster or the memory that vLLM takes."""

LONGEST = (
    "vllm",
    "cluster/operator/test_operator_tuning.py",
    "cluster/operator/test_operator_scaling.py",
    "chart",
    "cluster/operator/test_operator_rollout.py",
    "router",
    "cluster/operator/test_operator_outages.py",
    "cluster/operator/test_operator_trouble.py",
    "cluster/operator/test_operator_monitoring.py",
    "cluster/operator/test_operator_service_alone.py",
    "clients",
)
"""Groups that take about a minute or more: they start first, in this order, so that none is left for the end."""

LONGEST_ID = 60

# What the collection of tests makes stays; Python's garbage collector would go through it again and again.
gc.disable()

settings.register_profile("check", derandomize=True, max_examples=10, deadline=None, print_blob=True)
settings.register_profile("test", derandomize=True, max_examples=60, deadline=None, print_blob=True)
settings.register_profile("search", derandomize=False, max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("test")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, Any, Any]:
    """Outside tests/unit, the tests of one file share what their module's fixtures start, so they stay together.

    So do those of tests/unit that need vLLM.
    """
    order: dict[pytest.Item, int] = {}
    for item in items:
        path = item.path.relative_to(TESTS)
        if path.parts[0] == "unit":
            if item.get_closest_marker(
                "vllm"
            ):  # Each worker that has one of them imports vLLM, for 10 s of CPU.
                item.add_marker(pytest.mark.xdist_group("unit/vllm"))
                order[item] = len(LONGEST)
            continue
        if "demo_pod" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.timeout(VLLM_START_S + 120))
        shared = (group for folder, group in SHARED.items() if path.as_posix().startswith(f"{folder}/"))
        group = "vllm" if item.get_closest_marker("vllm") else next(shared, path.as_posix())
        item.add_marker(pytest.mark.xdist_group(group))
        order[item] = LONGEST.index(group) if group in LONGEST else len(LONGEST)
    # Tests of tests/unit are short, and last.
    items.sort(key=lambda item: order.get(item, len(LONGEST) + 1))
    # xdist's hook reads the groups, and it is called first: only a wrapper precedes it.
    return (yield)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is cut: a test's name goes to each worker, to the environment and to the terminal."""
    if isinstance(val, bytes):
        val = val[: 2 * LONGEST_ID].decode("latin-1")
    if not isinstance(val, str) or len(val) <= LONGEST_ID:
        return None
    return val[:LONGEST_ID].encode("unicode_escape").decode("ascii")


def pytest_collection_finish() -> None:
    """Garbage is collected from now on, except among what is there."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cpu-limit-s`, which `make check` sets."""
    parser.addoption("--cpu-limit-s", type=float, default=None, help="CPU seconds of a test that is not slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that uses more CPU than a fast one may; fixtures are not counted, as others may share them."""
    limit_s = item.config.getoption("cpu_limit_s")
    began_s = time.process_time()
    yield
    used_s = time.process_time() - began_s
    if limit_s is not None and used_s > limit_s and item.get_closest_marker("slow") is None:
        pytest.fail(
            f"{item.nodeid} used {used_s:.2f} s of CPU: make it cheaper, or mark it slow", pytrace=False
        )
