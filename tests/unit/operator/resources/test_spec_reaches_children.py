"""Every field of the spec does what it is for: a field without an effect fails here.

One peer compares only the model's URL and ignores an edited `maxNumSeqs` until something else changes
(vllm-project/production-stack, `deploymentNeedsUpdate`).
"""

import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from tests.support.deployments import children_of, make_td, version_of

from dragoman_contract.languages import Languages
from dragoman_kube.kinds import DEPLOYMENT, DISRUPTION_BUDGET, HPA, NETWORK_POLICY, SERVICE, SERVICE_ACCOUNT
from dragoman_operator.api.v1alpha1 import TranslationDeployment, TranslationDeploymentSpec, parse
from dragoman_operator.autoscaling.inputs import policy_of
from dragoman_operator.observed.snapshot import CHILD_KINDS, KEDA_KINDS
from dragoman_operator.resources.children import scaled_object, trigger_authentication

BASE: dict[str, Any] = {
    "model": {
        "uri": "hf://org/model",
        "revision": "main",
        "promptFamily": "custom",
        "promptTemplate": "{text} in {target}",
        "tokenSecretRef": {"name": "hf", "key": "token"},
    },
    "languages": [{"source": "en", "targets": ["de"]}],
    "engine": {"device": "cuda"},
    "resources": {"limits": {"nvidia.com/gpu": 1}},
    "glossary": {"configMapKeyRef": {"name": "terms"}},
    "replicas": 5,
    "autoscaling": {
        "mode": "Internal",
        "minReplicas": 1,
        "maxReplicas": 4,
        "prometheus": {"url": "http://prom:9090"},
    },
}
"""Every group is there, so that a change of one field is a change of that field alone."""

PODS, SIZE = "the pod template", "the Deployment, not the pods"
TUNING = "tuning, without effect on children"
POLICY, SOURCE = "the autoscaler's policy", "where KEDA and the autoscaler read"

EFFECTS: dict[str, tuple[Any, Any]] = {
    "model.uri": ({"uri": "hf://org/other"}, PODS),
    "model.revision": ({"revision": "v2"}, PODS),
    "model.trustRemoteCode": ({"trustRemoteCode": True}, PODS),
    "model.tokenSecretRef.name": ({"tokenSecretRef": {"name": "other", "key": "token"}}, PODS),
    "model.tokenSecretRef.key": ({"tokenSecretRef": {"name": "hf", "key": "other"}}, PODS),
    "model.promptFamily": ({"promptFamily": "seed-x", "promptTemplate": None}, PODS),
    "model.promptTemplate": ({"promptTemplate": "{target}: {text}"}, PODS),
    "model.cache.persistentVolumeClaim": ({"cache": {"persistentVolumeClaim": "models"}}, PODS),
    "model.cache.sizeLimit": ({"cache": {"sizeLimit": "5Gi"}}, PODS),
    "languages.source": ([{"source": "fr", "targets": ["de"]}], PODS),
    "languages.targets": ([{"source": "en", "targets": ["de", "fr"]}], PODS),
    "engine.device": ({"device": "cpu"}, PODS),
    "engine.dtype": ({"dtype": "bfloat16"}, PODS),
    "engine.maxNumSeqs": ({"maxNumSeqs": 33}, PODS),
    "engine.maxNumBatchedTokens": ({"maxNumBatchedTokens": 4096}, PODS),
    "engine.maxModelLen": ({"maxModelLen": 4096}, PODS),
    "engine.gpuMemoryUtilization": ({"gpuMemoryUtilization": 0.5}, PODS),
    "engine.kvCacheMemory": ({"kvCacheMemory": "12Gi"}, PODS),
    "engine.tensorParallelSize": ({"tensorParallelSize": 2}, PODS),
    "engine.quantization": ({"quantization": "fp8"}, PODS),
    "engine.schedulingPolicy": ({"schedulingPolicy": "ShortestFirst"}, PODS),
    "engine.stallTimeout": ({"stallTimeout": "5m"}, PODS),
    "engine.extraArgs": ({"extraArgs": {"enable_prefix_caching": False}}, PODS),
    "admission.maxQueuedSequences": ({"maxQueuedSequences": 0}, PODS),
    "admission.maxQueuedTokens": ({"maxQueuedTokens": 0}, PODS),
    "admission.deadlineAware": ({"deadlineAware": False}, PODS),
    "admission.requestTimeout": ({"requestTimeout": "2m"}, PODS),
    "admission.unreadyWhenOverloaded": ({"unreadyWhenOverloaded": True}, PODS),
    "translation.split": ({"split": "None"}, PODS),
    "translation.cacheSize": ({"cacheSize": "256Mi"}, PODS),
    "glossary.configMapKeyRef.name": ({"configMapKeyRef": {"name": "other"}}, PODS),
    "glossary.configMapKeyRef.key": ({"configMapKeyRef": {"name": "terms", "key": "terms.tsv"}}, PODS),
    "tracing.otlpEndpoint": ({"otlpEndpoint": "http://otel:4318"}, PODS),
    "resources.limits": ({"limits": {"nvidia.com/gpu": 1, "memory": "32Gi"}}, PODS),
    "resources.requests": ({"requests": {"memory": "16Gi"}}, PODS),
    "image": ("engine:mine", PODS),
    "imagePullPolicy": ("Always", PODS),
    "imagePullSecrets.name": ([{"name": "registry"}], PODS),
    "replicas": (2, SIZE),
    "autoscaling.mode": ({"mode": "Off"}, SIZE),
    "autoscaling.minReplicas": ({"minReplicas": 5, "maxReplicas": 5}, SIZE),
    "autoscaling.maxReplicas": ({"maxReplicas": 1}, SIZE),
    "autoscaling.targetConcurrency": ({"targetConcurrency": 8}, POLICY),
    "autoscaling.targetKvCacheUsage": ({"targetKvCacheUsage": 0.5}, POLICY),
    "autoscaling.idleSeconds": ({"idleSeconds": 60}, POLICY),
    "autoscaling.idle": ({"idle": "Sleep"}, PODS),
    "autoscaling.turnsSecretRef.name": ({"idle": "Sleep", "turnsSecretRef": {"name": "valkey"}}, PODS),
    "autoscaling.targetQueueTime": ({"targetQueueTime": "9s"}, POLICY),
    "autoscaling.objective": ({"objective": "99.9%"}, POLICY),
    "autoscaling.scaleDownStabilizationWindow": ({"scaleDownStabilizationWindow": "1m"}, POLICY),
    "autoscaling.prometheus.url": ({"prometheus": {"url": "http://other:9090"}}, SOURCE),
    "autoscaling.prometheus.tokenSecretRef.name": (
        {"prometheus": {"url": "http://prom:9090", "tokenSecretRef": {"name": "prom"}}},
        SOURCE,
    ),
    "autoscaling.prometheus.tokenSecretRef.key": (
        {"prometheus": {"url": "http://prom:9090", "tokenSecretRef": {"name": "prom", "key": "k"}}},
        SOURCE,
    ),
    "tuning.mode": ({"mode": "Recommend"}, TUNING),
    "tuning.window": ({"window": "1h"}, TUNING),
    "rollout.surge": ({"surge": "Never"}, SIZE),
    "rollout.drainTimeout": ({"drainTimeout": "90s"}, PODS),
    "rollout.lameDuck": ({"lameDuck": "30s"}, PODS),
    "rollout.startTimeout": ({"startTimeout": "10m"}, PODS),
    "podTemplate.labels": ({"labels": {"team": "l10n"}}, PODS),
    "podTemplate.annotations": ({"annotations": {"note": "x"}}, PODS),
    "podTemplate.nodeSelector": ({"nodeSelector": {"gpu": "h200"}}, PODS),
    "podTemplate.tolerations": ({"tolerations": [{"operator": "Exists"}]}, PODS),
    "podTemplate.affinity": ({"affinity": {"nodeAffinity": {}}}, PODS),
    "podTemplate.topologySpreadConstraints": ({"topologySpreadConstraints": [{"maxSkew": 1}]}, PODS),
    "podTemplate.runtimeClassName": ({"runtimeClassName": "nvidia"}, PODS),
    "podTemplate.priorityClassName": ({"priorityClassName": "high"}, PODS),
    "podTemplate.schedulerName": ({"schedulerName": "volcano"}, PODS),
    "podTemplate.env.name": ({"env": [{"name": "A", "value": "1"}]}, PODS),
    "podTemplate.env.value": ({"env": [{"name": "HOME", "value": "/elsewhere"}]}, PODS),
    "podTemplate.env.valueFrom": ({"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}, PODS),
    "podTemplate.volumes": ({"volumes": [{"name": "ca", "configMap": {"name": "ca"}}]}, PODS),
    "podTemplate.volumeMounts": ({"volumeMounts": [{"name": "tmp", "mountPath": "/ca"}]}, PODS),
    "podTemplate.securityContext": ({"securityContext": {}}, PODS),
    "service.type": ({"type": "LoadBalancer"}, SERVICE),
    "service.annotations": ({"annotations": {"lb": "internal"}}, SERVICE),
    "networkPolicy.enabled": ({"enabled": False}, NETWORK_POLICY),
    "networkPolicy.from": ({"from": [{"podSelector": {}}]}, NETWORK_POLICY),
    "networkPolicy.to": ({"to": [{"ipBlock": {"cidr": "10.0.0.8/32"}}]}, NETWORK_POLICY),
    "networkPolicy.egress": ({"egress": [{"ports": [{"port": 9000}]}]}, NETWORK_POLICY),
}
"""For every leaf of the spec: its group changed, and what that must change."""


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field of a model that holds no other model, under its name in YAML."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = [part for part in types_in(field.annotation) if issubclass(part, BaseModel)]
        if inner:
            yield from leaves(inner[0], f"{path}.")
        else:
            yield path


def types_in(annotation: Any) -> Iterator[type]:
    if get_origin(annotation) in (Union, types.UnionType, tuple):
        for part in get_args(annotation):
            yield from types_in(part)
    elif hasattr(annotation, "__metadata__"):
        yield from types_in(get_args(annotation)[0])
    elif isinstance(annotation, type):
        yield annotation


def base() -> TranslationDeployment:
    return parsed(BASE)


def parsed(spec: dict[str, Any]) -> TranslationDeployment:
    metadata = {"name": "demo", "namespace": "default", "uid": "1", "generation": 1}
    return parse({"metadata": metadata, "spec": spec})


def changed(path: str) -> TranslationDeployment:
    group, change = path.partition(".")[0], EFFECTS[path][0]
    if not isinstance(change, dict):
        return parsed(BASE | {group: change})
    fields = BASE.get(group, {}) | change
    spec = BASE | {group: {name: value for name, value in fields.items() if value is not None}}
    if path == "engine.device":
        spec["resources"] = {}
    if path == "engine.tensorParallelSize":
        spec["resources"] = {"limits": {"nvidia.com/gpu": 2}}
    return parsed(spec)


def test_table_names_every_field_and_no_other() -> None:
    assert set(leaves(TranslationDeploymentSpec)) == EFFECTS.keys()


def test_fields_in_lists_and_options_are_found() -> None:
    found = set(leaves(TranslationDeploymentSpec))
    assert {f"languages.{name}" for name in Languages.model_fields} <= found
    assert "model.tokenSecretRef.key" in found


def as_keda(td: TranslationDeployment) -> tuple[Any, Any]:
    """KEDA's objects for the same sources, which the autoscaler reads from the spec."""
    scaling = td.spec.autoscaling
    assert scaling is not None
    autoscaling = scaling.model_copy(update={"mode": "KEDA"})
    delegated = replace(td, spec=td.spec.model_copy(update={"autoscaling": autoscaling}))
    return trigger_authentication(delegated), scaled_object(delegated, "")


@pytest.mark.parametrize("path", EFFECTS)
def test_change_of_a_field_changes_what_it_should(path: str) -> None:
    effect = EFFECTS[path][1]
    before, after = children_of(base()), children_of(changed(path))
    differing = {kind for kind in before if before[kind] != after[kind]}
    if effect == POLICY:
        assert differing == set()
        assert policy_of(base().spec, 5.0) != policy_of(changed(path).spec, 5.0)
    elif effect == TUNING:
        assert differing == set()
        assert base().spec.tuning != changed(path).spec.tuning
    elif effect == SOURCE:
        assert differing == set()
        assert as_keda(base()) != as_keda(changed(path))
    elif effect in (SERVICE, NETWORK_POLICY):
        assert differing == {effect}
    else:
        assert differing - {NETWORK_POLICY} == {DEPLOYMENT}
        templates = [(found[DEPLOYMENT] or {})["spec"]["template"] for found in (before, after)]
        assert (templates[0] != templates[1]) == (effect == PODS)
    sources = [version_of(td).source for td in (base(), changed(path))]
    assert (sources[0] != sources[1]) == (effect == PODS)


@pytest.mark.parametrize("path", [path for path, (_, effect) in EFFECTS.items() if effect == PODS])
def test_replaced_pods_still_match_the_selector(path: str) -> None:
    # A Deployment's selector cannot be changed.
    deployments = [children_of(td)[DEPLOYMENT] or {} for td in (base(), changed(path))]
    assert deployments[0]["spec"]["selector"] == deployments[1]["spec"]["selector"]
    for deployment in deployments:
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_same_input_gives_equal_output() -> None:
    assert children_of(make_td()) == children_of(make_td())


def test_all_children_carry_owner_name_and_labels() -> None:
    td = make_td("european", autoscaling={"mode": "HPA", "maxReplicas": 3})
    children = children_of(td)
    assert set(children) == {*CHILD_KINDS, *KEDA_KINDS}
    made = {kind: manifest for kind, manifest in children.items() if manifest is not None}
    assert made.keys() == {SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET, HPA, DEPLOYMENT}
    for kind, manifest in made.items():
        assert (manifest["apiVersion"], manifest["kind"]) == (kind.api_version, kind.name)
        assert manifest["metadata"]["name"] == "european"
        assert manifest["metadata"]["labels"]["dragoman.io/deployment"] == "european"
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (td.uid, True)
