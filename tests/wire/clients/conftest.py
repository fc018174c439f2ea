"""A pod without a model for the suites of real clients; the one with vLLM is `demo_pod` of `tests/support`."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def scripted_pod(tmp_path_factory: pytest.TempPathFactory, pod_process: Any) -> Iterator[Any]:
    """A `PodProcess` that answers every segment at once with its reverse, for every pair of languages.

    A pod with a script, or flags, of a test's own: `start_scripted`.
    """
    pod = pod_process(
        tmp_path_factory.mktemp("scripted-pod"),
        *("--model", "org/model", "--served-name", "scripted", "--engine", "scripted"),
    )
    try:
        pod.wait_for("/readyz")
        yield pod
    finally:
        pod.close()
