"""Why pods wait for their volumes, by the kubelets' Events."""

from typing import Any

import pytest

from dragoman_operator.observed.diagnosis import diagnose, is_waiting_for_volumes, mount_failures

NOT_FOUND = 'MountVolume.SetUp failed for volume "glossary" : configmap "terms" not found'
NO_KEY = (
    'MountVolume.SetUp failed for volume "glossary" : configmap references non-existent config key: '
    "glossary.yaml"
)
TIMED_OUT = (
    "Unable to attach or mount volumes: unmounted volumes=[glossary]: timed out waiting for the condition"
)
NO_CLAIM = 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = no path'


def make_pod(uid: str = "1", begun: str = "False", **changes: Any) -> dict[str, Any]:
    conditions = [{"type": "PodReadyToStartContainers", "status": begun}]
    return {
        "metadata": {"name": f"demo-{uid}", "uid": uid},
        "spec": {"nodeName": "node"},
        "status": {"phase": "Pending", "conditions": conditions},
    } | changes


def make_event(message: str, second: int = 0, uid: str = "1", count: int | None = 2) -> dict[str, Any]:
    moment = f"2026-01-02T03:04:{second:02}Z"
    return {"message": message, "lastTimestamp": moment, "count": count, "involvedObject": {"uid": uid}}


@pytest.mark.parametrize(
    ("pod", "waits"),
    [
        (make_pod(), True),
        (make_pod(status={"phase": "Pending"}), True),
        (make_pod(begun="True"), False),
        (make_pod(status={"phase": "Running"}), False),
        (make_pod(spec={}), False),
        (make_pod(metadata={"name": "demo", "uid": "1", "deletionTimestamp": "2026-01-02T03:04:05Z"}), False),
    ],
    ids=["volumes", "status of an old kubelet", "containers", "nothing", "a node", "its end"],
)
def test_what_a_pod_waits_for(pod: dict[str, Any], waits: bool) -> None:
    assert is_waiting_for_volumes(pod) == waits


@pytest.mark.parametrize(
    ("events", "messages"),
    [
        ([], {}),
        ([make_event(NOT_FOUND)], {"1": NOT_FOUND}),
        ([make_event(NO_KEY, 9), make_event(NOT_FOUND, 3)], {"1": NO_KEY}),
        ([make_event(TIMED_OUT, 9), make_event(NOT_FOUND, 3)], {"1": NOT_FOUND}),
        ([make_event(TIMED_OUT)], {"1": TIMED_OUT}),
        ([make_event(NOT_FOUND, uid="another's")], {}),
        ([make_event(NOT_FOUND, count=1)], {}),
        ([make_event(NOT_FOUND, count=None)], {}),
        ([make_event(NOT_FOUND, count=None) | {"series": {"count": 2}}], {"1": NOT_FOUND}),
        ([{"message": NOT_FOUND, "eventTime": None, "count": 2, "involvedObject": {}}], {}),
    ],
)
def test_the_last_message_about_one_volume_counts_if_it_was_repeated(
    events: list[dict[str, Any]], messages: dict[str, str]
) -> None:
    assert mount_failures([make_pod()], events) == messages


def test_messages_of_a_pod_that_no_longer_waits_are_ignored() -> None:
    assert mount_failures([make_pod(begun="True")], [make_event(NOT_FOUND)]) == {}


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            NOT_FOUND,
            'pod demo-1 waits for its glossary: configmap "terms" not found; create the ConfigMap of '
            "spec.glossary.configMapKeyRef in this namespace, with its key, or change spec.glossary",
        ),
        (NO_KEY, "references non-existent config key: glossary.yaml; create the ConfigMap"),
        (NO_CLAIM, "pod demo-1 waits for its volume pvc-1: rpc error: code = Internal desc = no path; check"),
        (TIMED_OUT, "timed out waiting for the condition; check the claims"),
    ],
)
def test_sentence_has_the_action_to_take(message: str, sentence: str) -> None:
    (finding,) = diagnose(None, [make_pod()], {"1": message})
    assert finding.reason == "FailedMount"
    assert sentence in finding.message


def test_event_without_a_message_or_an_object_is_ignored() -> None:
    waiting = {
        "metadata": {"uid": "pod"},
        "spec": {"nodeName": "node"},
        "status": {"phase": "Pending"},
    }
    event = {"message": "why", "count": 2, "involvedObject": {"uid": "pod"}}
    assert mount_failures(
        [waiting], [{}, {"involvedObject": None}, {"count": 2, "involvedObject": {"uid": "pod"}}, event]
    ) == {"pod": "why"}
