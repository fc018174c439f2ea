"""The images as the pods run them: read-only, as user 65532, without capabilities."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio import client, config

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import Backoff, ClusterOptions
from dragoman_devcluster.ports import free_port
from dragoman_operator.api.crd import custom_resource_definition

ROOT = Path(__file__).parents[2]
CLUSTER_KUBECONFIG = "/etc/kubeconfig"
TEXT = {"text": "The cat sleeps.", "source_lang": "en", "target_lang": "fr"}


def answers(url: str, body: dict[str, str] | None = None) -> bytes | None:
    """The body of a reply with status 200, else None."""
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read() if response.status == 200 else None
    except (urllib.error.URLError, OSError):
        return None


def engine_container() -> dict[str, Any]:
    """The engine container that the operator writes for examples/demo.yaml."""
    children = yaml.safe_load_all((ROOT / "tests/manifests/children/demo.yaml").read_text())
    (deployment,) = [child for child in children if child["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.timeout(1800)
def test_router_image_starts(router_image, wait_for, tmp_path):
    (router_image.files / "etc/none.yaml").write_text("deployments: []")
    port, admin = free_port(), free_port()
    log = tmp_path / "router.log"
    with router_image.started(
        "router", "--static=/etc/none.yaml", f"--port={port}", f"--admin-port={admin}",
        log=log, DRAGOMAN_ROUTER_HOST="127.0.0.1",
    ) as router:  # fmt: skip
        wait_for(router, log, lambda: answers(f"http://127.0.0.1:{admin}/livez"), 120)


@pytest.mark.vllm
@pytest.mark.timeout(2400)
def test_engine_and_router_images_translate_a_sentence(
    engine_image, router_image, wait_for, figures, tmp_path
):
    container = engine_container()
    assert container["command"] == engine_image.settings["Entrypoint"]
    # The kubelet makes this file; ours goes to the pod's /tmp.
    arguments = ["/tmp/termination" if part == "/dev/termination-log" else part for part in container["args"]]
    engine_port, port, admin = free_port(), free_port(), free_port()
    arguments[arguments.index("--port") + 1] = str(engine_port)
    log = tmp_path / "engine.log"
    began = time.monotonic()
    with engine_image.started(
        *arguments,
        writable=tuple(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] != "shm"),
        log=log,
        DRAGOMAN_HOST="127.0.0.1",
        **{variable["name"]: variable["value"] for variable in container["env"] if "value" in variable},
    ) as engine:
        url = f"http://127.0.0.1:{engine_port}"
        wait_for(engine, log, lambda: answers(f"{url}/readyz"), 600)
        ready_s = time.monotonic() - began
        translated = json.loads(answers(f"{url}/translate", TEXT) or b"{}")
        assert translated.get("translation") == "Le chat dort.", log.read_text()[-4000:]
        first_s = time.monotonic() - began
        figures.append(
            f"dragoman-engine: ready after {ready_s:.0f} s, first translation after {first_s:.0f} s"
        )

        static = router_image.files / "etc/routers.yaml"
        static.write_text(
            f'deployments: [{{name: default/demo, replicas: ["127.0.0.1:{engine_port}"],'
            " languages: [{source: en, targets: [fr]}]}]"
        )
        router_log = tmp_path / "router.log"
        with router_image.started(
            "router", "--static=/etc/routers.yaml", f"--port={port}", f"--admin-port={admin}",
            log=router_log, DRAGOMAN_ROUTER_HOST="127.0.0.1",
        ) as router:  # fmt: skip
            wait_for(router, router_log, lambda: answers(f"http://127.0.0.1:{admin}/readyz"), 120)
            routed = answers(f"http://127.0.0.1:{port}/translate", TEXT)
            assert routed is not None, router_log.read_text()[-4000:]
            assert json.loads(routed)["translation"] == "Le chat dort."


@pytest.fixture
def kubeconfig(tmp_path):
    options = ClusterOptions(dir=tmp_path / "cluster", api="embedded", gpus=0, backoff=Backoff(0.2, 2.0))
    bring_up(options)
    try:
        yield options.dir / "kubeconfig"
    finally:
        take_down(options.dir)


async def apply(kubeconfig: Path, manifest: dict[str, Any]) -> None:
    """Create the CRD and one TranslationDeployment."""
    async with await config.new_client_from_config(str(kubeconfig), persist_config=False) as api:
        crd: Any = custom_resource_definition()
        await client.ApiextensionsV1Api(api).create_custom_resource_definition(crd)
        await client.CustomObjectsApi(api).create_namespaced_custom_object(
            "dragoman.io", "v1alpha1", "default", "translationdeployments", manifest
        )


async def deployments(kubeconfig: Path) -> list[str]:
    async with await config.new_client_from_config(str(kubeconfig), persist_config=False) as api:
        found: Any = await client.AppsV1Api(api).list_namespaced_deployment("default")
    return [item.metadata.name for item in found.items]


@pytest.mark.timeout(1800)
def test_operator_image_makes_a_deployment_of_an_object(
    operator_image, kubeconfig, wait_for, figures, tmp_path
):
    manifest = yaml.safe_load((ROOT / "examples/demo.yaml").read_text())
    # No GPU is here: the pod stays pending, and no engine is started.
    manifest["spec"] |= {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    asyncio.run(apply(kubeconfig, manifest))
    inside = operator_image.files / CLUSTER_KUBECONFIG.lstrip("/")
    inside.write_bytes(kubeconfig.read_bytes())
    inside.chmod(0o644)
    health, metrics = free_port(), free_port()
    log = tmp_path / "operator.log"
    began = time.monotonic()
    with operator_image.started(
        "operator", f"--health-port={health}", f"--metrics-port={metrics}",
        log=log, DRAGOMAN_OPERATOR_HOST="127.0.0.1", KUBECONFIG=CLUSTER_KUBECONFIG,
    ) as operator:  # fmt: skip
        wait_for(operator, log, lambda: answers(f"http://127.0.0.1:{health}/readyz"), 120)
        figures.append(f"dragoman-operator: ready after {time.monotonic() - began:.0f} s")
        wait_for(operator, log, lambda: asyncio.run(deployments(kubeconfig)) == ["demo"], 60)
