"""Two pods of one deployment: the second one takes the first one's start cache, with a scripted engine."""

import socket
from collections.abc import Callable
from pathlib import Path

from tests.support.servers import PodProcess

SECRET = "a secret of this deployment, 32 bytes or more"
GRAPH = "vllm/torch_compile_cache/f0/rank_0_0/graph.py"
COMPILED = "compiled = True\n" * 200_000

StartPod = Callable[..., PodProcess]


def flags(cache: Path, sibling: str, secret: str = SECRET) -> tuple[str, ...]:
    return ("--cache-dir", str(cache), "--start-cache-url", sibling, "--start-cache-secret", secret)


def no_sibling() -> str:
    """The URL of a Service without a ready pod."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


def start_first(start_scripted: StartPod, cache: Path) -> PodProcess:
    """A pod without a sibling, ready, that has compiled."""
    (cache / GRAPH).parent.mkdir(parents=True)
    (cache / GRAPH).write_text(COMPILED)
    pod = start_scripted(*flags(cache, no_sibling()))
    assert pod.wait_for("/startupz", deadline_s=60)["start_cache"] == "no_sibling"
    return pod


def test_the_second_pod_takes_what_the_first_one_has_compiled(
    start_scripted: StartPod, tmp_path: Path
) -> None:
    first = start_first(start_scripted, tmp_path / "first")
    second = start_scripted(*flags(tmp_path / "second", first.url))
    report = second.wait_for("/startupz", deadline_s=60)
    assert report["start_cache"] == "taken"
    assert list(report["phases_s"])[-1] == "ready"
    assert (tmp_path / "second" / GRAPH).read_text() == COMPILED
    assert second.metric('dragoman_start_cache_total{outcome="taken"}') == 1
    first.wait_for_metric("dragoman_start_cache_served_total", 1)
    assert "start cache of a sibling: taken" in second.log.read_text()


def test_a_pod_that_cannot_take_it_starts_as_without(start_scripted: StartPod, tmp_path: Path) -> None:
    first = start_first(start_scripted, tmp_path / "first")
    another_secret = start_scripted(*flags(tmp_path / "second", first.url, SECRET[::-1]))
    another_setting = start_scripted(*flags(tmp_path / "third", first.url), "--max-model-len", "512")
    off = start_scripted()
    for pod, outcome in ((another_secret, "mismatch"), (another_setting, "mismatch"), (off, "off")):
        assert pod.wait_for("/startupz", deadline_s=60)["start_cache"] == outcome
        assert pod.metric(f'dragoman_start_cache_total{{outcome="{outcome}"}}') == 1
        assert pod.translate().status_code == 200
    assert not (tmp_path / "second" / GRAPH).exists()
    assert not (tmp_path / "third" / GRAPH).exists()
    assert first.metric("dragoman_start_cache_served_total") == 0


def test_without_the_secret_nothing_is_served(start_scripted: StartPod, tmp_path: Path) -> None:
    first = start_first(start_scripted, tmp_path / "first")
    for headers in ({}, {"Authorization": "Bearer " + "0" * 64}):
        answer = first.client.get("/start-cache/" + "a" * 64, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_start_cache")
