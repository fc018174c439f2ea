"""Downloads that fail: the reason is in `Degraded` within 30 s of the failure; stores speak their real protocols."""

import os
import re
import socket
from contextlib import ExitStack

import pytest
from tests.support.hub import Hub
from tests.support.small_disk import small_disk

from dragoman_kube.kinds import Kind

pytest.importorskip("huggingface_hub", reason="comes with vLLM")
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
MIB = 1 << 20
DEADLINE_S = 30
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


async def claim(world, name):
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": world.namespace}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    await world.kube.create(CLAIM, body)


async def download(world, name, uri, variables, **model):
    env = [
        {"name": key, "value": value} for key, value in {"DRAGOMAN_ENGINE": "scripted", **variables}.items()
    ]
    model = {"uri": uri, "promptFamily": "chatml-generic", **model}
    await world.create(name, model=model, podTemplate={"env": env})


@pytest.fixture
def store():
    """An S3 server without buckets."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.mark.timeout(240)
async def test_a_download_reports_its_progress_and_its_failures(world):
    """From a hub of our own; each reason is in Degraded within 30 s of the change that causes it."""
    pytest.importorskip("huggingface_hub", reason="comes with vLLM")
    files = {"config.json": b"{}", "model.safetensors": os.urandom(1 << 20) * 30}
    with Hub(files) as hub:
        hub.token, hub.stops_at = "right", 20 << 20
        env = [
            {"name": "DRAGOMAN_ENGINE", "value": "scripted"},
            {"name": "HF_ENDPOINT", "value": hub.url},
            {"name": "HF_TOKEN", "value": "wrong"},
        ]
        await claim(world, "models")
        world.operator()
        model = {
            "uri": "hf://org/open",
            "promptFamily": "chatml-generic",
            "cache": {"persistentVolumeClaim": "models"},
        }
        await world.create(model=model, podTemplate={"env": env}, replicas=2)
        message = await world.until_condition("Degraded", "True", "DownloadFailed", timeout_s=30)
        assert "Hugging Face refuses access to org/open (401): set tokenSecretRef" in message

        env[2]["value"] = "right"
        hub.wrong = {"model.safetensors"}
        hub.stops_at = None
        await world.edit(podTemplate={"env": env})
        message = await world.until(
            lambda: condition(world, "Degraded"), lambda found: "has the sha256" in found, 30
        )
        assert "model.safetensors has the sha256" in message

        hub.wrong, hub.stops_at = set(), 25 << 20
        await world.edit(podTemplate={"labels": {"try": "again"}})
        progress = re.compile(r"; downloading the model: [1-9]\d*% of 0\.03 GB, \d+ MB/s")
        await world.until(lambda: condition(world, "Progressing"), progress.search, 40)
        sent = hub.sent["model.safetensors"]
        hub.stops_at = None
        hub.released.set()
        await world.until_complete()
        await world.until_condition("Degraded", "False")
        # Of two replicas one downloaded, the other waited for it.
        assert hub.sent["model.safetensors"] - sent < 1.5 * len(files["model.safetensors"])


async def condition(world, kind):
    return (await world.conditions()).get(kind, {}).get("message", "")


async def test_stores_that_are_not_there(world, store):
    """Each is reported within the deadline, though all fail at once on one machine."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        unanswered = f"http://127.0.0.1:{silent.getsockname()[1]}"
        nowhere = "http://127.0.0.1:9"
        cases = {
            "bucket": (
                *("s3://nowhere/it", {**KEYS, "AWS_ENDPOINT_URL": store}),
                "there is no bucket of s3://nowhere/it: check spec.model.uri",
            ),
            "hub": ("hf://org/open", {"HF_ENDPOINT": nowhere}, "Hugging Face cannot be reached"),
            "silent": ("hf://org/open", {"HF_ENDPOINT": unanswered}, "Hugging Face cannot be reached"),
            "store": (
                *("s3://models/it", {**KEYS, "AWS_ENDPOINT_URL": nowhere}),
                "the store of s3://models/it cannot be reached",
            ),
        }
        world.operator()
        for name, (uri, variables, _) in cases.items():
            await download(world, name, uri, variables)
        for name, (_, _, sentence) in cases.items():
            message = await world.until_condition("Degraded", "True", "DownloadFailed", name, DEADLINE_S)
            assert sentence in message


async def test_a_hub_that_goes_away_and_a_disk_that_fills_during_the_download(world, cluster):
    files = {"config.json": b"{}", "model.safetensors": os.urandom(MIB) * 30}
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(50))
        left, served = (stack.enter_context(Hub(files)) for _ in range(2))
        left.stops_at = served.stops_at = 10 * MIB
        volume = cluster.dir / "volumes" / world.namespace / "full"
        volume.parent.mkdir(parents=True)
        volume.symlink_to(disk)
        stack.callback(volume.unlink)
        await claim(world, "full")
        world.operator()
        await download(world, "left", "hf://org/open", {"HF_ENDPOINT": left.url})
        cache = {"persistentVolumeClaim": "full"}
        await download(world, "full", "hf://org/open", {"HF_ENDPOINT": served.url}, cache=cache)
        for hub in (left, served):
            await world.until(lambda hub=hub: stopped(hub), bool, 60)

        left.leave()
        (disk / "other").write_bytes(bytes(30 * MIB))
        served.released.set()
        message = await world.until_condition("Degraded", "True", "DownloadFailed", "left", DEADLINE_S)
        assert "Hugging Face cannot be reached" in message
        message = await world.until_condition("Degraded", "True", "DownloadFailed", "full", DEADLINE_S)
        assert "no space is left for" in message
        assert "give the cache volume more room" in message
        await world.delete("full")
        await world.until(lambda: world.pods("full"), lambda pods: not pods)


async def stopped(hub):
    return hub.stopped.is_set()
