"""Conditions, numbers and the Why column."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dragoman_kube.kinds import HPA, SERVICE
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.observed.snapshot import Download, Observed
from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.plan import Decisions, Plan, plan
from dragoman_operator.status import status_of, status_of_bad_spec, transitions

MakeTd = Callable[..., TranslationDeployment]
MakeObserved = Callable[..., Observed]
MakePod = Callable[..., dict[str, Any]]
Status = dict[str, Any]


def condition(status: Status, name: str) -> tuple[str, str]:
    (found,) = (item for item in status["conditions"] if item["type"] == name)
    return found["status"], found["reason"]


def message(status: Status, name: str) -> str:
    (found,) = (item for item in status["conditions"] if item["type"] == name)
    return str(found["message"])


def test_first_status(make_td: MakeTd, make_observed: MakeObserved, defaults: Defaults) -> None:
    td, observed = make_td(), make_observed()
    status = status_of(td, observed, plan(td, defaults, observed), {})
    assert condition(status, "Available") == ("False", "NoReadyReplicas")
    assert condition(status, "Progressing") == ("True", "Applying")
    assert condition(status, "Degraded") == ("False", "AsExpected")
    assert status["observedGeneration"] == 3
    assert (status["replicas"], status["readyReplicas"], status["desiredReplicas"]) == (0, 0, 2)
    assert status["selector"] == "app.kubernetes.io/component=engine,dragoman.io/deployment=demo"
    assert status["url"] == "http://demo.default.svc:8000"
    assert status["languages"] == "en>de,fr"


def test_complete(make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod) -> None:
    td = make_td()
    pods = [make_pod("a", ready=True), make_pod("b", ready=True)]
    status = status_of(td, make_observed(td, pods, updatedReplicas=2), Plan(), {})
    assert condition(status, "Available") == ("True", "Ready")
    assert condition(status, "Progressing") == ("False", "Complete")
    assert status["message"] == "2 of 2 replicas are ready; spec.replicas is 2"


def test_the_message_of_ready_replicas_does_not_say_that_they_start(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    """The last decision is from before they were ready."""
    td = make_td(autoscaling={"minReplicas": 1, "maxReplicas": 2})
    observed = make_observed(td, [make_pod("a", ready=True)], updatedReplicas=1)
    view = ScalingView(1, Rule.STARTING, "kept at 1: no replica is ready yet", at=0.0)
    status = status_of(td, observed, Plan(), {}, decisions=Decisions(view, None))
    assert status["message"] == "1 of 1 replicas are ready"


def test_the_progress_of_a_download(make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod) -> None:
    td, pods = make_td(), [make_pod("a"), make_pod("b")]
    for pod in pods:
        pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    observed = make_observed(td, pods, updatedReplicas=2)
    progress = Download("downloading the model: 43% of 3.20 GB, 110 MB/s", 0.43)
    waiting = Download("another pod downloads the model into the same volume")
    seen = replace(
        observed, downloads={"uid-a": waiting, "uid-b": progress, "another": Download("not this", 0.9)}
    )
    status = status_of(td, seen, Plan(), {})
    assert message(status, "Progressing") == f"0 of 2 replicas are ready, others start; {progress.sentence}"
    assert status["message"] == message(status, "Progressing")
    status = status_of(td, replace(seen, downloads={"uid-a": waiting}), Plan(), {})
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
def test_under_way(
    pods: list[tuple[str, bool]],
    updated: int,
    reason: str,
    make_td: MakeTd,
    make_observed: MakeObserved,
    make_pod: MakePod,
) -> None:
    td = make_td()
    found = make_observed(td, [make_pod(name, ready=ready) for name, ready in pods], updatedReplicas=updated)
    status = status_of(td, found, Plan(), {})
    assert condition(status, "Progressing") == ("True", reason)
    assert status["message"] == message(status, "Progressing")


def test_a_surging_rollout_counts_the_versions(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    pods = [make_pod("a", ready=True), make_pod("b", ready=True), make_pod("new")]
    status = status_of(make_td(), make_observed(make_td(), pods, updatedReplicas=1), Plan(), {})
    assert message(status, "Progressing") == "1 of 3 pods have the current spec"
    status = status_of(make_td(), make_observed(make_td(), pods, updatedReplicas=3), Plan(), {})
    assert message(status, "Progressing") == "1 replica too many: terminating"


def test_deployment_that_its_controller_has_not_observed(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td()
    pods = [make_pod("a", ready=True), make_pod("b", ready=True)]
    status = status_of(td, make_observed(td, pods, updatedReplicas=2, observedGeneration=0), Plan(), {})
    assert condition(status, "Progressing") == ("True", "Applying")


def test_a_pod_that_only_the_deployment_s_status_counts_yet_is_surplus(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td()
    pods = [make_pod("old", ready=True), make_pod("new", ready=True)]
    status = status_of(td, make_observed(td, pods, replicas=3, updatedReplicas=2), Plan(), {})
    assert condition(status, "Progressing") == ("True", "Replacing")


def test_terminating_pods_do_not_count(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td(replicas=1)
    pods = [make_pod("a", ready=True), make_pod("b", ready=True, deleted=True)]
    status = status_of(td, make_observed(td, pods, updatedReplicas=1), Plan(), {})
    assert (status["replicas"], status["readyReplicas"]) == (1, 1)
    assert condition(status, "Progressing") == ("False", "Complete")


def test_zero_is_not_available_and_not_degraded(make_td: MakeTd, make_observed: MakeObserved) -> None:
    td = make_td(replicas=0)
    status = status_of(td, make_observed(td, updatedReplicas=0), Plan(), {})
    assert condition(status, "Available") == ("False", "ScaledToZero")
    assert condition(status, "Progressing") == ("False", "Complete")
    assert condition(status, "Degraded") == ("False", "AsExpected")


def test_failing_engine_speaks_in_degraded_and_why(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td(replicas=1)
    failed = {"lastState": {"terminated": {"exitCode": 1, "message": "no such model"}}}
    pods = [make_pod("old", ready=True), make_pod("new", container=failed)]
    status = status_of(td, make_observed(td, pods, updatedReplicas=1), Plan(), {})
    assert condition(status, "Available") == ("True", "Ready")
    assert condition(status, "Degraded") == ("True", "EngineFailed")
    assert message(status, "Degraded") == status["message"] == "no such model"


def test_stalled_rollout(make_td: MakeTd, make_observed: MakeObserved) -> None:
    stalled = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    td = make_td()
    status = status_of(td, make_observed(td, conditions=[stalled]), Plan(), {})
    assert condition(status, "Progressing") == ("False", "ProgressDeadlineExceeded")
    assert condition(status, "Degraded") == ("True", "ProgressDeadlineExceeded")


def test_refusal_and_obstacle(make_td: MakeTd, make_observed: MakeObserved) -> None:
    td = make_td()
    refused = status_of(td, make_observed(td), Plan(), {}, ("apply Deployment default/demo: denied (403)",))
    assert condition(refused, "Degraded") == ("True", "ApplyFailed")
    taken = status_of(td, make_observed(td), Plan(obstacles=("a Service named demo exists",)), {})
    assert condition(taken, "Degraded") == ("True", "NameConflict")


@pytest.mark.parametrize("known", ["de", "pt-BR", "zh-Hant", "de-1996", "zh-yue", "iw", "qaa", "*"])
def test_tags_of_languages_are_expected(known: str, make_td: MakeTd, make_observed: MakeObserved) -> None:
    td = make_td(languages=[{"source": "en", "targets": [known]}])
    assert condition(status_of(td, make_observed(td), Plan(), {}), "Degraded") == ("False", "AsExpected")


def test_a_licence_that_forbids_a_use_is_named_and_degrades_nothing(
    make_td: MakeTd, make_observed: MakeObserved
) -> None:
    model = {"uri": "hf://tencent/HY-MT1.5-7B", "revision": "main", "promptFamily": "hy-mt1.5"}
    td = make_td(model=model)
    status = status_of(td, make_observed(td), Plan(), {})
    assert condition(status, "Degraded") == ("False", "AsExpected")
    assert "may not be used in the European Union" in message(status, "Degraded")


def test_tags_of_no_language_are_reported(make_td: MakeTd, make_observed: MakeObserved) -> None:
    languages = [{"source": source, "targets": ["xx-notalang", "de"]} for source in ("en", "qq")]
    td = make_td(languages=languages)
    status = status_of(td, make_observed(td), Plan(), {})
    assert condition(status, "Degraded") == ("True", "UnknownLanguage")
    assert status["message"] == (
        "spec.languages has tags of no language: xx-notalang, qq; pods serve them as they are written"
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("Internal", [("True", "Internal")]), ("External", [("True", "External")]), ("Off", [])],
)
def test_scaling_active(
    mode: str, expected: list[tuple[str, str]], make_td: MakeTd, make_observed: MakeObserved
) -> None:
    td = make_td(autoscaling={"mode": mode, "minReplicas": 1, "maxReplicas": 3})
    status = status_of(td, make_observed(td), Plan(), {})
    found = [
        condition(status, "ScalingActive") for item in status["conditions"] if item["type"] == "ScalingActive"
    ]
    assert found == expected


def test_same_snapshot_gives_the_same_status_later(make_td: MakeTd, make_observed: MakeObserved) -> None:
    td, observed = make_td(), make_observed(make_td())
    first = status_of(td, observed, Plan(), {})
    later = status_of(td, replace(observed, now=observed.now + timedelta(hours=1)), Plan(), first)
    assert later == first


def test_decision_of_a_former_operator_needs_no_stored_scaling(
    make_td: MakeTd, make_observed: MakeObserved
) -> None:
    td = make_td(autoscaling={"minReplicas": 1, "maxReplicas": 3})
    restored = ScalingView(2, Rule.LOAD, "as before", at=0.0, restored=True)
    decisions = Decisions(restored)
    lost = status_of(td, make_observed(td), Plan(), {}, decisions=decisions)
    assert (lost["scaling"]["desiredReplicas"], lost["scaling"]["rule"]) == (2, "Load")
    stored = {
        "scaling": {"mode": "Internal", "rule": "Load", "reason": "as before", "timeToReadySeconds": 7.0}
    }
    kept = status_of(td, make_observed(td), Plan(), stored, decisions=decisions)
    assert kept["scaling"]["timeToReadySeconds"] == 7


def test_transition_time_moves_with_the_status_alone(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td, observed = make_td(replicas=1), make_observed(make_td(replicas=1))
    first = status_of(td, observed, Plan(), {})
    later = observed.now + timedelta(minutes=1)
    ready = replace(observed, now=later, pods=(make_pod(ready=True),))
    second = {item["type"]: item for item in status_of(td, ready, Plan(), first)["conditions"]}
    assert second["Available"]["lastTransitionTime"] == "2026-01-02T03:05:05Z"
    assert second["Degraded"]["lastTransitionTime"] == "2026-01-02T03:04:05Z"


def test_transitions_are_changes_of_status_or_reason(make_td: MakeTd, make_observed: MakeObserved) -> None:
    td, observed = make_td(), make_observed(make_td())
    first = status_of(td, observed, Plan(), {})
    assert [change.reason for change in transitions({}, first)] == ["Starting"]
    assert transitions(first, first) == []
    worded = {**first, "conditions": [{**item, "message": "else"} for item in first["conditions"]]}
    assert transitions(first, worded) == []
    refused = status_of(td, observed, Plan(), first, ("no",))
    (change,) = transitions(first, refused)
    assert (change.warning, change.reason, change.message) == (True, "ApplyFailed", "no")


def test_bad_spec_keeps_what_was_known(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td(replicas=1)
    observed = make_observed(td, [make_pod(ready=True)], updatedReplicas=1)
    good = status_of(td, observed, Plan(), {})
    bad = status_of_bad_spec(4, "spec.engine.colour is not known", observed, good)
    assert condition(bad, "Degraded") == ("True", "InvalidSpec")
    assert message(bad, "Degraded") == "spec.engine.colour is not known; running pods stay as they are"
    assert condition(bad, "Available") == ("True", "Ready")
    assert (bad["observedGeneration"], bad["selector"], bad["url"]) == (4, good["selector"], good["url"])
    assert status_of_bad_spec(4, "spec.engine.colour is not known", observed, bad) == bad
    healed = status_of(td, observed, Plan(), bad)
    assert condition(healed, "Degraded") == ("False", "AsExpected")


def test_bad_spec_from_the_beginning(make_observed: MakeObserved) -> None:
    bad = status_of_bad_spec(1, "spec.model: Field required", make_observed(), {})
    assert [item["type"] for item in bad["conditions"]] == ["Degraded"]
    assert (bad["replicas"], bad["readyReplicas"]) == (0, 0)


def test_local_address_is_the_url(make_td: MakeTd, make_observed: MakeObserved) -> None:
    observed = make_observed(make_td())
    observed.children[SERVICE]["metadata"]["annotations"]["dragoman.io/local-address"] = "127.9.0.1"
    assert status_of(make_td(), observed, Plan(), {})["url"] == "http://127.9.0.1:8000"


def test_columns_stay_short(make_td: MakeTd, make_observed: MakeObserved) -> None:
    many = [{"source": f"q{letter}", "targets": ["en", "de", "fr"]} for letter in "abcdefghijklmn"]
    td = make_td(languages=many)
    status = status_of(td, make_observed(td), Plan(), {}, ("x" * 5000,))
    assert len(status["languages"]) <= 60
    assert len(status["message"]) <= 200
    assert status_of(make_td(languages=[]), make_observed(td), Plan(), {})["languages"] == "any"


def test_evicted_pod_is_reported_until_its_successor_is_ready(
    make_td: MakeTd, make_observed: MakeObserved, make_pod: MakePod
) -> None:
    td = make_td(replicas=1)
    evicted = make_pod("old", phase="Failed", reason="Evicted", message="disk pressure")
    alone = status_of(td, make_observed(td, [evicted], updatedReplicas=0), Plan(), {})
    assert condition(alone, "Degraded") == ("True", "Evicted")
    pods = [evicted, make_pod("new", ready=True)]
    replaced = status_of(td, make_observed(td, pods, updatedReplicas=1), Plan(), {})
    assert condition(replaced, "Progressing") == ("False", "Complete")
    assert condition(replaced, "Degraded") == ("False", "AsExpected")


def test_status_of_a_newer_operator_is_kept_beside_a_bad_spec(make_observed: MakeObserved) -> None:
    newer = {"type": "Brilliant", "status": "True", "reason": "So", "message": ""}
    old = {"conditions": [newer], "brightness": 3}
    bad = status_of_bad_spec(4, "spec.engine.colour is not known", make_observed(), old)
    assert bad["brightness"] == 3
    assert [item["type"] for item in bad["conditions"]] == ["Brilliant", "Degraded"]


def test_autoscaler_of_others_with_an_odd_reason_still_gives_a_status(
    make_td: MakeTd, make_observed: MakeObserved, defaults: Defaults
) -> None:
    td = make_td(autoscaling={"mode": "HPA", "maxReplicas": 3})
    observed = make_observed(td)
    condition = {"type": "ScalingActive", "status": "False", "reason": "not a word!", "message": None}
    children = {
        **observed.children,
        HPA: {**observed.children[HPA], "status": {"conditions": ["odd", condition]}},
    }
    observed = replace(observed, children=children)
    status = status_of(td, observed, plan(td, defaults, observed), {})
    (active,) = (found for found in status["conditions"] if found["type"] == "ScalingActive")
    assert (active["status"], active["reason"]) == ("False", "HPANotReported")


def test_address_that_a_foreign_service_claims_is_not_shown(
    make_td: MakeTd, make_observed: MakeObserved, defaults: Defaults
) -> None:
    td = make_td()
    observed = make_observed(td)
    service = copy.deepcopy(dict(observed.children[SERVICE]))
    service["metadata"]["annotations"]["dragoman.io/local-address"] = "x" * 1000
    observed = replace(observed, children={**observed.children, SERVICE: service})
    assert status_of(td, observed, plan(td, defaults, observed), {})["url"] == "http://demo.default.svc:8000"


def test_changes_and_conditions_that_cannot_be_read_are_left_out(
    make_td: MakeTd, make_observed: MakeObserved, defaults: Defaults
) -> None:
    td, observed = make_td(), make_observed(make_td())
    old = {"scaling": {"changes": [{"from": -1}, "odd"]}, "conditions": ["odd", {}], "desiredReplicas": 7}
    status = status_of(td, observed, plan(td, defaults, observed), old)
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
