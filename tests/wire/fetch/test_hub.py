"""`dragoman fetch` from a hub on loopback, with huggingface_hub as it is installed."""

import hashlib
import json
import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.fetching import failure, fetch, start
from tests.support.hub import COMMIT, Hub, git_id
from tests.support.small_disk import small_disk

from dragoman_devcluster.ports import free_port

pytest.importorskip("huggingface_hub", reason="comes with vLLM")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MIB = 1 << 20
WEIGHTS = os.urandom(MIB) * 40
OTHER = os.urandom(MIB) * 2
INDEX = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b'{"long": "%s"}' % (b"x" * 2000),
    "model-1.safetensors": WEIGHTS,
    "model-2.safetensors": OTHER,
    "model.safetensors.index.json": json.dumps(INDEX).encode(),
    "pytorch_model.bin": b"y" * MIB,
    "original/model.safetensors": b"z" * MIB,
    "README.md": b"readme",
}
NEEDED = sorted(set(FILES) - {"pytorch_model.bin", "original/model.safetensors", "README.md"})


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(FILES) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def of(hub: Hub, **more: str) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.url, **more}


def test_what_vllm_needs_is_fetched_verified_and_linked(hub: Hub, cache: Path) -> None:
    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    model = cache / "models" / "it"
    assert sorted(str(file.relative_to(model)) for file in model.rglob("*") if file.is_file()) == NEEDED
    assert all((model / name).read_bytes() == FILES[name] for name in NEEDED)
    assert not os.readlink(model).startswith("/")
    assert model.resolve().name == COMMIT
    assert hub.sent["model-1.safetensors"] == len(WEIGHTS)

    # Again: from the cache, also without a hub.
    for environment in (of(hub), {"HF_ENDPOINT": "http://127.0.0.1:9"}, of(hub, HF_HUB_OFFLINE="1")):
        status, errors = fetch(cache, "hf://org/open", env=environment)
        assert status == 0, errors
        assert "received 0 bytes" in errors
    assert hub.sent["model-1.safetensors"] == len(WEIGHTS)


def test_a_download_that_is_killed_at_half_goes_on_there(hub: Hub, cache: Path) -> None:
    hub.stops_at = len(WEIGHTS) // 2
    process = start(cache, "hf://org/open", env=of(hub))
    assert hub.stopped.wait(60)
    process.kill()
    process.communicate(timeout=60)
    assert not (cache / "models" / "it").exists()
    hub.stops_at = None
    hub.released.set()
    before = hub.sent["model-1.safetensors"]

    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    assert (cache / "models" / "it" / "model-1.safetensors").read_bytes() == WEIGHTS
    again = hub.sent["model-1.safetensors"] - len(WEIGHTS)
    # What huggingface_hub had received and not yet passed on (10 MiB), and the kernel's buffers.
    assert 0 <= again < 16 * MIB, f"{again} bytes were transferred again, {before} before"
    assert max(hub.offsets) > 0
    assert hub.sent["model-2.safetensors"] == len(OTHER)


def test_a_hub_with_xet_is_used_by_ranges(hub: Hub, cache: Path) -> None:
    """Which are resumed, measured and sent by a mirror; hf_xet is installed with vLLM."""
    pytest.importorskip("hf_xet")
    hub.xet = True
    hub.stops_at = len(WEIGHTS) // 2
    process = start(cache, "hf://org/open", env=of(hub))
    assert hub.stopped.wait(60)
    process.kill()
    process.communicate(timeout=60)
    hub.stops_at = None
    hub.released.set()
    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    assert (cache / "models" / "it" / "model-1.safetensors").read_bytes() == WEIGHTS
    assert max(hub.offsets) > 0
    assert hub.xet_tokens == 0


def test_a_file_that_the_hub_has_in_xet_alone_is_requested_there(hub: Hub, cache: Path) -> None:
    pytest.importorskip("hf_xet")
    hub.xet = True
    hub.sizes["model-2.safetensors"] = 50_000_000_001
    assert "cannot be downloaded" in failure(cache, "hf://org/open", env=of(hub))
    assert hub.xet_tokens > 0
    assert hub.sent["model-2.safetensors"] == 0


def test_sigterm_ends_a_download_at_once(hub: Hub, cache: Path) -> None:
    hub.stops_at = MIB
    process = start(cache, "hf://org/open", env=of(hub))
    assert hub.stopped.wait(60)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143


def test_two_that_share_a_volume_download_once(hub: Hub, cache: Path) -> None:
    hub.stops_at = MIB
    first = start(cache, "hf://org/open", env=of(hub))
    assert hub.stopped.wait(60)
    second = start(cache, "hf://org/open", "--port", "0", env=of(hub))
    folder = cache / "huggingface" / "hub" / "models--org--open"
    assert (folder / "dragoman.lock").exists()
    hub.stops_at = None
    hub.released.set()
    for process in (first, second):
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert hub.sent["model-1.safetensors"] == len(WEIGHTS)
    assert "received 0 bytes" in errors


def test_the_progress_is_served_meanwhile(hub: Hub, cache: Path) -> None:
    hub.stops_at = 30 * MIB
    port = free_port()
    process = start(cache, "hf://org/open", "--port", str(port), env=of(hub))
    assert hub.stopped.wait(60)
    found = httpx.get(f"http://127.0.0.1:{port}/startupz")
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    process.kill()
    process.communicate(timeout=10)
    samples = {family.name: family.samples for family in text_string_to_metric_families(metrics)}
    assert samples["dragoman_phase"][0].labels == {"phase": "downloading"}
    assert samples["dragoman_start_seconds"][0].value > 0
    assert found.status_code == 503
    state = found.json()
    assert state["phase"] == "downloading"
    assert 0 < state["progress"] < 1
    assert state["total_bytes"] == sum(len(FILES[name]) for name in NEEDED)
    assert "downloading the model: " in state["reason"]


def test_a_wrong_checksum_is_refused_and_not_kept(hub: Hub, cache: Path) -> None:
    hub.wrong = {"model-2.safetensors"}
    sentence = failure(cache, "hf://org/open", env=of(hub))
    assert "model-2.safetensors has the sha256" in sentence
    assert "the store lists" in sentence
    hub.wrong = set()
    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    assert hub.sent["model-1.safetensors"] <= len(WEIGHTS) + 16 * MIB


def test_a_file_that_changed_in_the_cache_is_found(hub: Hub, cache: Path) -> None:
    assert fetch(cache, "hf://org/open", env=of(hub))[0] == 0
    blob = (cache / "models" / "it" / "model-2.safetensors").resolve()
    blob.write_bytes(bytes(len(OTHER)))
    (cache / "models" / "it").unlink()
    assert "model-2.safetensors has the sha256" in failure(cache, "hf://org/open", env=of(hub))
    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    assert (cache / "models" / "it" / "model-2.safetensors").read_bytes() == OTHER


def test_a_wrong_file_that_models_of_the_cache_share_is_found(hub: Hub, cache: Path) -> None:
    """huggingface_hub keeps what it has received by Xet once for all models, behind another link."""
    assert fetch(cache, "hf://org/open", env=of(hub))[0] == 0
    (cache / "models" / "it").unlink()
    (folder,) = (cache / "huggingface" / "hub").glob("models--*")
    blob = folder / "blobs" / hashlib.sha256(OTHER).hexdigest()
    blob.unlink()
    shared = cache / "huggingface" / "hub" / "shared" / "a-name-of-its-own"
    shared.parent.mkdir()
    shared.write_bytes(bytes(len(OTHER)))
    blob.symlink_to(shared)
    assert "model-2.safetensors has the sha256" in failure(cache, "hf://org/open", env=of(hub))
    status, errors = fetch(cache, "hf://org/open", env=of(hub))
    assert status == 0, errors
    assert (cache / "models" / "it" / "model-2.safetensors").read_bytes() == OTHER
    assert not shared.exists()


def test_a_volume_that_is_too_small(hub: Hub, tmp_path: Path) -> None:
    with small_disk(8) as disk:
        cache = tmp_path / "cache"
        cache.symlink_to(disk)
        sentence = failure(cache, "hf://org/open", env=of(hub))
    assert "no space is left for the model: 0.04 GB are missing and 0.01 GB are free" in sentence


def test_a_volume_that_another_program_fills(hub: Hub, tmp_path: Path) -> None:
    with small_disk(60) as disk:
        cache = tmp_path / "cache"
        cache.symlink_to(disk)
        hub.stops_at = MIB
        process = start(cache, "hf://org/open", env=of(hub))
        assert hub.stopped.wait(60)
        (disk / "other").write_bytes(bytes(40 * MIB))
        hub.released.set()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.endswith("dragoman fetch: no space is left for org/open: give the cache volume more room\n")


def test_a_write_that_fails(hub: Hub, cache: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 * MIB, 8 * MIB))

    sentence = failure(cache, "hf://org/open", env=of(hub), preexec_fn=limited)
    assert sentence == "no space is left for org/open: give the cache volume more room\n"


@pytest.mark.parametrize(
    ("model", "flags", "expected"),
    [
        ("hf://org/gated", (), "the model org/gated is gated on Hugging Face: accept its terms there"),
        ("hf://org/none", (), "Hugging Face refuses access to org/none (401): set tokenSecretRef"),
        ("hf://org/open", ("--revision", "v9"), "the model org/open has no such revision"),
    ],
)
def test_refusals(hub: Hub, cache: Path, model: str, flags: tuple[str, ...], expected: str) -> None:
    assert expected in failure(cache, model, *flags, env=of(hub))


def test_a_denied_token(hub: Hub, cache: Path) -> None:
    hub.token = "right"
    sentence = failure(cache, "hf://org/open", env=of(hub, HF_TOKEN="wrong"))
    assert "Hugging Face refuses access to org/open (401): set tokenSecretRef" in sentence
    assert "wrong" not in sentence
    assert fetch(cache, "hf://org/open", env=of(hub, HF_TOKEN="right"))[0] == 0


def test_a_hub_that_is_gone(cache: Path) -> None:
    sentence = failure(cache, "hf://org/open", env={"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert "Hugging Face cannot be reached" in sentence


def test_a_hub_that_does_not_answer(cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began_s = time.monotonic()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sentence = failure(cache, "hf://org/open", env={"HF_ENDPOINT": address})
    assert "Hugging Face cannot be reached" in sentence
    assert time.monotonic() - began_s < 25


def test_a_hub_that_falls_silent_is_in_the_progress(hub: Hub, cache: Path) -> None:
    """huggingface_hub retries for a minute before it fails."""
    hub.stops_at = MIB
    port = free_port()
    process = start(cache, "hf://org/open", "--port", str(port), env=of(hub))
    assert hub.stopped.wait(60)
    deadline_s = time.monotonic() + 20
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        while "nothing received for 1" not in (found := client.get("/startupz").json()["reason"]):
            assert time.monotonic() < deadline_s, found
            time.sleep(0.2)
    process.kill()
    process.communicate(timeout=10)
    assert "GB, 0 MB/s; nothing received for 1" in found


def test_weights_that_are_pickled_alone(cache: Path) -> None:
    with Hub({"config.json": b"{}", "pytorch_model.bin": b"y" * 2000}) as hub:
        sentence = failure(cache, "hf://org/open", env=of(hub))
        assert "pickled weights (pytorch_model.bin) may run code: convert them, or set" in sentence
        assert hub.sent["pytorch_model.bin"] == 0
        assert fetch(cache, "hf://org/open", "--trust-remote-code=true", env=of(hub))[0] == 0


def test_the_files_are_listed(hub: Hub, cache: Path) -> None:
    process = start(cache, "hf://org/open", "--list-files=true", env=of(hub))
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(line.split()[2] for line in printed.splitlines()) == NEEDED
    checksum = f"sha256:{hashlib.sha256(OTHER).hexdigest()}"
    assert f"{len(OTHER)} {checksum} model-2.safetensors" in printed.splitlines()
    assert f"2 git-sha1:{git_id(b'{}')} config.json" in printed.splitlines()
    assert not hub.sent


def test_the_time_is_limited(hub: Hub, cache: Path) -> None:
    hub.stops_at = MIB
    sentence = failure(cache, "hf://org/open", "--timeout-s", "3", env=of(hub))
    assert "cannot be downloaded: not complete after 3 s (downloading the model" in sentence


@pytest.mark.parametrize("flags", [("--model", "org/name"), ("--model", "oci://a/b"), ("--nonsense",)])
def test_wrong_settings(cache: Path, flags: tuple[str, ...]) -> None:
    cache.mkdir()
    status, errors = fetch(cache, "hf://org/open", *flags, env={})
    assert status == 2, errors
    assert errors.startswith("dragoman fetch: ")
