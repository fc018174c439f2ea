"""The answer to any request is an object or a refusal that says why, never an internal error."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CONTAINER = {
    "name": "c",
    "image": "i",
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80}],
    "resources": {"limits": {"cpu": "1"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
POD_SPEC = {"containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {}}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}
DEPLOYMENT = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": TEMPLATE,
    "strategy": {"type": "RollingUpdate"},
}
OBJECTS: dict[str, dict[str, Any]] = {
    "/api/v1/namespaces/default/pods": {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": POD_SPEC},
    "/api/v1/namespaces/default/services": {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}},
    "/api/v1/namespaces/default/secrets": {"metadata": {"name": "x"}, "stringData": {"a": "b"}},
    "/apis/apps/v1/namespaces/default/deployments": {"metadata": {"name": "x"}, "spec": DEPLOYMENT},
    "/apis/example.com/v1/namespaces/default/widgets": {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": {"size": 1, "color": "red"},
    },
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"": None}),
    st.just({"a": [{"b": 1}]}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below the root of an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


@st.composite
def broken(draw: st.DrawFn, whole: Any) -> Any:
    """An object with junk in a place of its own."""
    obj = copy.deepcopy(whole)
    *parents, last = draw(st.sampled_from(sorted(places(obj), key=repr)))
    at = obj
    for step in parents:
        at = at[step]
    at[last] = draw(junk)
    return obj


RELAXED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def answered(api: Any, method: str, path: str, body: Any, media: str = "application/json") -> None:
    answer = api.client.request(
        method,
        path,
        json=body,
        headers={"content-type": media},
        params={"fieldManager": "m", "dryRun": "All"},
    )
    assert answer.json().get("reason") != "InternalError", (path, body)


@pytest.fixture
def prepared(api: Any, make_crd: Callable[..., Any]) -> Any:
    rule = {"rule": "self.size < 5 || self.color == 'red'"}
    api("POST", CRDS, make_crd(**{"x-kubernetes-validations": [rule]}))
    for path, body in OBJECTS.items():
        live = copy.deepcopy(body)
        live["metadata"]["name"] = "live"
        api("POST", path, live)
    return api


@pytest.mark.parametrize("path", OBJECTS)
@RELAXED
@given(data=st.data())
def test_objects(prepared: Any, path: str, data: st.DataObject) -> None:
    body = data.draw(broken(OBJECTS[path]))
    answered(prepared, "POST", path, body)
    answered(prepared, "PATCH", f"{path}/live", body, "application/merge-patch+json")
    answered(prepared, "PATCH", f"{path}/live", body, "application/strategic-merge-patch+json")
    answered(prepared, "PATCH", f"{path}/new", body, "application/apply-patch+yaml")


@RELAXED
@given(body=junk)
def test_bodies(prepared: Any, body: Any) -> None:
    for path in (*OBJECTS, CRDS):
        answered(prepared, "POST", path, body)
        answered(prepared, "PUT", f"{path}/live", body)
        answered(prepared, "DELETE", f"{path}/live", body)
        for media in (
            "merge-patch+json",
            "json-patch+json",
            "strategic-merge-patch+json",
            "apply-patch+yaml",
        ):
            answered(prepared, "PATCH", f"{path}/live", body, f"application/{media}")
