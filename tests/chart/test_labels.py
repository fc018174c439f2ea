"""Labels and annotations that come from several values."""

from typing import Any

import pytest

EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "monitoring": {"enabled": True},
    "networkPolicy": {"restrictEgress": True},
    "router": {
        "enabled": True,
        "service": {"type": "LoadBalancer"},
        "ingress": {"enabled": True},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    },
}


def with_labels(common: dict[str, str], more: dict[str, str]) -> dict[str, Any]:
    """Values with labels in all places that take them."""
    return EVERYTHING | {
        "commonLabels": common,
        "podLabels": more,
        "monitoring": {**EVERYTHING["monitoring"], "labels": more},
        "router": {**EVERYTHING["router"], "podLabels": more},
    }


def pods(rendered: Any) -> list[dict[str, Any]]:
    """Metadata of the Deployments' pods."""
    return [item["spec"]["template"]["metadata"] for item in rendered.all("Deployment")]


@pytest.fixture
def own(render: Any) -> dict[str, dict[str, str]]:
    """The chart's own labels of each object, by kind and name."""
    return labels(render(**EVERYTHING))


def labels(rendered: Any) -> dict[str, dict[str, str]]:
    found = {f"{item['kind']} {item['metadata']['name']}": item["metadata"] for item in rendered.objects}
    found |= {
        f"pods of {item['metadata']['name']}": item["spec"]["template"]["metadata"]
        for item in rendered.all("Deployment")
    }
    return {name: metadata["labels"] for name, metadata in found.items()}


def test_labels_of_values_do_not_replace_the_charts(render: Any, own: Any) -> None:
    keys = {key for each in own.values() for key in each}
    assert {"app.kubernetes.io/name", "app.kubernetes.io/part-of", "grafana_dashboard"} < keys
    others = dict.fromkeys(keys, "other")
    for name, found in labels(render(**with_labels(others, others))).items():
        assert own[name].items() <= found.items(), name


@pytest.mark.parametrize("key", ["app.kubernetes.io/component", "app.kubernetes.io/part-of", "team"])
def test_selectors_find_the_pods_whatever_labels_are_added(render: Any, key: str) -> None:
    before, after = render(**EVERYTHING), render(**with_labels({key: "platform"}, {key: "mt"}))
    for kind in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor"):
        assert [item["spec"].get("selector") for item in after.all(kind)] == [
            item["spec"].get("selector") for item in before.all(kind)
        ]
    for item in after.all("Deployment"):
        selected = item["spec"]["selector"]["matchLabels"]
        assert selected.items() <= item["spec"]["template"]["metadata"]["labels"].items()


def test_labels_of_one_kind_of_object_take_precedence_over_common_labels(render: Any) -> None:
    rendered = render(**with_labels({"team": "platform"}, {"team": "mt"}))
    assert {metadata["labels"]["team"] for metadata in pods(rendered)} == {"mt"}
    for kind in ("PodMonitor", "PrometheusRule"):
        assert {item["metadata"]["labels"]["team"] for item in rendered.all(kind)} == {"mt"}
    for kind in ("Deployment", "Service", "ConfigMap", "Pod"):
        assert {item["metadata"]["labels"]["team"] for item in rendered.all(kind)} == {"platform"}


def test_labels_of_pods_are_on_those_pods_alone(render: Any) -> None:
    rendered = render(
        **(
            EVERYTHING
            | {"podLabels": {"a": "1"}, "router": {**EVERYTHING["router"], "podLabels": {"b": "2"}}}
        )
    )
    assert {
        (name, key) for name, found in labels(rendered).items() for key in ("a", "b") if key in found
    } == {("pods of release-dragoman", "a"), ("pods of release-dragoman-router", "b")}


def test_no_added_labels_and_annotations_may_be_null(render: Any) -> None:
    nothing = dict.fromkeys(["commonLabels", "podLabels", "podAnnotations"])
    rendered = render(
        **(
            EVERYTHING
            | nothing
            | {
                "monitoring": {"enabled": True, "labels": None},
                "router": {"enabled": True, "podLabels": None},
            }
        )
    )
    assert len(pods(rendered)) == 2


def test_pod_annotations_may_name_another_default_container(render: Any) -> None:
    name = "kubectl.kubernetes.io/default-container"
    (metadata,) = pods(render(podAnnotations={"a": "b"}))
    assert metadata["annotations"] == {name: "operator", "a": "b"}
    (metadata,) = pods(render(podAnnotations={name: "proxy"}))
    assert metadata["annotations"] == {name: "proxy"}
