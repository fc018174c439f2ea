"""Rules on several fields: those of the API server and of the operator agree, with the same messages."""

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import cel
import pytest
from jsonschema import Draft4Validator
from tests.support.deployments import make_body

from dragoman_operator.api.crd import custom_resource_definition
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.v1alpha1 import parse
from dragoman_operator.errors import SpecError

GPU = {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
CUSTOM = {"promptFamily": "custom", "promptTemplate": "{source}->{target}: {text}"}

GOOD: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one GPU": GPU,
    "one GPU as a string": {**GPU, "resources": {"limits": {"nvidia.com/gpu": "1"}}},
    "four GPUs": {
        "engine": {"device": "cuda", "tensorParallelSize": 4},
        "resources": {"limits": {"nvidia.com/gpu": 4, "memory": "64Gi"}},
    },
    "a MIG slice": {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/mig-3g.40gb": 1}}},
    "as many tokens as sequences": {"engine": {"maxNumSeqs": 64, "maxNumBatchedTokens": 64}},
    "a whole GPU": {**GPU, "engine": {"device": "cuda", "gpuMemoryUtilization": 1}},
    "cache in bytes": {"engine": {"kvCacheMemory": 1073741824}},
    "custom prompt": {"model": CUSTOM},
    "from zero to one": {"autoscaling": {"minReplicas": 1, "maxReplicas": 3}, "replicas": 0},
    "to zero": {"autoscaling": {"minReplicas": 0, "maxReplicas": 3}, "replicas": 0},
    "asleep": {**GPU, "autoscaling": {"minReplicas": 0, "maxReplicas": 3, "idle": "Sleep"}},
    "awake in turn": {
        **GPU,
        "autoscaling": {"maxReplicas": 1, "idle": "Sleep", "turnsSecretRef": {"name": "valkey"}},
    },
    "min is max": {"autoscaling": {"minReplicas": 3, "maxReplicas": 3}},
    "a Prometheus of the operator's": {"autoscaling": {"maxReplicas": 3, "prometheus": {}}},
    "a short window": {
        "autoscaling": {
            "maxReplicas": 3,
            "scaleDownStabilizationWindow": "5s",
            "targetQueueTime": "1s",
            "objective": "99.999%",
        }
    },
    "zero by hand": {"replicas": 0},
    "tuned": {"tuning": {"mode": "Recommend", "window": "2h"}},
    "zero while scaling is off": {"replicas": 0, "autoscaling": {"mode": "Off", "maxReplicas": 2}},
    "a claim": {"model": {"uri": "pvc://models/qwen/7b"}},
    "a claim's root": {"model": {"uri": "pvc://models"}},
    "a bucket": {"model": {"uri": "s3://bucket/model"}},
    "an image": {"model": {"uri": "oci://registry.example/model:1"}},
    "a file": {"model": {"uri": "file:///opt/model"}},
    "a revision": {"model": {"revision": "main"}},
    "drain of two minutes": {"rollout": {"drainTimeout": "2m"}},
    "an hour and a half to start": {"rollout": {"startTimeout": "1h30m"}},
    "a pod's last ten minutes": {"rollout": {"lameDuck": "10m"}},
    "no lame duck": {"rollout": {"lameDuck": "0s"}},
    "a patient pod": {"admission": {"requestTimeout": "1h"}, "engine": {"stallTimeout": "10s"}},
    "nothing waits": {"admission": {"maxQueuedSequences": 0, "maxQueuedTokens": 0, "deadlineAware": False}},
    "a glossary": {"glossary": {"configMapKeyRef": {"name": "terms", "key": "terms.tsv"}}},
    "a collector": {"tracing": {"otlpEndpoint": "https://[2001:db8::1]:65535/otlp"}},
    "any into any": {"languages": [{"source": "*", "targets": ["*"]}]},
    "into itself and others": {"languages": [{"source": "en", "targets": ["en", "de"]}]},
    "into a variant": {"languages": [{"source": "en", "targets": ["en-GB"]}]},
    "own labels": {"podTemplate": {"labels": {"team": "l10n", "example.com/tier": "gold"}}},
}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "more sequences than tokens": (
        {"engine": {"maxNumSeqs": 64, "maxNumBatchedTokens": 32}},
        "maxNumBatchedTokens must be at least maxNumSeqs",
    ),
    "two sizes of the cache": (
        {**GPU, "engine": {"device": "cuda", "gpuMemoryUtilization": 0.5, "kvCacheMemory": "1Gi"}},
        "set gpuMemoryUtilization or kvCacheMemory, not both",
    ),
    "GPU memory on the CPU": (
        {"engine": {"gpuMemoryUtilization": 0.5}},
        "gpuMemoryUtilization is for device cuda",
    ),
    "no GPU": ({"engine": {"device": "cuda"}}, "device cuda needs resources.limits nvidia.com/gpu"),
    "too few GPUs": (
        {**GPU, "engine": {"device": "cuda", "tensorParallelSize": 2}},
        "device cuda needs resources.limits nvidia.com/gpu",
    ),
    "too many GPUs": (
        {"engine": {"device": "cuda"}, "resources": {"limits": {"nvidia.com/gpu": "2"}}},
        "device cuda needs resources.limits nvidia.com/gpu",
    ),
    "a GPU for the CPU": ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "device cpu takes no GPU"),
    "a GPU with device cpu": (
        {"resources": {"requests": {"nvidia.com/gpu": 1}}},
        "device cpu takes no GPU",
    ),
    "two CPUs as GPUs": (
        {"engine": {"tensorParallelSize": 2}},
        "device cpu needs engine.tensorParallelSize 1",
    ),
    "no template": (
        {"model": {"promptFamily": "custom"}},
        "promptTemplate is required with promptFamily custom",
    ),
    "a template for nothing": (
        {"model": {"promptTemplate": CUSTOM["promptTemplate"]}},
        "promptTemplate is required with promptFamily custom",
    ),
    "a template without text": (
        {"model": CUSTOM | {"promptTemplate": "into {target}, please"}},
        "promptTemplate must contain {text}",
    ),
    "a template without target": (
        {"model": CUSTOM | {"promptTemplate": "translate {text}"}},
        "promptTemplate must contain {text}",
    ),
    "no scheme": ({"model": {"uri": "org/model"}}, "model.uri must be hf://"),
    "web address": ({"model": {"uri": "https://example.com/model"}}, "model.uri must be hf://"),
    "no organisation": ({"model": {"uri": "hf://model"}}, "model.uri must be hf://"),
    "relative file": ({"model": {"uri": "file://model"}}, "model.uri must be hf://"),
    "revision of a file": (
        {"model": {"uri": "file:///model", "revision": "main"}},
        "model.revision applies to hf:// models only",
    ),
    "a claim with a limit": (
        {"model": {"cache": {"persistentVolumeClaim": "models", "sizeLimit": "5Gi"}}},
        "set model.cache.sizeLimit or model.cache.persistentVolumeClaim, not both",
    ),
    "min above max": (
        {"autoscaling": {"minReplicas": 3, "maxReplicas": 2}},
        "autoscaling.minReplicas must not be above maxReplicas",
    ),
    "HPA to zero": (
        {"autoscaling": {"mode": "HPA", "minReplicas": 0, "maxReplicas": 2}},
        "a HorizontalPodAutoscaler does not scale to zero",
    ),
    "asleep on the CPU": (
        {"engine": {"device": "cpu"}, "autoscaling": {"maxReplicas": 2, "idle": "Sleep"}},
        "autoscaling.idle Sleep needs engine.device cuda",
    ),
    "asleep by KEDA": (
        {**GPU, "autoscaling": {"mode": "KEDA", "maxReplicas": 2, "idle": "Sleep"}},
        "autoscaling.idle Sleep needs mode Internal",
    ),
    "asleep at once": (
        {**GPU, "autoscaling": {"maxReplicas": 2, "idle": "Sleep", "idleSeconds": 0}},
        "autoscaling.idle Sleep needs mode Internal and idleSeconds of 1 or more",
    ),
    "turns without sleep": (
        {**GPU, "autoscaling": {"maxReplicas": 2, "turnsSecretRef": {"name": "valkey"}}},
        "autoscaling.turnsSecretRef needs autoscaling.idle Sleep",
    ),
    "a turn on two GPUs": (
        {
            "engine": {"device": "cuda", "tensorParallelSize": 2},
            "resources": {"limits": {"nvidia.com/gpu": 2}},
            "autoscaling": {"maxReplicas": 2, "idle": "Sleep", "turnsSecretRef": {"name": "valkey"}},
        },
        "autoscaling.turnsSecretRef needs engine.tensorParallelSize 1",
    ),
    "a token without a URL": (
        {"autoscaling": {"maxReplicas": 2, "prometheus": {"tokenSecretRef": {"name": "prom"}}}},
        "autoscaling.prometheus.tokenSecretRef needs autoscaling.prometheus.url",
    ),
    "no wait at all": (
        {"autoscaling": {"maxReplicas": 2, "targetQueueTime": "0s"}},
        "autoscaling.targetQueueTime must be between 1s and 1h",
    ),
    "tuned at once": ({"tuning": {"window": "5s"}}, "tuning.window must be between 10s and 2h"),
    "tuned once a day": ({"tuning": {"window": "24h"}}, "tuning.window must be between 10s and 2h"),
    "a window of a day": (
        {"autoscaling": {"maxReplicas": 2, "scaleDownStabilizationWindow": "24h"}},
        "autoscaling.scaleDownStabilizationWindow must be between 5s and 30m",
    ),
    "zero against the autoscaler": (
        {"replicas": 0, "autoscaling": {"mode": "HPA", "maxReplicas": 2}},
        "autoscaling.mode HPA does not allow replicas 0",
    ),
    "no drain": ({"rollout": {"drainTimeout": "0s"}}, "rollout.drainTimeout must be between 1s and 1h"),
    "a day's drain": ({"rollout": {"drainTimeout": "24h"}}, "rollout.drainTimeout must be between 1s and 1h"),
    "no time to start": (
        {"rollout": {"startTimeout": "5s"}},
        "rollout.startTimeout must be between 10s and 24h",
    ),
    "a lame duck of an hour": (
        {"rollout": {"lameDuck": "1h"}},
        "rollout.lameDuck must be between 0s and 10m",
    ),
    "no time for a request": (
        {"admission": {"requestTimeout": "0s"}},
        "admission.requestTimeout must be between 1s and 1h",
    ),
    "wedged at once": (
        {"engine": {"stallTimeout": "1s"}},
        "engine.stallTimeout must be between 10s and 1h",
    ),
    "into itself": (
        {"languages": [{"source": "de", "targets": ["en"]}, {"source": "en", "targets": ["en"]}]},
        "languages: each entry needs a target that differs from the source",
    ),
    "our labels": (
        {"podTemplate": {"labels": {"dragoman.io/deployment": "other"}}},
        "podTemplate.labels cannot set dragoman.io/",
    ),
    "common labels": (
        {"podTemplate": {"labels": {"app.kubernetes.io/name": "other"}}},
        "podTemplate.labels cannot set dragoman.io/",
    ),
}


@functools.cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def with_defaults(value: Any, node: Mapping[str, Any]) -> Any:
    """What the API server stores for `value`."""
    if isinstance(value, dict):
        filled = dict(value)
        for name, child in node.get("properties", {}).items():
            if name not in filled and "default" in child:
                filled[name] = copy.deepcopy(child["default"])
            if name in filled:
                filled[name] = with_defaults(filled[name], child)
        return filled
    return [with_defaults(item, node["items"]) for item in value] if isinstance(value, list) else value


def broken(value: Any, node: Mapping[str, Any]) -> Iterator[str]:
    """Messages of all the rules in the CRD that `value` breaks."""
    for rule in node.get("x-kubernetes-validations", ()):
        if cel.evaluate(rule["rule"], {"self": value}) is not True:
            yield rule["message"]
    if isinstance(value, dict):
        for name, child in node.get("properties", {}).items():
            if name in value:
                yield from broken(value[name], child)


def unknown(value: Any, node: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Fields that the API server would remove."""
    if isinstance(value, dict) and "properties" in node:
        for name, inner in value.items():
            if name not in node["properties"]:
                yield f"{path}.{name}"
            else:
                yield from unknown(inner, node["properties"][name], f"{path}.{name}")
    elif isinstance(value, list) and "items" in node:
        for inner in value:
            yield from unknown(inner, node["items"], f"{path}[]")


@pytest.mark.parametrize("change", GOOD.values(), ids=GOOD)
def test_good_specs_pass_both(change: dict[str, Any]) -> None:
    body = make_body(**change)
    stored = with_defaults(body, schema())
    assert list(broken(stored, schema())) == []
    assert [error.message for error in Draft4Validator(schema()).iter_errors(stored)] == []
    assert list(unknown(stored["spec"], schema()["properties"]["spec"])) == []
    # What the API server stored is read like what the user wrote.
    assert parse(stored).spec == parse(body).spec


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_specs_fail_both_with_the_same_sentence(change: dict[str, Any], message: str) -> None:
    body = make_body(**change)
    (refusal,) = broken(with_defaults(body, schema()), schema())
    assert refusal.startswith(message)
    with pytest.raises(SpecError) as caught:
        parse(body)
    assert refusal in str(caught.value)


def test_every_rule_has_a_spec_that_breaks_it() -> None:
    def rules(node: Mapping[str, Any]) -> Iterator[str]:
        yield from (rule["message"] for rule in node.get("x-kubernetes-validations", ()))
        for child in node.get("properties", {}).values():
            yield from rules(child)

    spec_rules = set(rules(schema()["properties"]["spec"]))
    assert spec_rules == {rule for rule in spec_rules if any(rule.startswith(bad) for _, bad in BAD.values())}


@pytest.mark.parametrize("name", ["Demo", "1demo", "de.mo", "-demo", "d" * 53])
def test_names_that_no_service_can_have(name: str) -> None:
    (refusal,) = broken(with_defaults(make_body(name), schema()), schema())
    assert refusal.startswith("metadata.name must be a DNS label of at most 52")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engine": {"maxNumSeqs": 0}}, "spec.engine.maxNumSeqs: "),
        ({"engine": {"gpuMemoryUtilization": 1.5}}, "spec.engine.gpuMemoryUtilization: "),
        ({"engine": {"colour": "red"}}, "spec.engine.colour is not known to this operator"),
        ({"engine": {"extraArgs": {"max_num_seqs": 4}}}, "engine.extraArgs repeats max_num_seqs"),
        ({"engine": {"extraArgs": {"max-model-len": 4}}}, "engine.extraArgs repeats max-model-len"),
        (
            {"engine": {"extraArgs": {"trust_remote_code": True}}},
            "engine.extraArgs: use model.trustRemoteCode instead of trust_remote_code",
        ),
        (
            {"engine": {"extraArgs": {"load_format": "pt", "worker-cls": "mine.Worker"}}},
            "engine.extraArgs: load_format, worker-cls may run code of the model, or code that is named there: set "
            "model.trustRemoteCode to true",
        ),
        ({"model": {"uri": None}}, "spec.model.uri: Field required"),
        ({"glossary": {}}, "spec.glossary.configMapKeyRef: Field required"),
        ({"model": {"promptFamily": "latin"}}, "spec.model.promptFamily: "),
        (
            {"languages": [{"source": "en", "targets": ["de"]}, {"source": "en", "targets": ["fr"]}]},
            "languages must have one entry for each source",
        ),
        ({"languages": [{"source": "english", "targets": ["de"]}]}, "spec.languages.0.source: "),
        ({"resources": {"limits": {"memory": "lots"}}}, "spec.resources.limits.memory"),
        ({"rollout": {"drainTimeout": "soon"}}, "spec.rollout.drainTimeout: "),
    ],
)
def test_invalid_stored_objects(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(make_body(**change))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("duration", "expected_s"), [("60s", 60), ("2m", 120), ("1h30m", 5400), ("1h1m1s", 3661), ("0s", 0)]
)
def test_durations_are_seconds(duration: str, expected_s: int) -> None:
    assert seconds(duration) == expected_s
