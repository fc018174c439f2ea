"""What the operator exports of each object: its conditions, replicas and GPUs."""

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from dragoman_contract.metrics import Metric
from dragoman_kube.objects import Key
from dragoman_operator import metric_definitions
from dragoman_operator.metrics import Metrics, ObjectCollector, ScalingCollector

DEMO = Key("team-a", "demo")
LABELS = {"deployment_namespace": "team-a", "deployment": "demo"}


def pod(phase: str = "Running", node: str | None = "node", **limits: str) -> dict[str, Any]:
    named = {"nvidia.com/" + name.replace("_", "-"): count for name, count in limits.items()}
    containers = [{"name": "engine", "resources": {"limits": {"memory": "8Gi", **named}}}, {"name": "proxy"}]
    spec = {"containers": containers} | ({} if node is None else {"nodeName": node})
    return {"spec": spec, "status": {"phase": phase}}


def exported(status: dict[str, Any] | None, *pods: dict[str, Any], key: Key = DEMO) -> CollectorRegistry:
    registry = CollectorRegistry()
    deployment = {} if status is None else {"status": status}
    registry.register(ObjectCollector(lambda: [(key, deployment)], lambda: [(DEMO, each) for each in pods]))
    return registry


def gpus(*pods: dict[str, Any]) -> float | None:
    return exported({}, *pods).get_sample_value("dragoman_deployment_gpus", LABELS)


def test_conditions_and_replicas_are_those_of_the_status() -> None:
    condition = {
        "type": "Degraded",
        "status": "True",
        "reason": "ImagePullFailed",
        "message": "no such image",
    }
    registry = exported({"conditions": [condition], "desiredReplicas": 3, "readyReplicas": 1})
    labels = {name: condition[name] for name in ("type", "status", "reason")}
    assert registry.get_sample_value("dragoman_deployment_condition", LABELS | labels) == 1
    for state, count in (("desired", 3), ("ready", 1)):
        found = registry.get_sample_value("dragoman_deployment_replicas", LABELS | {"state": state})
        assert found == count


def test_an_object_without_status_has_no_conditions_and_no_replicas() -> None:
    registry = exported(None)
    assert registry.get_sample_value("dragoman_deployment_replicas", LABELS | {"state": "desired"}) == 0
    assert registry.get_sample_value("dragoman_deployment_gpus", LABELS) == 0


def test_gpus_are_those_of_pods_that_hold_them() -> None:
    assert gpus(pod(gpu="2"), pod(gpu="2", phase="Pending")) == 4, "a pod that pulls its image holds them too"
    assert gpus(pod(gpu="2", node=None), pod(gpu="1", phase="Failed"), pod(gpu="1", phase="Succeeded")) == 0
    assert gpus(pod(mig_1g_10gb="3"), pod()) == 3


def test_pods_of_deleted_objects_have_no_series() -> None:
    registry = exported({}, pod(gpu="1"), key=Key("team-a", "other"))
    assert registry.get_sample_value("dragoman_deployment_gpus", LABELS) is None


def test_the_operator_exports_the_metrics_that_are_defined() -> None:
    registry = Metrics().registry
    autoscaler: Any = SimpleNamespace(loads=dict, deployments=dict)
    registry.register(ScalingCollector(autoscaler))
    registry.register(ObjectCollector(lambda: [], lambda: []))
    shown = {family.name + "_total" * (family.type == "counter") for family in registry.collect()}
    defined = [each.name for each in vars(metric_definitions).values() if isinstance(each, Metric)]
    assert sorted(defined) == sorted(shown)
