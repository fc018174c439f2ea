"""Conditions, numbers and the Why column."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.deployments import make_observed, make_pod, make_td, planned, shown, shown_bad

from dragoman_kube.kinds import HPA, SERVICE
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.observed.snapshot import Download
from dragoman_operator.status.events import transitions

Status = dict[str, Any]


def condition(status: Status, name: str) -> tuple[str, str]:
    (found,) = (item for item in status["conditions"] if item["type"] == name)
    return found["status"], found["reason"]


def message(status: Status, name: str) -> str:
    (found,) = (item for item in status["conditions"] if item["type"] == name)
    return str(found["message"])


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


def test_complete() -> None:
    td = make_td()
    pods = [make_pod("a", ready=True), make_pod("b", ready=True)]
    status = shown(td, make_observed(td, pods, updatedReplicas=2))
    assert condition(status, "Available") == ("True", "Ready")
    assert condition(status, "Progressing") == ("False", "Complete")
    assert status["message"] == "2 of 2 replicas are ready; spec.replicas is 2"


def test_the_message_of_ready_replicas_does_not_say_that_they_start() -> None:
    """The last decision is from before they were ready."""
    td = make_td(autoscaling={"minReplicas": 1, "maxReplicas": 2})
    observed = make_observed(td, [make_pod("a", ready=True)], updatedReplicas=1)
    view = ScalingView(1, Rule.STARTING, "kept at 1: no replica is ready yet", at=0.0)
    status = shown(td, observed, scaled=view)
    assert status["message"] == "1 of 1 replicas are ready"


def test_the_progress_of_a_download() -> None:
    td, pods = make_td(), [make_pod("a"), make_pod("b")]
    for pod in pods:
        pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    observed = make_observed(td, pods, updatedReplicas=2)
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


@pytest.mark.parametrize(
    ("pods", "updated", "reason"),
    [
        ([("a", True)], 1, "Starting"),
        ([("a", True), ("b", False)], 2, "Starting"),
        ([("a", False), ("b", False)], 0, "Starting"),
        ([("a", False), ("b", False), ("c", False)], 1, "Starting"),
        ([("a", True), ("b", True)], 1, "Replacing"),
        ([("a", True), ("b", True), ("c", False)], 1, "Replacing"),
        ([("a", True), ("b", True), ("c", True)], 3, "ScalingDown"),
    ],
)
def test_under_way(pods: list[tuple[str, bool]], updated: int, reason: str) -> None:
    td = make_td()
    found = make_observed(td, [make_pod(name, ready=ready) for name, ready in pods], updatedReplicas=updated)
    status = shown(td, found)
    assert condition(status, "Progressing") == ("True", reason)
    assert status["message"] == message(status, "Progressing")


def test_a_surging_rollout_counts_the_versions() -> None:
    pods = [make_pod("a", ready=True), make_pod("b", ready=True), make_pod("new")]
    status = shown(make_td(), make_observed(make_td(), pods, updatedReplicas=1))
    assert message(status, "Progressing") == "1 of 3 pods have the current spec"
    status = shown(make_td(), make_observed(make_td(), pods, updatedReplicas=3))
    assert message(status, "Progressing") == "1 replica too many: terminating"


def test_deployment_that_its_controller_has_not_observed() -> None:
    td = make_td()
    pods = [make_pod("a", ready=True), make_pod("b", ready=True)]
    status = shown(td, make_observed(td, pods, updatedReplicas=2, observedGeneration=0))
    assert condition(status, "Progressing") == ("True", "Applying")


def test_a_pod_that_only_the_deployment_s_status_counts_yet_is_surplus() -> None:
    td = make_td()
    pods = [make_pod("old", ready=True), make_pod("new", ready=True)]
    status = shown(td, make_observed(td, pods, replicas=3, updatedReplicas=2))
    assert condition(status, "Progressing") == ("True", "Replacing")


def test_terminating_pods_do_not_count() -> None:
    td = make_td(replicas=1)
    pods = [make_pod("a", ready=True), make_pod("b", ready=True, deleted=True)]
    status = shown(td, make_observed(td, pods, updatedReplicas=1))
    assert (status["replicas"], status["readyReplicas"]) == (1, 1)
    assert condition(status, "Progressing") == ("False", "Complete")


def test_zero_is_not_available_and_not_degraded() -> None:
    td = make_td(replicas=0)
    status = shown(td, make_observed(td, updatedReplicas=0))
    assert condition(status, "Available") == ("False", "ScaledToZero")
    assert condition(status, "Progressing") == ("False", "Complete")
    assert condition(status, "Degraded") == ("False", "AsExpected")


def test_failing_engine_speaks_in_degraded_and_why() -> None:
    td = make_td(replicas=1)
    failed = {"lastState": {"terminated": {"exitCode": 1, "message": "no such model"}}}
    pods = [make_pod("old", ready=True), make_pod("new", container=failed)]
    status = shown(td, make_observed(td, pods, updatedReplicas=1))
    assert condition(status, "Available") == ("True", "Ready")
    assert condition(status, "Degraded") == ("True", "EngineFailed")
    assert message(status, "Degraded") == status["message"] == "no such model"


def test_stalled_rollout() -> None:
    stalled = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    td = make_td()
    status = shown(td, make_observed(td, conditions=[stalled]))
    assert condition(status, "Progressing") == ("False", "ProgressDeadlineExceeded")
    assert condition(status, "Degraded") == ("True", "ProgressDeadlineExceeded")


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
    [("Internal", [("True", "Internal")]), ("External", [("True", "External")]), ("Off", [])],
)
def test_scaling_active(mode: str, expected: list[tuple[str, str]]) -> None:
    td = make_td(autoscaling={"mode": mode, "minReplicas": 1, "maxReplicas": 3})
    status = shown(td, make_observed(td))
    found = [
        condition(status, "ScalingActive") for item in status["conditions"] if item["type"] == "ScalingActive"
    ]
    assert found == expected


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
    pods = [make_pod("a", ready=True), make_pod("b", ready=True)]
    good = shown(td, make_observed(td, pods, updatedReplicas=2))
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
    }
    assert "desiredReplicas" not in bad
    assert shown_bad(make_observed(), bad, "spec.model: Field required", 1) == bad
    assert (bad["replicas"], bad["readyReplicas"]) == (0, 0)


def test_local_address_is_the_url() -> None:
    observed = make_observed(make_td())
    observed.children[SERVICE]["metadata"]["annotations"]["dragoman.io/local-address"] = "127.9.0.1"
    assert shown(make_td(), observed)["url"] == "http://127.9.0.1:8000"


def test_columns_stay_short() -> None:
    many = [{"source": f"q{letter}", "targets": ["en", "de", "fr"]} for letter in "abcdefghijklmn"]
    td = make_td(languages=many)
    status = shown(td, make_observed(td), refusals=("x" * 5000,))
    assert len(status["languages"]) <= 60
    assert len(status["message"]) <= 200
    assert shown(make_td(languages=[]), make_observed(td))["languages"] == "any"


def test_evicted_pod_is_reported_until_its_successor_is_ready() -> None:
    td = make_td(replicas=1)
    evicted = make_pod("old", phase="Failed", reason="Evicted", message="disk pressure")
    alone = shown(td, make_observed(td, [evicted], updatedReplicas=0))
    assert condition(alone, "Degraded") == ("True", "Evicted")
    pods = [evicted, make_pod("new", ready=True)]
    replaced = shown(td, make_observed(td, pods, updatedReplicas=1))
    assert condition(replaced, "Progressing") == ("False", "Complete")
    assert condition(replaced, "Degraded") == ("False", "AsExpected")


def test_status_of_a_newer_operator_is_kept_beside_a_bad_spec() -> None:
    newer = {"type": "Brilliant", "status": "True", "reason": "So", "message": ""}
    old = {"conditions": [newer], "brightness": 3}
    bad = shown_bad(make_observed(), old, "spec.engine.colour is not known")
    assert bad["brightness"] == 3
    assert [item["type"] for item in bad["conditions"]] == [
        "Available",
        "Progressing",
        "Degraded",
        "Brilliant",
    ]


def test_autoscaler_of_others_with_an_odd_reason_still_gives_a_status() -> None:
    td = make_td(autoscaling={"mode": "HPA", "maxReplicas": 3})
    observed = make_observed(td)
    condition = {"type": "ScalingActive", "status": "False", "reason": "not a word!", "message": None}
    children = {
        **observed.children,
        HPA: {**observed.children[HPA], "status": {"conditions": ["odd", condition]}},
    }
    observed = replace(observed, children=children)
    status = shown(td, observed, plan=planned(td, observed))
    (active,) = (found for found in status["conditions"] if found["type"] == "ScalingActive")
    assert (active["status"], active["reason"]) == ("False", "HPANotReported")


def test_address_that_a_foreign_service_claims_is_not_shown() -> None:
    td = make_td()
    observed = make_observed(td)
    service = copy.deepcopy(dict(observed.children[SERVICE]))
    service["metadata"]["annotations"]["dragoman.io/local-address"] = "x" * 1000
    observed = replace(observed, children={**observed.children, SERVICE: service})
    assert shown(td, observed, plan=planned(td, observed))["url"] == "http://demo.default.svc:8000"


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
