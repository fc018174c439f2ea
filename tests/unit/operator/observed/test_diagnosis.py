"""Reasons why pods are not ready, as sentences."""

from typing import Any

import pytest
from tests.support.deployments import make_pod

from dragoman_operator.observed.containers import last_log_line
from dragoman_operator.observed.diagnosis import diagnose

SENTENCE = "the model /models/none does not exist: check spec.model.uri"


def terminated(**fields: Any) -> dict[str, Any]:
    return {"exitCode": 1, "reason": "Error", **fields}


DRIVER = "failed to create containerd task: nvidia-container-cli: initialization error: driver not loaded"

CONTAINERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "engine with a message": (
        {"state": {"terminated": terminated(message=SENTENCE)}},
        "EngineFailed",
        SENTENCE,
    ),
    "engine with a message at its last end": (
        {"state": {"running": {}}, "lastState": {"terminated": terminated(message=SENTENCE)}},
        "EngineFailed",
        SENTENCE,
    ),
    "engine waits to be restarted": (
        {
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": terminated(message=f"loading…\n{SENTENCE}\n\n")},
        },
        "EngineFailed",
        SENTENCE,
    ),
    "engine without a message": (
        {"state": {"terminated": terminated(exitCode=139)}},
        "EngineFailed",
        "the engine in pod demo-1 exited with status 139 and left no message",
    ),
    "killed, with the log of a start": (
        {"lastState": {"terminated": terminated(exitCode=137, message="INFO pod: ready after 8.8 s")}},
        "EngineFailed",
        "the engine in pod demo-1 was killed (SIGKILL, exit status 137): a probe failed too often",
    ),
    "terminated without a message": (
        {"state": {"running": {}}, "lastState": {"terminated": terminated(exitCode=143)}},
        "EngineFailed",
        "was killed (SIGTERM, exit status 143)",
    ),
    "crashed, with the end of a log": (
        {"lastState": {"terminated": terminated(exitCode=134, message="CUDA error: device lost")}},
        "EngineFailed",
        "exited with status 134; its log ends with: CUDA error: device lost",
    ),
    "exited with the log of a start": (
        {"lastState": {"terminated": terminated(message="2026-01-01 INFO pod: ready after 8.8 s")}},
        "EngineFailed",
        "exited with status 1; its log ends with: 2026-01-01 INFO pod: ready after 8.8 s",
    ),
    "ends without a failure again and again": (
        {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        },
        "EngineFailed",
        "exited with status 0 and left no message",
    ),
    "out of memory": (
        {"lastState": {"terminated": terminated(reason="OOMKilled", exitCode=137)}},
        "OOMKilled",
        "resources.limits.memory",
    ),
    "no image": (
        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}},
        "ImagePullFailed",
        "the image engine:cpu cannot be pulled (ImagePullBackOff): not found",
    ),
    "bad image name": (
        {"state": {"waiting": {"reason": "InvalidImageName"}}},
        "ImagePullFailed",
        "check spec.image",
    ),
    "no secret": (
        {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hf" not found'}}},
        "CreateContainerError",
        'pod demo-1 cannot be started: secret "hf" not found; check Secrets',
    ),
    "the runtime fails": (
        {
            "state": {"waiting": {"reason": "RunContainerError", "message": DRIVER}},
            "lastState": {"terminated": terminated(message=SENTENCE)},
        },
        "CreateContainerError",
        f"the container runtime cannot start pod demo-1: {DRIVER}; check podTemplate, and the container runtime",
    ),
    "the runtime failed and waits": (
        {
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": terminated(reason="StartError", exitCode=128, message=DRIVER)},
        },
        "CreateContainerError",
        f"the container runtime cannot start pod demo-1: {DRIVER}",
    ),
}


def test_a_failed_download_has_a_reason_of_its_own() -> None:
    pod = make_pod("demo-1")
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    fetch = {
        "name": "fetch",
        "ready": False,
        "state": state,
        "lastState": {"terminated": terminated(message=SENTENCE)},
    }
    waiting = {"name": "engine", "ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}
    pod["status"] |= {"initContainerStatuses": [fetch], "containerStatuses": [waiting]}
    assert diagnose(None, [pod]) == [("DownloadFailed", SENTENCE)]
    fetch |= {"ready": True, "state": {"terminated": terminated(exitCode=0)}}
    assert diagnose(None, [pod]) == []


@pytest.mark.parametrize(("container", "reason", "sentence"), CONTAINERS.values(), ids=CONTAINERS)
def test_container(container: dict[str, Any], reason: str, sentence: str) -> None:
    (finding,) = diagnose(None, [make_pod(container=container)])
    assert finding.reason == reason
    assert sentence in finding.message


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "crashes": (
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": terminated()}},
        "exited with status 1 and left no message",
    ),
    "out of memory": (
        {"lastState": {"terminated": terminated(reason="OOMKilled", exitCode=137)}},
        "was killed for using more memory than its limit allows",
    ),
    "no image": (
        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}},
        "cannot be pulled (ImagePullBackOff): not found",
    ),
    "no secret": (
        {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no secret"}}},
        "cannot be started: no secret",
    ),
    "the runtime failed": (
        {"lastState": {"terminated": terminated(reason="StartError", exitCode=128, message=DRIVER)}},
        f"cannot be started: {DRIVER}",
    ),
}


@pytest.mark.parametrize("kind", ["initContainerStatuses", "containerStatuses"])
@pytest.mark.parametrize(("container", "sentence"), OTHERS.values(), ids=OTHERS)
def test_container_that_a_webhook_added_is_not_the_engine(
    kind: str, container: dict[str, Any], sentence: str
) -> None:
    other = {"name": "istio-proxy", "image": "mesh/proxy:1", "ready": False, "restartCount": 3, **container}
    pod = make_pod(ready=True)
    pod["status"][kind] = [*pod["status"].get(kind, []), other]
    (finding,) = diagnose(None, [pod])
    assert finding.reason == "SidecarFailed"
    assert sentence in finding.message
    assert "istio-proxy (image mesh/proxy:1)" in finding.message
    assert "engine" not in finding.message
    assert "spec." not in finding.message


def test_an_image_volume_that_cannot_be_pulled_is_the_models() -> None:
    """The kubelet reports it in the container, whose own image is there."""
    message = 'Back-off pulling image "127.0.0.1:9/model:1": ErrImagePull: connection refused'
    pod = make_pod(container={"state": {"waiting": {"reason": "ImagePullBackOff", "message": message}}})
    pod.setdefault("spec", {})["volumes"] = [
        {"name": "cache", "emptyDir": {}},
        {"name": "model", "image": {"reference": "127.0.0.1:9/model:1"}},
    ]
    assert diagnose(None, [pod]) == [
        (
            "ImagePullFailed",
            f"the image 127.0.0.1:9/model:1 cannot be pulled (ImagePullBackOff): {message}; check spec.model.uri and "
            "spec.imagePullSecrets",
        )
    ]


def test_pod_that_serves_again_is_well() -> None:
    restarted = {"state": {"running": {}}, "lastState": {"terminated": terminated(message=SENTENCE)}}
    assert diagnose(None, [make_pod(ready=True, container=restarted)]) == []


def test_pod_that_exited_with_zero_has_no_finding() -> None:
    assert diagnose(None, [make_pod(container={"state": {"terminated": terminated(exitCode=0)}})]) == []


def test_pod_that_is_being_deleted_is_passed_over() -> None:
    assert diagnose(None, [make_pod(deleted=True, container={"state": {"terminated": terminated()}})]) == []


def test_no_node() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/3 nodes: 3 Insufficient nvidia.com/gpu.",
    }
    (finding,) = diagnose(None, [make_pod(conditions=[condition])])
    assert finding == (
        "Unschedulable",
        "pod demo-1 cannot be scheduled: 0/3 nodes: 3 Insufficient nvidia.com/gpu.",
    )


def test_a_claim_that_does_not_exist_is_no_lack_of_nodes() -> None:
    """The scheduler reports it, not the kubelet."""
    why = '0/1 nodes are available: persistentvolumeclaim "modles" not found. not found'
    condition = {"type": "PodScheduled", "status": "False", "message": why}
    assert diagnose(None, [make_pod(conditions=[condition])]) == [
        ("FailedMount", f"pod demo-1 waits for its volumes: {why}; check the claims that the spec names")
    ]


def test_eviction() -> None:
    (finding,) = diagnose(None, [make_pod(phase="Failed", reason="Evicted", message="disk pressure")])
    assert finding == ("Evicted", "pod demo-1 was evicted: disk pressure")


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("UnexpectedAdmissionError", "PodRejected"),
        ("OutOfcpu", "PodRejected"),
        ("OutOfnvidia.com/gpu", "PodRejected"),
        ("NodeAffinity", "PodRejected"),
        ("TopologyAffinityError", "PodRejected"),
        ("Terminated", "NodeShutdown"),
        ("NodeShutdown", "NodeShutdown"),
        ("Preempting", "Evicted"),
    ],
)
def test_pod_that_its_node_refused_or_ended(reason: str, found: str) -> None:
    """Its containers may have been killed for it: that explains nothing."""
    killed = {"state": {"terminated": terminated(exitCode=137)}}
    pod = make_pod(phase="Failed", reason=reason, message="why", container=killed)
    (finding,) = diagnose(None, [pod])
    assert finding.reason == found
    assert "why" in finding.message


def test_node_that_stopped_reporting() -> None:
    """The node controller makes its pods unready; the containers stay as they were last reported."""
    pod = make_pod(ready=True)
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    pod["spec"] = {"nodeName": "gpu-7"}
    (finding,) = diagnose(None, [pod])
    assert finding.reason == "NodeUnreachable"
    assert "the node gpu-7 of pod demo-1 does not report" in finding.message
    pod["status"]["conditions"][0]["reason"] = "ReadinessGatesNotReady"
    assert diagnose(None, [pod]) == []


def test_deployment_that_someone_paused() -> None:
    (finding,) = diagnose({"metadata": {"name": "demo"}, "spec": {"paused": True}}, [])
    assert finding.reason == "Paused"
    assert "kubectl rollout resume deployment demo" in finding.message


def test_pod_with_scheduling_gates_waits_for_a_queue() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    pod = make_pod(conditions=[condition])
    pod["spec"] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    (finding,) = diagnose(None, [pod])
    assert "scheduling gates (kueue.x-k8s.io/admission)" in finding.message


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (
            {
                "type": "ReplicaFailure",
                "status": "True",
                "message": "pods is forbidden: exceeded quota: gpus",
            },
            "QuotaExceeded",
        ),
        ({"type": "ReplicaFailure", "status": "True", "message": "denied by policy"}, "FailedCreate"),
        (
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
            "ProgressDeadlineExceeded",
        ),
    ],
)
def test_deployment(condition: dict[str, Any], reason: str) -> None:
    (finding,) = diagnose({"status": {"conditions": [condition]}}, [])
    assert finding.reason == reason


def test_most_specific_first_and_each_reason_once() -> None:
    stalled = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    failing = {"state": {"terminated": terminated(message=SENTENCE)}}
    pods = [make_pod("a", container=failing), make_pod("b", container=failing)]
    found = diagnose({"status": {"conditions": [stalled]}}, pods)
    assert [finding.reason for finding in found] == ["EngineFailed", "ProgressDeadlineExceeded"]


def test_the_newest_pod_explains_a_reason_that_several_have() -> None:
    def failing(name: str, second: int) -> dict[str, Any]:
        pod = make_pod(name, container={"state": {"terminated": terminated(message=f"{name} failed")}})
        pod["metadata"]["creationTimestamp"] = f"2026-01-02T03:04:{second:02}Z"
        return pod

    of_old_spec, of_new_spec = failing("old", 5), failing("new", 9)
    for pods in ([of_old_spec, of_new_spec], [of_new_spec, of_old_spec]):
        assert diagnose(None, pods) == [("EngineFailed", "new failed")]


def test_last_line_of_a_log() -> None:
    assert last_log_line("first\n  the last one  \n\n") == "the last one"
    assert last_log_line("") == ""
    assert len(last_log_line("x" * 5000)) == 600
