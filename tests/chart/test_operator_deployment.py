import json
import os
import tomllib

import pytest

from dragoman_contract.http import LIVE_PATH, OPERATOR_HEALTH_PORT, OPERATOR_METRICS_PORT, READY_PATH
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.settings import ENV_PREFIX, Settings


@pytest.fixture
def settings(render, monkeypatch):
    """The settings that the operator reads from its container's arguments."""
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        monkeypatch.delenv(name)

    def read(**values) -> Settings:
        command, *arguments = render(**values).container["args"]
        assert command == "operator"
        return Settings(_cli_parse_args=arguments)

    return read


def test_default_arguments_are_the_operators_own_defaults(settings, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_OPERATOR_IDENTITY", "me")
    found = settings().model_dump()
    unsaid = Settings().model_dump()
    assert {name for name in found if found[name] != unsaid[name]} == {
        "deletion_costs",
        "lease_name",
        "lease_namespace",
        "router_namespace",
    }


def test_every_value_reaches_the_setting_it_names(settings):
    found = settings(
        watchNamespaces=["team-a", "team-b"],
        engineImages={
            "cpu": {"repository": "example.org/engine", "tag": "1-cpu"},
            "cuda": {"repository": "example.org/engine", "tag": "1@sha256:" + "0" * 64},
        },
        prometheus={"url": "http://prom:9090", "tokenSecret": {"name": "prom"}},
        logLevel="debug",
        logFormat="json",
        rbac={"patchPods": True},
        extraArgs=["--workers=16"],
    )
    assert found.namespaces == ("team-a", "team-b")
    assert found.cpu_image == "example.org/engine:1-cpu"
    assert found.cuda_image == "example.org/engine:1@sha256:" + "0" * 64
    assert found.prometheus_url == "http://prom:9090"
    assert str(found.prometheus_token_file) == "/var/run/prometheus/token"
    assert found.log_level == "debug"
    assert found.deletion_costs
    assert found.log_format == "json"
    assert found.workers == 16


def test_replicas_share_a_lease_of_their_release(settings):
    found = settings(replicas=2)
    assert (found.lease_namespace, found.lease_name) == ("dragoman-system", "release-dragoman")


def test_choices_of_the_schema_are_the_settings(chart):
    schema = json.loads((chart / "values.schema.json").read_text())["properties"]
    properties = Settings.model_json_schema()["properties"]
    assert schema["logLevel"]["enum"] == properties["log_level"]["enum"]
    assert schema["logFormat"]["enum"] == properties["log_format"]["enum"]


def test_images_are_tagged_with_the_version_of_the_distribution(render, root):
    version = tomllib.loads((root / "operator/pyproject.toml").read_text())["project"]["version"]
    container = render().container
    assert container["image"] == f"dragoman-operator:{version}"
    assert f"--cpu-image=dragoman-engine:{version}-cpu" in container["args"]


def test_images_can_be_named_by_digest(render):
    digests = [f"sha256:{digit * 64}" for digit in "abcd"]
    rendered = render(
        image={"digest": digests[0]},
        engineImages={"cpu": {"digest": digests[1]}, "cuda": {"tag": "1", "digest": digests[2]}},
        router={"enabled": True, "image": {"digest": digests[3]}},
    )
    operator, router = (
        rendered.named("Deployment", name)["spec"]["template"]["spec"]["containers"][0]
        for name in ("release-dragoman", "release-dragoman-router")
    )
    assert operator["image"] == f"dragoman-operator:0.1.0@{digests[0]}"
    assert f"--cpu-image=dragoman-engine:0.1.0-cpu@{digests[1]}" in operator["args"]
    assert f"--cuda-image=dragoman-engine:1@{digests[2]}" in operator["args"]
    test = rendered.one("Pod")["spec"]["containers"][0]
    assert router["image"] == test["image"] == f"dragoman-router:0.1.0@{digests[3]}"


def test_every_directory_of_a_node_has_a_limit(render):
    rendered = render(router={"enabled": True})
    pods = [item["spec"]["template"]["spec"] for item in rendered.all("Deployment")]
    directories = [volume["emptyDir"] for pod in pods for volume in pod["volumes"] if "emptyDir" in volume]
    assert [directory["sizeLimit"] for directory in directories] == ["16Mi", "16Mi"]


def test_pod_runs_restricted(render):
    """What the Pod Security Standard `restricted` requires, and a read-only root file system.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    """
    rendered = render()
    assert rendered.pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert rendered.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(rendered.pod)
    assert all("hostPath" not in volume for volume in rendered.pod["volumes"])


def test_container_has_requests_and_a_memory_limit(render):
    resources = render().container["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert set(resources["limits"]) == {"memory"}, (
        "a CPU limit throttles an operator that is needed most then"
    )


def test_variables_of_services_stay_out(render):
    """A Service dragoman-operator would set DRAGOMAN_OPERATOR_PORT to tcp://…, which is no setting."""
    assert render().pod["enableServiceLinks"] is False


def test_probes_request_the_operators_health_server(render):
    container = render().container
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": OPERATOR_HEALTH_PORT, "metrics": OPERATOR_METRICS_PORT}
    probes = {probe: container[probe]["httpGet"] for probe in container if probe.endswith("Probe")}
    assert probes == {
        "startupProbe": {"path": LIVE_PATH, "port": "health"},
        "livenessProbe": {"path": LIVE_PATH, "port": "health"},
        "readinessProbe": {"path": READY_PATH, "port": "health"},
    }


def test_selectors_find_the_pods_and_nothing_changes_them(render):
    rendered = render(replicas=2, podLabels={"team": "a"})
    labels = rendered.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    expected = {
        "app.kubernetes.io/name": "dragoman",
        "app.kubernetes.io/instance": "release",
        "app.kubernetes.io/component": "operator",
    }
    selectors = [
        rendered.one("Deployment")["spec"]["selector"]["matchLabels"],
        rendered.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        rendered.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        rendered.one("Service")["spec"]["selector"],
    ]
    assert selectors == [expected] * 4
    assert expected.items() <= labels.items()


def test_one_replica_has_no_budget_that_would_block_a_drain(render):
    assert "PodDisruptionBudget" not in render(replicas=1).kinds


def test_replicas_spread_over_nodes(render):
    rendered = render(replicas=2)
    assert rendered.one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    (spread,) = rendered.pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"


def test_every_object_is_in_the_releases_namespace_or_cluster_wide(render):
    rendered = render(replicas=2, monitoring={"enabled": True})
    cluster_wide = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    for item in rendered.objects:
        namespace = item["metadata"].get("namespace")
        assert (namespace is None) == (item["kind"] in cluster_wide), item["kind"]
        assert item["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_notes_name_the_next_commands_for_the_namespace_that_is_watched(notes):
    printed = notes(watchNamespaces=["team-a"])
    assert "kubectl apply --namespace team-a -f -" in printed
    assert "\n  kubectl logs" in printed
    # Indented, a here-document does not end; a variable is set in each shell differently.
    assert "<<" not in printed
    manifest = json.loads(printed.partition("echo '")[2].partition("'")[0])
    TranslationDeploymentSpec.model_validate(manifest["spec"])
    assert "kubectl get translations --namespace team-a" in printed
    assert "kubectl logs --namespace dragoman-system deployment/release-dragoman" in printed
