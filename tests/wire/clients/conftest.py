"""Pods for the suites of real clients: one with vLLM and the demo model, one without a model.

Tests that use `demo_pod` carry the marker `vllm` and the time that its start may take, by themselves.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEMO_MODEL = Path(__file__).parents[3] / "examples" / "demo-model"
START_S = 400
"""Thirty seconds on two idle cores; tests may run beside others."""

DEMO_LANGUAGES = (
    {"source": "en", "targets": ["fr", "de", "ne"]},
    {"source": "fr", "targets": ["en"]},
    {"source": "de", "targets": ["en"]},
)
"""What the demo model can. Its sentences come back exactly: `The cat sleeps.` and those of
`examples/sentences.txt`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "demo_pod" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.timeout(START_S + 120))


@pytest.fixture(scope="session")
def demo_pod(tmp_path_factory: pytest.TempPathFactory, pod_process: Any) -> Iterator[Any]:
    """A `PodProcess` that translates with vLLM on a CPU what `DEMO_LANGUAGES` has; all suites share it."""
    directory = tmp_path_factory.mktemp("demo-pod")
    pod = pod_process(
        directory,
        *("--model", str(DEMO_MODEL), "--served-name", "demo", "--device", "cpu"),
        *("--max-num-seqs", "8", "--cache-dir", str(directory / "cache")),
        *("--languages", json.dumps(DEMO_LANGUAGES)),
    )
    try:
        pod.wait_for("/readyz", deadline_s=START_S)
        yield pod
    finally:
        pod.close()


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
