"""How the operator writes spec.replicas, on every API server there is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.objects import Key
from dragoman_operator.autoscaling.writes import SpecReplicas
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

from .conftest import Server, until

ROOT = Path(__file__).parents[3]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def objects(server: Server, namespace: str) -> Iterator[str]:
    """The path of a namespace's TranslationDeployments."""
    definition = yaml.safe_load((ROOT / "crds/translationdeployments.dragoman.io.yaml").read_text())
    path = TRANSLATION_DEPLOYMENT.path(namespace)
    server.call("POST", CRDS, definition)
    until(lambda: server.answer("GET", path).status_code == 200)
    yield path
    name = definition["metadata"]["name"]
    server.call("DELETE", f"{CRDS}/{name}")
    until(lambda: server.answer("GET", f"{CRDS}/{name}").status_code == 404)


def manifest(**spec: Any) -> dict[str, Any]:
    kind = TRANSLATION_DEPLOYMENT
    fields: dict[str, Any] = {
        "model": {"uri": "hf://org/model", "promptFamily": "chatml-generic"},
        "engine": {"device": "cpu"},
        "autoscaling": {"maxReplicas": 4},
        **spec,
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "demo"},
        "spec": fields,
    }


async def test_decision_is_written_unless_the_object_changed(
    server: Server, namespace: str, objects: str
) -> None:
    server.call("APPLY", f"{objects}/demo", manifest(), fieldManager="kubectl")
    async with server.client() as api:
        kube = KubeClient(api, 10, "dragoman")
        key = Key(namespace, "demo")
        body = await kube.get(TRANSLATION_DEPLOYMENT, key)
        assert body is not None
        written, _ = await SpecReplicas(kube).write(body, 1, 3)
        assert written is not None
        stored = await kube.get(TRANSLATION_DEPLOYMENT, key)
        assert stored is not None
        for metadata in (written["metadata"], stored["metadata"]):
            metadata.pop("managedFields")
        assert written == stored
        with pytest.raises(ConflictError):
            await SpecReplicas(kube).write(body, 1, 2)
        above = {"spec": {"replicas": 100_000}}
        with pytest.raises(RefusedError):
            await kube.merge(TRANSLATION_DEPLOYMENT, key, above, "scale")

    server.call("APPLY", f"{objects}/demo", manifest(), fieldManager="kubectl")
    assert server.call("GET", f"{objects}/demo")["spec"]["replicas"] == 3
    # The API server does not record the owner of a custom resource's scale, so that there is no conflict.
    changed = server.call("APPLY", f"{objects}/demo", manifest(replicas=1), fieldManager="kubectl")
    assert changed["spec"]["replicas"] == 1
