"""The pod with vLLM that tests share: it starts once in a session, and its end is checked as well."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers import VLLM_START_S, PodProcess, wait_until_gone

MODEL = Path(__file__).parents[2] / "examples" / "demo-model"
LANGUAGES = (
    {"source": "en", "targets": ["fr", "de", "ne"]},
    {"source": "fr", "targets": ["en"]},
    {"source": "de", "targets": ["en"]},
)
"""What the demo model can. Its sentences come back exactly: `The cat sleeps.` and those of
`examples/sentences.txt`."""


class DemoPod(PodProcess):
    """A pod that translates what `LANGUAGES` has, with the phases of its start."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            directory,
            *("--model", str(MODEL), "--served-name", "demo", "--device", "cpu"),
            *("--max-num-seqs", "8", "--cache-dir", str(directory / "cache")),
            # As on a GPU.
            *("--prefill-schedule-interval", "16"),
            *("--languages", json.dumps(LANGUAGES)),
        )
        self.phases: set[str] = set()

    def wait_until_ready(self) -> None:
        """Wait, and note the phases on the way."""
        end_s = time.monotonic() + VLLM_START_S
        self.wait_for("/livez")
        while self.client.get("/readyz").status_code != 200:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end_s, self.log.read_text()
            self.phases.add(self.client.get("/startupz").json()["phase"])
            time.sleep(0.1)

    def end_in_order(self) -> None:
        """SIGTERM leaves no process and no complaint."""
        started = self.descendants()
        assert started
        assert self.end() == 0
        wait_until_gone(started)
        assert "Traceback" not in self.log.read_text()
        assert not self.last_words.exists()


@pytest.fixture(scope="session")
def demo_pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoPod]:
    """The pod; its tests get the marker `vllm` and time for its start by themselves."""
    pod = DemoPod(tmp_path_factory.mktemp("demo-pod"))
    try:
        pod.wait_until_ready()
        yield pod
        pod.end_in_order()
    finally:
        pod.close()
