"""Conditions, numbers and the Why column."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.deployments import (
    condition,
    make_observed,
    make_pod,
    make_td,
    message,
    planned,
    shown,
    shown_bad,
)

from dragoman_kube.kinds import DEPLOYMENT, HPA, SERVICE
from dragoman_kube.times import timestamp
from dragoman_operator.api.crd import custom_resource_definition
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.observed.snapshot import Download
from dragoman_operator.status.events import transitions


def test_first_status() -> None:
    td, observed = make_td(), make_observed()
    status = shown(td, observed, plan=planned(td, observed))
    assert condition(status, "Available") == ("False", "NoReadyReplicas")
    assert condition(status, "Progressing") == ("True", "Applying")
    assert condition(status, "Degraded") == ("False", "AsExpected")
    assert status["observedGeneration"] == 3
    assert (status["replicas"], status["readyReplicas"], status["desiredReplicas"]) == (0, 0, 2)
    assert status["selector"] == "app.kubernetes.io/component=engine,dragoman.io/deployment=demo"
    assert status["url"] == "http://demo.default.svc:8000"
    assert status["languages"] == "en>de,fr"


def test_the_message_of_ready_replicas_does_not_say_that_they_start() -> None:
    """The last decision is from before they were ready."""
    td = make_td(autoscaling={"minReplicas": 1, "maxReplicas": 2})
    observed = make_observed(td, [make_pod("a", ready=True)], updatedReplicas=1)
    view = ScalingView(1, Rule.STARTING, "kept at 1: no replica is ready yet", at=0.0)
    status = shown(td, observed, scaled=view)
    assert status["message"] == "1 of 1 replicas are ready"


def test_the_progress_of_a_download() -> None:
    td, starting = make_td(), pods("ab")
    for pod in starting:
        pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    observed = make_observed(td, starting, updatedReplicas=2)
    progress = Download("downloading the model: 43% of 3.20 GB, 110 MB/s", 0.43)
    waiting = Download("another pod downloads the model into the same volume")
    seen = replace(
        observed, downloads={"uid-a": waiting, "uid-b": progress, "another": Download("not this", 0.9)}
    )
    status = shown(td, seen)
    assert message(status, "Progressing") == f"0 of 2 replicas are ready, others start; {progress.sentence}"
    assert status["message"] == message(status, "Progressing")
    status = shown(td, replace(seen, downloads={"uid-a": waiting}))
    assert message(status, "Progressing").endswith(waiting.sentence)


FAILED = {"lastState": {"terminated": {"exitCode": 1, "message": "no such model"}}}
STALLED = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
EVICTED = make_pod("old", phase="Failed", reason="Evicted", message="disk pressure")


def pods(of: str) -> list[dict[str, Any]]:
    """A pod for each letter, in upper case if it is ready."""
    return [make_pod(name, ready=name.isupper()) for name in of]


SEEN: dict[str, tuple[int, list[dict[str, Any]], dict[str, Any], str]] = {
    "complete": (2, pods("AB"), {"updatedReplicas": 2}, "Ready !Complete !AsExpected"),
    "one starts": (2, pods("A"), {"updatedReplicas": 1}, "Ready Starting"),
    "one is not ready": (2, pods("Ab"), {"updatedReplicas": 2}, "Ready Starting"),
    "none is ready": (2, pods("ab"), {}, "!NoReadyReplicas Starting"),
    "none of three is ready": (2, pods("abc"), {"updatedReplicas": 1}, "!NoReadyReplicas Starting"),
    "one of two is old": (2, pods("AB"), {"updatedReplicas": 1}, "Ready Replacing"),
    "a scale-up that the Deployment does not count yet": (
        3,
        pods("ABc"),
        {"replicas": 2, "updatedReplicas": 2},
        "Ready Starting !AsExpected",
    ),
    "a scale-up after an eviction": (
        2,
        [EVICTED, *pods("Ab")],
        {"updatedReplicas": 2},
        "Ready Starting !AsExpected",
    ),
    "a surge": (2, pods("ABc"), {"updatedReplicas": 1}, "Ready Replacing"),
    "one too many": (2, pods("ABC"), {"updatedReplicas": 3}, "Ready ScalingDown"),
    "not observed": (2, pods("AB"), {"updatedReplicas": 2, "observedGeneration": 0}, "Ready Applying"),
    "a pod that only the Deployment counts": (
        2,
        pods("AB"),
        {"replicas": 3, "updatedReplicas": 2},
        "Ready Replacing",
    ),
    "a terminating pod": (
        1,
        [*pods("A"), make_pod("B", ready=True, deleted=True)],
        {"updatedReplicas": 1},
        "Ready !Complete",
    ),
    "zero": (0, [], {"updatedReplicas": 0}, "!ScaledToZero !Complete !AsExpected"),
    "a failing engine": (
        1,
        [*pods("A"), make_pod("b", container=FAILED)],
        {"updatedReplicas": 1},
        "Ready Replacing EngineFailed",
    ),
    "a stalled rollout": (
        2,
        [],
        {"conditions": [STALLED]},
        "!NoReadyReplicas !ProgressDeadlineExceeded ProgressDeadlineExceeded",
    ),
    "an evicted pod": (1, [EVICTED], {"updatedReplicas": 0}, "!NoReadyReplicas Starting Evicted"),
    "its successor": (1, [EVICTED, *pods("A")], {"updatedReplicas": 1}, "Ready !Complete !AsExpected"),
}
"""Desired replicas, pods, the Deployment's status; reasons of Available, Progressing and Degraded, with ! if False."""


def kstatus(status: dict[str, Any], generation: int = 3) -> str:
    """The status by the rules of cli-utils' kstatus, as Helm 4 and Flux use it."""
    if status.get("observedGeneration", generation) != generation:
        return "InProgress"
    found = {one["type"]: one["status"] for one in status.get("conditions", ())}
    if found.get("Reconciling") == "True":
        return "InProgress"
    if found.get("Stalled") == "True":
        return "Failed"
    return "Current" if found.get("Ready", "True") == "True" else "InProgress"


ARGO = re.compile(r"health\.dragoman\.io_TranslationDeployment: \|\n(.+?)```", re.DOTALL)


def argo(status: dict[str, Any]) -> str:
    """The health by the check of the docs, where there is a Lua."""
    lupa = pytest.importorskip("lupa")
    page = Path(__file__).parents[4] / "docs/how-to/install.md"
    (check,) = ARGO.findall(page.read_text())
    lua = lupa.LuaRuntime()
    body = {"metadata": {"generation": 3}, "status": status}
    return str(lua.eval(f"function(obj) {check} end")(lua.table_from(body, recursive=True))["status"])


def test_the_health_check_for_argo_cd_is_that_of_kstatus() -> None:
    names = {"Failed": "Degraded", "InProgress": "Progressing", "Current": "Healthy"}
    for replicas, found, deployment, _ in SEEN.values():
        td = make_td(replicas=replicas)
        status = shown(td, make_observed(td, found, **deployment))
        assert argo(status) == names[kstatus(status)]
        assert argo({**status, "observedGeneration": 2}) == "Progressing"
    assert kstatus({}) == "Current"
    (version,) = custom_resource_definition()["spec"]["versions"]
    new = version["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
    assert (kstatus(new), argo(new)) == ("InProgress", "Progressing")


def test_status_of_bad_spec_and_of_unknown_language_for_kstatus() -> None:
    assert kstatus(shown_bad(make_observed(), {}, "spec.model: Field required", 3)) == "Failed"
    td = make_td(replicas=1, languages=[{"source": "en", "targets": ["xx-notalang"]}])
    assert kstatus(shown(td, make_observed(td, pods("A"), updatedReplicas=1))) == "Current"
    assert kstatus(shown(td, make_observed(td, pods("a"), updatedReplicas=1))) == "InProgress"
    assert kstatus(shown(td, make_observed(td), refusals=("no",))) == "Failed"


@pytest.mark.parametrize(("replicas", "found", "deployment", "expected"), SEEN.values(), ids=SEEN)
def test_pods_give_the_conditions(
    replicas: int, found: list[dict[str, Any]], deployment: dict[str, Any], expected: str
) -> None:
    td = make_td(replicas=replicas)
    status = shown(td, make_observed(td, found, **deployment))
    kinds = ("Available", "Progressing", "Degraded")
    for kind, reason in zip(kinds, expected.split(), strict=False):
        assert condition(status, kind) == (str(not reason.startswith("!")), reason.lstrip("!"))
    degraded, progresses = (condition(status, kind)[0] == "True" for kind in ("Degraded", "Progressing"))
    assert kstatus(status) == ("Failed" if degraded else "InProgress" if progresses else "Current")
    live = [pod for pod in found if pod is not EVICTED and "deletionTimestamp" not in pod["metadata"]]
    assert status["replicas"] == max(len(live), deployment.get("replicas", 0))
    assert status["readyReplicas"] == sum(pod["metadata"]["name"].isupper() for pod in live)
    first = next((kind for kind in reversed(kinds[1:]) if condition(status, kind)[0] == "True"), "Available")
    ready = f"{message(status, first)}; spec.replicas is {replicas}"
    assert status["message"] == (ready if first == "Available" else message(status, first))


@pytest.mark.parametrize(
    ("ended_s", "started_s", "ready", "is_degraded"),
    [
        (10, 8, False, True),
        (10, 8, True, False),
        (10, 100, True, True),
        (900, 5, False, False),
        (900, 2000, True, True),
    ],
    ids=["its successor starts", "its successor is ready", "no successor", "long ago", "never replaced"],
)
def test_pod_that_has_ended_counts_until_it_is_replaced(
    ended_s: float, started_s: float, ready: bool, is_degraded: bool
) -> None:
    td = make_td(replicas=2)
    refused, other = make_pod("a", phase="Failed", reason="OutOfpods"), make_pod("b", ready=ready)
    observed = make_observed(td, updatedReplicas=1)
    pods = [refused, other] if started_s > ended_s else [refused, other, make_pod("c")]
    for pod, age_s in zip(pods, (ended_s, started_s, ended_s - 1), strict=False):
        pod["metadata"]["creationTimestamp"] = timestamp(observed.now - timedelta(seconds=age_s))
    status = shown(td, replace(observed, pods=tuple(pods)))
    assert condition(status, "Degraded") == (
        ("True", "PodRejected") if is_degraded else ("False", "AsExpected")
    )


def test_paused_deployment_does_not_progress() -> None:
    td = make_td()
    observed = make_observed(td, pods("AB"), replicas=2, updatedReplicas=0)
    observed.children[DEPLOYMENT]["spec"]["paused"] = True
    status = shown(td, observed)
    assert condition(status, "Progressing") == ("False", "Paused")
    assert condition(status, "Degraded") == ("True", "Paused")
    observed.children[DEPLOYMENT]["status"]["updatedReplicas"] = 2
    assert condition(shown(td, observed), "Degraded") == ("False", "AsExpected")


def test_replica_of_an_unreachable_node_does_not_start() -> None:
    td = make_td()
    lost = make_pod("b", ready=True)
    lost["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    status = shown(td, make_observed(td, [*pods("A"), lost], replicas=2, updatedReplicas=2))
    assert condition(status, "Degraded") == ("True", "NodeUnreachable")
    assert "others start" not in message(status, "Progressing")


def test_replica_that_gets_a_node_of_a_cluster_autoscaler_is_no_problem() -> None:
    td = make_td(replicas=3)
    third = make_pod("c", conditions=[{"type": "PodScheduled", "status": "False", "message": "no node"}])
    third["metadata"]["uid"] = "c"
    observed = make_observed(td, [*pods("AB"), third], replicas=3, updatedReplicas=3)
    assert condition(shown(td, observed), "Degraded") == ("True", "Unschedulable")
    status = shown(td, replace(observed, provisioned=frozenset({"c"})))
    assert condition(status, "Degraded") == ("False", "AsExpected")
    assert message(status, "Progressing") == (
        "2 of 3 replicas are ready, others start; a cluster autoscaler adds a node"
    )


def test_a_surging_rollout_counts_the_versions() -> None:
    status = shown(make_td(), make_observed(make_td(), pods("ABc"), updatedReplicas=1))
    assert message(status, "Progressing") == "1 of 3 pods have the current spec"
    status = shown(make_td(), make_observed(make_td(), pods("ABc"), updatedReplicas=3))
    assert message(status, "Progressing") == "1 replica too many: terminating"


def test_refusal_and_obstacle() -> None:
    td = make_td()
    refused = shown(td, make_observed(td), refusals=("apply Deployment default/demo: denied (403)",))
    assert condition(refused, "Degraded") == ("True", "ApplyFailed")
    taken = shown(td, make_observed(td), obstacles=("a Service named demo exists",))
    assert condition(taken, "Degraded") == ("True", "NameConflict")


@pytest.mark.parametrize("known", ["de", "pt-BR", "zh-Hant", "de-1996", "zh-yue", "iw", "qaa", "*"])
def test_tags_of_languages_are_expected(known: str) -> None:
    td = make_td(languages=[{"source": "en", "targets": [known]}])
    assert condition(shown(td, make_observed(td)), "Degraded") == ("False", "AsExpected")


def test_a_licence_that_forbids_a_use_is_named_and_degrades_nothing() -> None:
    model = {"uri": "hf://tencent/HY-MT1.5-7B", "revision": "main", "promptFamily": "hy-mt1.5"}
    td = make_td(model=model)
    status = shown(td, make_observed(td))
    assert condition(status, "Degraded") == ("False", "AsExpected")
    assert "may not be used in the European Union" in message(status, "Degraded")


def test_tags_of_no_language_are_reported() -> None:
    languages = [{"source": source, "targets": ["xx-notalang", "de"]} for source in ("en", "qq")]
    td = make_td(languages=languages)
    status = shown(td, make_observed(td))
    assert condition(status, "Degraded") == ("True", "UnknownLanguage")
    assert status["message"] == (
        "spec.languages has tags of no language: xx-notalang, qq; pods serve them as they are written"
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("Internal", ("True", "Internal")), ("External", ("True", "External")), ("Off", ("", ""))],
)
def test_scaling_active(mode: str, expected: tuple[str, str]) -> None:
    td = make_td(autoscaling={"mode": mode, "minReplicas": 1, "maxReplicas": 3})
    assert condition(shown(td, make_observed(td)), "ScalingActive") == expected


def test_same_snapshot_gives_the_same_status_later() -> None:
    td, observed = make_td(), make_observed(make_td())
    first = shown(td, observed)
    later = shown(td, replace(observed, now=observed.now + timedelta(hours=1)), first)
    assert later == first


def test_decision_of_a_former_operator_needs_no_stored_scaling() -> None:
    td = make_td(autoscaling={"minReplicas": 1, "maxReplicas": 3})
    restored = ScalingView(2, Rule.LOAD, "as before", at=0.0, restored=True)
    lost = shown(td, make_observed(td), scaled=restored)
    assert (lost["scaling"]["desiredReplicas"], lost["scaling"]["rule"]) == (2, "Load")
    stored = {
        "scaling": {"mode": "Internal", "rule": "Load", "reason": "as before", "timeToReadySeconds": 7.0}
    }
    kept = shown(td, make_observed(td), stored, scaled=restored)
    assert kept["scaling"]["timeToReadySeconds"] == 7


def test_transition_time_moves_with_the_status_alone() -> None:
    td, observed = make_td(replicas=1), make_observed(make_td(replicas=1))
    first = shown(td, observed)
    later = observed.now + timedelta(minutes=1)
    ready = replace(observed, now=later, pods=(make_pod(ready=True),))
    second = {item["type"]: item for item in shown(td, ready, first)["conditions"]}
    assert second["Available"]["lastTransitionTime"] == "2026-01-02T03:05:05Z"
    assert second["Degraded"]["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_transitions_are_changes_of_status_or_reason() -> None:
    td, observed = make_td(), make_observed(make_td())
    first = shown(td, observed)
    assert [change.reason for change in transitions({}, first)] == ["Starting"]
    assert transitions(first, first) == []
    worded = {**first, "conditions": [{**item, "message": "else"} for item in first["conditions"]]}
    assert transitions(first, worded) == []
    refused = shown(td, observed, first, refusals=("no",))
    (change,) = transitions(first, refused)
    assert (change.warning, change.reason, change.message) == (True, "ApplyFailed", "no")


def test_bad_spec_keeps_what_was_known() -> None:
    td = make_td(replicas=1)
    observed = make_observed(td, [make_pod(ready=True)], updatedReplicas=1)
    good = shown(td, observed)
    bad = shown_bad(observed, good, "spec.engine.colour is not known")
    assert condition(bad, "Degraded") == ("True", "InvalidSpec")
    assert message(bad, "Degraded") == "spec.engine.colour is not known; running pods stay as they are"
    assert condition(bad, "Available") == ("True", "Ready")
    assert (bad["observedGeneration"], bad["selector"], bad["url"]) == (4, good["selector"], good["url"])
    assert shown_bad(observed, bad, "spec.engine.colour is not known") == bad
    healed = shown(td, observed, bad)
    assert condition(healed, "Degraded") == ("False", "AsExpected")


def test_bad_spec_shows_the_pods_as_they_are_now() -> None:
    td = make_td()
    good = shown(td, make_observed(td, pods("AB"), updatedReplicas=2))
    bad = shown_bad(make_observed(td), good, "spec.engine.colour is not known")
    assert (bad["replicas"], bad["readyReplicas"], bad["desiredReplicas"]) == (0, 0, 2)
    assert condition(bad, "Available") == ("False", "NoReadyReplicas")
    assert condition(bad, "Progressing") == ("True", "Starting")
    assert bad["scaling"]["currentReplicas"] == 0
    assert {found["observedGeneration"] for found in bad["conditions"]} == {4}


def test_bad_spec_from_the_beginning() -> None:
    bad = shown_bad(make_observed(), {}, "spec.model: Field required", 1)
    assert {item["type"]: (item["status"], item["reason"]) for item in bad["conditions"]} == {
        "Available": ("False", "NoReadyReplicas"),
        "Progressing": ("False", "InvalidSpec"),
        "Degraded": ("True", "InvalidSpec"),
        "Ready": ("False", "InvalidSpec"),
        "Reconciling": ("False", "InvalidSpec"),
        "Stalled": ("True", "InvalidSpec"),
    }
    assert "desiredReplicas" not in bad
    assert shown_bad(make_observed(), bad, "spec.model: Field required", 1) == bad
    assert (bad["replicas"], bad["readyReplicas"]) == (0, 0)


def test_local_address_is_the_url_and_no_other_text() -> None:
    for address, host in (("127.9.0.1", "127.9.0.1"), ("x" * 1000, "demo.default.svc")):
        observed = make_observed(make_td())
        observed.children[SERVICE]["metadata"]["annotations"]["dragoman.io/local-address"] = address
        assert shown(make_td(), observed)["url"] == f"http://{host}:8000"


def test_columns_stay_short() -> None:
    many = [{"source": f"q{letter}", "targets": ["en", "de", "fr"]} for letter in "abcdefghijklmn"]
    td = make_td(languages=many)
    status = shown(td, make_observed(td), refusals=("x" * 5000,))
    assert len(status["languages"]) <= 60
    assert len(status["message"]) <= 200
    assert shown(make_td(languages=[]), make_observed(td))["languages"] == "any"


def test_status_of_a_newer_operator_is_kept_beside_a_bad_spec() -> None:
    newer = {"type": "Brilliant", "status": "True", "reason": "So", "message": ""}
    old = {"conditions": [newer], "brightness": 3}
    bad = shown_bad(make_observed(), old, "spec.engine.colour is not known")
    assert bad["brightness"] == 3
    assert [item["type"] for item in bad["conditions"]] == [
        "Available",
        "Progressing",
        "Degraded",
        "Ready",
        "Reconciling",
        "Stalled",
        "Brilliant",
    ]


def test_autoscaler_of_others_with_an_odd_reason_still_gives_a_status() -> None:
    td = make_td(autoscaling={"mode": "HPA", "maxReplicas": 3})
    observed = make_observed(td)
    odd = {"type": "ScalingActive", "status": "False", "reason": "not a word!", "message": None}
    hpa = {**observed.children[HPA], "status": {"conditions": ["odd", odd]}}
    observed = replace(observed, children={**observed.children, HPA: hpa})
    status = shown(td, observed, plan=planned(td, observed))
    assert condition(status, "ScalingActive") == ("False", "HPANotReported")


def test_changes_and_conditions_that_cannot_be_read_are_left_out() -> None:
    td, observed = make_td(), make_observed(make_td())
    old = {"scaling": {"changes": [{"from": -1}, "odd"]}, "conditions": ["odd", {}], "desiredReplicas": 7}
    status = shown(td, observed, old, plan=planned(td, observed))
    assert [change["from"] for change in status["scaling"]["changes"]] == [7]


@pytest.mark.parametrize(
    ("after", "events"),
    [
        ({"rule": "Requested", "reason": "kept at 2: 1 requested"}, ["kept at 2: 1 requested"]),
        ({"rule": "Load", "reason": "kept at 2"}, []),
        ({"rule": "Steady", "reason": "2 replicas"}, []),
    ],
)
def test_request_that_changes_nothing_is_an_event(after: dict[str, str], events: list[str]) -> None:
    old = {"desiredReplicas": 2, "scaling": {"rule": "Steady", "reason": "2 replicas"}}
    new = {"desiredReplicas": 2, "scaling": after}
    assert [change.message for change in transitions(old, new)] == events
    assert transitions(new, new) == []
    assert transitions(old, {**new, "desiredReplicas": 3}) == []
