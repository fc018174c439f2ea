"""Builders: an object as a user writes it, and as the cluster stores it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman_operator.api.v1alpha1 import TranslationDeployment, parse
from dragoman_operator.observed.drift import signed
from dragoman_operator.observed.snapshot import CHILD_KINDS, Observed
from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.plan import desired_children

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def defaults() -> Defaults:
    return Defaults(cuda="engine:cuda", cpu="engine:cpu")


@pytest.fixture
def make_spec() -> Callable[..., dict[str, Any]]:
    """A small good spec on the CPU; `engine=…` and its like are merged into it, None takes a field away."""

    def build(**groups: Any) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "model": {"uri": "hf://org/model", "promptFamily": "chatml-generic"},
            "languages": [{"source": "en", "targets": ["de", "fr"]}],
            "engine": {"device": "cpu", "maxNumSeqs": 8},
            "replicas": 2,
        }
        return merged(spec, groups)

    return build


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


@pytest.fixture
def make_body(make_spec: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A stored object."""

    def build(name: str = "demo", status: dict[str, Any] | None = None, **groups: Any) -> dict[str, Any]:
        body: dict[str, Any] = {
            "apiVersion": "dragoman.io/v1alpha1",
            "kind": "TranslationDeployment",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": UID,
                "generation": 3,
                "resourceVersion": "7",
            },
            "spec": make_spec(**groups),
        }
        return body | ({"status": status} if status is not None else {})

    return build


@pytest.fixture
def make_td(make_body: Callable[..., dict[str, Any]]) -> Callable[..., TranslationDeployment]:
    def build(name: str = "demo", **groups: Any) -> TranslationDeployment:
        return parse(make_body(name, **groups))

    return build


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as the API server gives it back: numbered, with defaults and fields of other clients."""
    result = copy.deepcopy(manifest)
    result["metadata"] |= {"uid": f"uid-of-{manifest['kind']}", "resourceVersion": "1", "generation": 1}
    result["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
    return result


@pytest.fixture
def make_observed(defaults: Defaults) -> Callable[..., Observed]:
    """What is found once the operator has written everything for `td`, with the pods given."""

    def build(
        td: TranslationDeployment | None = None, pods: Iterable[dict[str, Any]] = (), **status: Any
    ) -> Observed:
        children = {}
        for kind, manifest in (desired_children(td, defaults) if td else {}).items():
            if manifest is not None:
                children[kind] = stored(signed(manifest))
                if kind.name == "Deployment":
                    children[kind]["status"] = {"observedGeneration": 1} | status
        assert [kind for kind in children if kind in CHILD_KINDS] == [k for k in CHILD_KINDS if k in children]
        return Observed(NOW, children, tuple(pods))

    return build


@pytest.fixture
def make_pod() -> Callable[..., dict[str, Any]]:
    """One engine pod; `container` is the state of its only container."""

    def build(
        name: str = "demo-1",
        ready: bool = False,
        container: dict[str, Any] | None = None,
        deleted: bool = False,
        **status: Any,
    ) -> dict[str, Any]:
        metadata = {"name": name} | ({"deletionTimestamp": "2026-01-02T03:04:05Z"} if deleted else {})
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        containers = [{"name": "engine", "image": "engine:cpu", "ready": ready, **(container or {})}]
        return {
            "metadata": metadata,
            "status": {"phase": "Running", "conditions": conditions, "containerStatuses": containers}
            | status,
        }

    return build
