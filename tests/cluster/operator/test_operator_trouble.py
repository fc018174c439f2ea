"""Failures are in the object's conditions, and running pods go on."""

import pytest
from kubernetes.aio.client.exceptions import ApiException

from dragoman_kube.kinds import DEPLOYMENT, SERVICE, Kind

pytestmark = pytest.mark.cluster

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ({"engine": {"device": "cuda"}}, "device cuda needs resources.limits nvidia.com/gpu"),
        ({"engine": {"device": "cpu", "maxNumSeqs": 64, "maxNumBatchedTokens": 32}}, "at least maxNumSeqs"),
        ({"engine": {"device": "cpu", "gpuMemoryUtilization": 1.5}}, "gpuMemoryUtilization"),
        ({"model": {"uri": "org/model", "promptFamily": "hy-mt2"}}, "model.uri must be hf://"),
        ({"model": {"uri": "hf://a/b", "promptFamily": "custom"}}, "promptTemplate is required"),
        ({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}, "minReplicas must not be above maxReplicas"),
        (
            {"replicas": 0, "autoscaling": {"mode": "HPA", "maxReplicas": 2}},
            "autoscaling.mode HPA does not allow replicas 0",
        ),
        ({"languages": [{"source": "english", "targets": ["de"]}]}, "languages"),
    ],
)
async def test_api_server_refuses_with_the_sentence(world, groups, sentence):
    with pytest.raises(ApiException) as caught:
        await world.create(**groups)
    assert caught.value.status == 422
    assert sentence in str(caught.value.body)


async def test_long_name_is_refused(world):
    with pytest.raises(ApiException, match="at most 52"):
        await world.create("d" * 53)


async def test_spec_that_only_the_operator_can_validate(world):
    world.operator()
    await world.create()
    await world.until_complete()
    (before,) = await world.pods()
    applied = await world.get(DEPLOYMENT)
    await world.edit(engine={"maxNumSeqs": 9, "extraArgs": {"max_num_seqs": 4}})
    message = await world.until_condition("Degraded", "True", "InvalidSpec")
    assert "engine.extraArgs repeats max_num_seqs" in message
    assert (await world.status())["message"].startswith("spec.engine")
    assert (await world.conditions())["Available"]["status"] == "True"
    assert [pod["metadata"]["uid"] for pod in await world.pods()] == [before["metadata"]["uid"]]
    assert (await world.get(DEPLOYMENT))["metadata"]["generation"] == applied["metadata"]["generation"]
    await world.edit(engine={"extraArgs": {"max_num_seqs": None}})
    await world.until_condition("Degraded", "False", "AsExpected")
    await world.until_complete()


async def test_a_failed_engine_reports_its_reason(world):
    world.operator()
    await world.create()
    await world.until_complete()
    (old,) = await world.pods()
    await world.edit(
        model={"uri": "file:///nowhere/model"},
        podTemplate={"env": [{"name": "DRAGOMAN_ENGINE", "value": "vllm"}]},
    )
    message = await world.until_condition("Degraded", "True", "EngineFailed")
    assert "/nowhere/model" in message
    assert "does not exist" in message
    assert (await world.status())["message"] == message
    # The pods of the last spec that worked go on.
    assert (await world.conditions())["Available"]["status"] == "True"
    assert old["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in await world.pods()}
    await world.edit(
        model={"uri": "file:///opt/dragoman/examples/demo-model"},
        podTemplate={"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
    )
    await world.until_condition("Degraded", "False")
    await world.until_complete()


async def test_missing_secret_is_reported(world):
    world.operator()
    await world.create(
        model={
            "uri": "file:///opt/dragoman/examples/demo-model",
            "promptFamily": "chatml-generic",
            "tokenSecretRef": {"name": "hugging-face"},
        }
    )
    message = await world.until_condition("Degraded", "True", "CreateContainerError")
    assert "hugging-face" in message


async def test_no_node_has_a_gpu(world):
    world.operator()
    await world.create(engine={"device": "cuda"}, resources={"limits": {"nvidia.com/gpu": 1}})
    message = await world.until_condition("Degraded", "True", "Unschedulable")
    assert "nvidia.com/gpu" in message


async def test_an_object_of_another_owner_is_not_adopted(world):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "demo", "namespace": world.namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
    }
    await world.kube.create(SERVICE, service)
    world.operator(**{"resync-s": 1})
    await world.create(replicas=0)
    message = await world.until_condition("Degraded", "True", "NameConflict")
    assert "Service demo exists and is owned by something else" in message
    theirs = await world.get(SERVICE)
    assert theirs["spec"]["selector"] == {"app": "theirs"}
    assert "ownerReferences" not in theirs["metadata"]
    await world.remove(SERVICE)
    await world.until_complete()
    await world.until_condition("Degraded", "False")


async def test_missing_glossary_is_reported_until_it_exists(world):
    world.operator()
    await world.create(glossary={"configMapKeyRef": {"name": "terms"}})
    message = await world.until_condition("Degraded", "True", "FailedMount")
    assert 'configmap "terms" not found; create the ConfigMap' in message
    metadata = {"name": "terms", "namespace": world.namespace}
    await world.kube.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await world.until(
        world.conditions,
        lambda conditions: "non-existent config key: glossary.yaml" in conditions["Degraded"]["message"],
    )
    await world.change(CONFIG_MAP, {"data": {"glossary.yaml": "- {source: en, target: de}"}}, "terms")
    message = await world.until_condition("Degraded", "True", "EngineFailed")
    assert "0.terms: Field required" in message
    good = "- {source: en, target: de, terms: {invoice: Rechnung}}"
    await world.change(CONFIG_MAP, {"data": {"glossary.yaml": good}}, "terms")
    await world.until_complete()
    await world.until_condition("Degraded", "False")
