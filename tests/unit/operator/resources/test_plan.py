"""Which children are written, and which are left alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.deployments import DEFAULTS, children_of, make_observed, make_td, planned

from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    NETWORK_POLICY,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from dragoman_operator.observed.snapshot import CHILD_KINDS, KEDA_KINDS, Observed
from dragoman_operator.resources.plan import Plan, ReconcileInput, target_of


def causes(found: Plan) -> dict[str, str]:
    return {change.kind.name: change.cause for change in found.changes}


def foreign(observed: Observed, kind: Kind, *owners: dict[str, Any]) -> Observed:
    """The snapshot with another owner's object in the place of a child."""
    children = dict(observed.children)
    metadata = {"name": "demo", "namespace": "default", "uid": "theirs", "ownerReferences": list(owners)}
    return replace(observed, foreign={kind: {**children.pop(kind), "metadata": metadata}}, children=children)


def test_everything_is_made_in_order() -> None:
    found = planned(make_td(), make_observed())
    assert [change.kind for change in found.changes] == [
        *(kind for kind in CHILD_KINDS if kind not in (HPA, DEPLOYMENT)),
        SECRET,
        DEPLOYMENT,
    ]
    assert set(causes(found).values()) == {"missing"}


def test_nothing_to_do() -> None:
    td = make_td()
    assert planned(td, make_observed(td)) == Plan(target_of(ReconcileInput(td, make_observed(td)), DEFAULTS))


def test_edited_spec_changes_the_deployment_alone() -> None:
    found = planned(make_td(engine={"maxNumSeqs": 9}), make_observed(make_td()))
    assert causes(found) == {"Deployment": "spec changed"}


def test_field_taken_out_of_the_spec_is_taken_out_of_the_child() -> None:
    before = make_td(podTemplate={"nodeSelector": {"gpu": "h200"}})
    assert causes(planned(make_td(), make_observed(before))) == {"Deployment": "spec changed"}


EDITS: dict[Kind, Callable[[dict[str, Any]], object]] = {
    SERVICE_ACCOUNT: lambda child: child.update(automountServiceAccountToken=True),
    NETWORK_POLICY: lambda child: child["spec"]["ingress"].append({}),
    SERVICE: lambda child: child["spec"]["selector"].update({"dragoman.io/deployment": "other"}),
    DISRUPTION_BUDGET: lambda child: child["spec"].update(maxUnavailable=0),
    DEPLOYMENT: lambda child: child["spec"].update(replicas=0),
    HPA: lambda child: child["spec"].update(maxReplicas=50),
}

SCALED_BY_HPA = {"autoscaling": {"mode": "HPA", "maxReplicas": 4}}
"""So that all of `CHILD_KINDS` are there."""


@pytest.mark.parametrize("kind", CHILD_KINDS, ids=lambda kind: kind.name)
def test_edit_is_repaired(kind: Kind) -> None:
    td = make_td(**SCALED_BY_HPA)
    observed = make_observed(td)
    EDITS[kind](observed.children[kind])  # type: ignore[arg-type]
    assert causes(planned(td, observed)) == {kind.name: "edited by another client"}


@pytest.mark.parametrize("kind", CHILD_KINDS, ids=lambda kind: kind.name)
def test_deletion_is_repaired(kind: Kind) -> None:
    td = make_td(**SCALED_BY_HPA)
    observed = make_observed(td)
    left = {other: child for other, child in observed.children.items() if other != kind}
    repaired = [kind.name, *(["Secret"] if kind in (SERVICE, SECRET) else [])]
    assert causes(planned(td, replace(observed, children=left))) == dict.fromkeys(repaired, "missing")


@pytest.mark.parametrize("lost", ["labels", "ownerReferences"])
def test_lost_label_or_owner_is_put_back(lost: str) -> None:
    observed = make_observed(make_td())
    del observed.children[SERVICE]["metadata"][lost]
    assert causes(planned(make_td(), observed)) == {"Service": "edited by another client"}


def test_disabled_policy_is_deleted_by_uid() -> None:
    td = make_td(networkPolicy={"enabled": False})
    (change,) = planned(td, make_observed(make_td())).changes[:1]
    assert (change.kind, change.manifest, change.uid) == (NETWORK_POLICY, None, "uid-of-NetworkPolicy")


def test_child_of_another_owner_is_not_changed() -> None:
    found = planned(make_td(), foreign(make_observed(make_td()), SERVICE))
    assert found.changes == ()
    (sentence,) = found.obstacles
    assert sentence.startswith("Service demo exists and is owned by something else")


def test_child_of_another_owner_that_is_not_needed_is_no_obstacle() -> None:
    observed = foreign(make_observed(make_td()), NETWORK_POLICY)
    assert planned(make_td(networkPolicy={"enabled": False}), observed).obstacles == ()


def test_child_of_a_predecessor_is_waited_for() -> None:
    owner = {"apiVersion": "dragoman.io/v1alpha1", "kind": "TranslationDeployment", "name": "demo"}
    observed = foreign(make_observed(make_td()), DEPLOYMENT, owner | {"uid": "before", "controller": True})
    found = planned(make_td(), observed)
    assert found.changes == ()
    assert found.waiting == (
        "the Deployment of a deleted TranslationDeployment of this name is still being removed",
    )


def test_child_that_is_going_is_waited_for() -> None:
    observed = make_observed(make_td())
    observed.children[SERVICE]["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    found = planned(make_td(), observed)
    assert found.changes == ()
    assert found.waiting == ("Service demo is being deleted and will be created again",)


def test_foreign_bound_of_a_budget_can_be_forced_out() -> None:
    observed = make_observed(make_td())
    spec = observed.children[DISRUPTION_BUDGET]["spec"]
    spec["minAvailable"] = spec.pop("maxUnavailable")
    (change,) = planned(make_td(), observed).changes
    assert change.forced is not None
    assert change.forced["spec"]["minAvailable"] is None
    assert change.forced["spec"]["maxUnavailable"] == 1


def test_other_autoscalers_go_when_the_mode_changes() -> None:
    url = {"prometheus": {"url": "http://prom:9090", "tokenSecretRef": {"name": "prom"}}}
    keda = make_td(autoscaling={"mode": "KEDA", "maxReplicas": 4, **url})
    before = replace(make_observed(make_td(**SCALED_BY_HPA)), keda=True)
    found = planned(keda, before)
    assert causes(found) == {
        "HorizontalPodAutoscaler": "no longer needed",
        "TriggerAuthentication": "missing",
        "ScaledObject": "missing",
    }
    made = {change.kind: change.manifest for change in found.changes if change.manifest}
    children = {**before.children, **{kind: made[kind] for kind in KEDA_KINDS}}
    for child in children.values():
        child["metadata"].setdefault("uid", "1")
    gone = planned(make_td(), replace(before, children=children))
    assert {change.kind.name for change in gone.changes if change.manifest is None} == {
        "HorizontalPodAutoscaler",
        "TriggerAuthentication",
        "ScaledObject",
    }


def test_keda_is_not_spoken_to_where_it_is_not_installed() -> None:
    keda = make_td(autoscaling={"mode": "KEDA", "maxReplicas": 4, "prometheus": {"url": "http://prom:9090"}})
    assert causes(planned(keda, make_observed(make_td()))) == {}


SIBLINGS = {
    "podSelector": {
        "matchLabels": {"dragoman.io/deployment": "demo", "app.kubernetes.io/component": "engine"}
    }
}
"""The pods of the same object, from which a pod takes its start cache."""


def test_downloads_and_traces_reach_the_hosts_that_the_spec_lists() -> None:
    block = {"ipBlock": {"cidr": "10.20.0.0/24"}}
    other = {"ports": [{"port": 9000}]}

    def egress(**policy: Any) -> list[dict[str, Any]]:
        tracing = {"otlpEndpoint": "http://collector:4318"}
        td = make_td(model={"uri": "hf://a/b"}, tracing=tracing, networkPolicy={"egress": [other]} | policy)
        found = children_of(td)[NETWORK_POLICY]
        assert found is not None
        rules: list[dict[str, Any]] = found["spec"]["egress"]
        return rules

    dns, *default = egress()
    https, traces = ({"ports": [{"protocol": "TCP", "port": port}]} for port in (443, 4318))
    siblings = {"ports": [{"protocol": "TCP", "port": 8000}], "to": [SIBLINGS]}
    assert default == [https, traces, siblings, other]
    restricted = [dns, https | {"to": [block]}, traces | {"to": [block]}, siblings, other]
    assert egress(to=[block]) == restricted


def test_egress_rules_of_the_spec_come_with_dns() -> None:
    valkey = {"ports": [{"port": 6379}]}
    td = make_td(model={"uri": "pvc://models/demo"}, networkPolicy={"egress": [valkey]})
    found = children_of(td)[NETWORK_POLICY]
    assert found is not None
    dns, siblings, last = found["spec"]["egress"]
    assert [rule["port"] for rule in dns["ports"]] == [53, 53]
    assert siblings["to"] == [SIBLINGS]
    assert last == valkey


def test_operator_may_connect_whatever_the_spec_lists() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "client"}}}
    listed = replace(DEFAULTS, namespace="dragoman-system")
    policy = children_of(make_td(networkPolicy={"from": [peer]}), listed)[NETWORK_POLICY]
    assert policy is not None
    (rule,) = policy["spec"]["ingress"]
    labels = {"app.kubernetes.io/part-of": "dragoman", "app.kubernetes.io/component": "operator"}
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "dragoman-system"}}
    operator = {"namespaceSelector": namespace, "podSelector": {"matchLabels": labels}}
    assert rule["from"] == [peer, operator, SIBLINGS]
    everybody = children_of(make_td(), listed)[NETWORK_POLICY]
    assert everybody is not None
    assert "from" not in everybody["spec"]["ingress"][0]
