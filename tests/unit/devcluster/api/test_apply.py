"""Server-side apply as pure functions of objects."""

import copy
import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_devcluster.api.builtin_schema import model_schema
from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.fieldset import dotted, flatten, from_fields_v1, to_fields_v1
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.managed_fields import Manager, apply, read_entries, track_update

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
LATER = datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", schema=model_schema("V1Deployment"))
SERVICE = Kind("", "v1", "Service", "services", schema=model_schema("V1Service"))


def deployment(
    *containers: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    template = {"spec": {"containers": list(containers)}} if containers else {}
    metadata = {"name": "web", **({"labels": labels} if labels else {})}
    template_spec = {"template": template} if template else {}
    return {"metadata": metadata, "spec": {**spec, **template_spec}}


def applied(live: Any, patch: Any, manager: str = "us", *, force: bool = False) -> Any:
    return apply(DEPLOYMENT, live, patch, Manager(manager, "Apply"), force=force, now=NOW)


def updated(live: Any, manager: str = "them", **spec: Any) -> Any:
    obj = copy.deepcopy(live)
    obj["spec"].update(spec)
    track_update(DEPLOYMENT, live, obj, Manager(manager, "Update"), NOW)
    return obj


def owners(obj: Any) -> dict[str, set[str]]:
    return {entry.manager.name: {dotted(path) for path in entry.fields} for entry in read_entries(obj)}


def test_the_applier_owns_what_it_applied() -> None:
    live = applied(None, deployment({"name": "a", "image": "x"}, replicas=2))
    assert owners(live) == {
        "us": {
            ".spec.replicas",
            '.spec.template.spec.containers[name="a"]',
            '.spec.template.spec.containers[name="a"].name',
            '.spec.template.spec.containers[name="a"].image',
        }
    }


def test_a_field_that_is_no_longer_applied_goes() -> None:
    live = applied(None, deployment(replicas=2, minReadySeconds=3))
    assert applied(live, deployment(replicas=2))["spec"] == {"replicas": 2}


def test_a_field_that_another_applier_wants_too_stays() -> None:
    live = applied(None, deployment(replicas=2, minReadySeconds=3))
    live = applied(live, deployment(minReadySeconds=3), "them")
    live = applied(live, deployment(replicas=2))
    assert live["spec"] == {"replicas": 2, "minReadySeconds": 3}
    assert owners(live) == {"us": {".spec.replicas"}, "them": {".spec.minReadySeconds"}}


def test_changing_what_another_owns_is_a_conflict_until_forced() -> None:
    live = updated(applied(None, deployment(replicas=2)), replicas=5)
    with pytest.raises(ApiError) as refused:
        applied(live, deployment(replicas=2))
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "them" using apps/v1: .spec.replicas'
    )
    assert refused.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "them" using apps/v1',
            "field": ".spec.replicas",
        }
    ]
    forced = applied(live, deployment(replicas=2), force=True)
    assert forced["spec"]["replicas"] == 2
    assert owners(forced) == {"us": {".spec.replicas"}}


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(applied(None, deployment(replicas=2, minReadySeconds=1), "first"), replicas=5)
    with pytest.raises(ApiError) as refused:
        applied(live, deployment(replicas=3, minReadySeconds=2))
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflict with "first": .spec.minReadySeconds, '
        'conflict with "them" using apps/v1: .spec.replicas'
    )


def test_the_same_value_is_shared_without_conflict() -> None:
    live = applied(applied(None, deployment(replicas=2), "them"), deployment(replicas=2))
    assert owners(live) == {"us": {".spec.replicas"}, "them": {".spec.replicas"}}


def test_list_items_merge_by_their_keys() -> None:
    live = applied(None, deployment({"name": "a", "image": "x"}, {"name": "b", "image": "y"}), "them")
    live = applied(live, deployment({"name": "b", "workingDir": "/"}, {"name": "c", "image": "z"}))
    assert live["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "x"},
        {"name": "b", "image": "y", "workingDir": "/"},
        {"name": "c", "image": "z"},
    ]
    live = applied(live, deployment({"name": "b", "workingDir": "/"}))
    names = [container["name"] for container in live["spec"]["template"]["spec"]["containers"]]
    assert names == ["a", "b"]


def test_a_missing_key_takes_its_default() -> None:
    port = {"containerPort": 80}
    live = applied(None, deployment({"name": "a", "ports": [port]}))
    live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    live = applied(live, deployment({"name": "a", "ports": [{**port, "name": "http"}]}))
    ports = live["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP", "name": "http"}]


def test_an_atomic_map_is_owned_and_replaced_as_a_whole() -> None:
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"a": "1"}}}
    live = apply(SERVICE, None, service, Manager("us", "Apply"), force=False, now=NOW)
    changed = {"metadata": {"name": "web"}, "spec": {"selector": {"b": "2"}}}
    live = apply(SERVICE, live, changed, Manager("us", "Apply"), force=False, now=NOW)
    assert live["spec"]["selector"] == {"b": "2"}
    assert owners(live) == {"us": {".spec.selector"}}


def test_a_field_that_an_update_removed_has_no_owner() -> None:
    live = applied(None, deployment(replicas=2, minReadySeconds=3))
    obj = copy.deepcopy(live)
    del obj["spec"]["minReadySeconds"]
    track_update(DEPLOYMENT, live, obj, Manager("them", "Update"), NOW)
    assert owners(obj) == {"us": {".spec.replicas"}}


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    patch = deployment({"name": "a", "image": "x"}, labels={"a": "b"}, replicas=2)
    live = applied(None, patch)
    assert apply(DEPLOYMENT, live, patch, Manager("us", "Apply"), force=False, now=LATER) == live


def test_metadata_never_goes_with_the_last_label() -> None:
    live = applied(None, deployment(labels={"a": "b"}, replicas=1))
    live["metadata"]["uid"] = "1"
    live = applied(live, deployment(replicas=1))
    assert live["metadata"]["uid"] == "1"
    assert "labels" not in live["metadata"]


def test_managed_fields_are_not_for_appliers() -> None:
    with pytest.raises(ApiError, match=r"metadata\.managedFields must be nil"):
        applied(None, {"metadata": {"name": "web", "managedFields": [{"manager": "x"}]}})


names = st.sampled_from(["a", "b", "c"])
containers = st.dictionaries(
    names,
    st.fixed_dictionaries({}, optional={"image": names, "workingDir": names}),
    max_size=3,
).map(lambda found: [{"name": name, **fields} for name, fields in found.items()])
labels = st.dictionaries(names, names, max_size=3)
patches = st.builds(
    lambda items, marks, spec: deployment(*items, labels=marks, **spec),
    containers,
    labels,
    st.fixed_dictionaries({}, optional={"replicas": st.integers(0, 3), "paused": st.booleans()}),
)


def is_within(part: Any, whole: Any) -> bool:
    """Whether every field of `part` is in `whole` with that value; containers by name."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and is_within(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list):
        by_name = {item["name"]: item for item in whole}
        return all(item["name"] in by_name and is_within(item, by_name[item["name"]]) for item in part)
    return bool(part == whole)


@given(st.lists(st.tuples(st.sampled_from(["us", "them"]), patches), max_size=4), patches)
def test_what_is_applied_last_holds_and_holds_again(history: list[tuple[str, Any]], last: Any) -> None:
    live: Any = None
    for manager, patch in history:
        live = applied(live, patch, manager, force=True)
    result = applied(live, last, force=True)
    spec = {key: value for key, value in last["spec"].items() if value}
    assert is_within(spec, result["spec"])
    assert is_within(last["metadata"].get("labels", {}), result["metadata"].get("labels", {}))
    assert applied(result, last) == result


@given(patches, patches)
def test_applying_nothing_keeps_what_others_applied(ours: Any, theirs: Any) -> None:
    alone = applied(None, theirs, "them")
    both = applied(applied(None, ours), theirs, "them", force=True)
    left = applied(both, {"metadata": {"name": "web"}})
    assert is_within({k: v for k, v in theirs["spec"].items() if v}, left.get("spec", {}))
    assert owners(left) == owners(alone)


@given(patches)
def test_fields_v1_reads_back(patch: Any) -> None:
    fields = frozenset(flatten(DEPLOYMENT.schema, patch))
    assert from_fields_v1(to_fields_v1(fields)) == fields
