"""A small API in memory's reach: a store in a temporary directory, a clock that tests set."""

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman_devcluster.api.app import create_app
from dragoman_devcluster.api.store import Store

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime.datetime:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "api")
    yield store
    store.close()


class Api:
    """The API as a client sees it: JSON in, JSON out, with the namespace `default` understood."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def __call__(
        self, method: str, path: str, body: Any = None, code: int | None = None, **query: Any
    ) -> Any:
        media = {
            "PATCH": "application/merge-patch+json",
            "JSON": "application/json-patch+json",
            "STRATEGIC": "application/strategic-merge-patch+json",
            "APPLY": "application/apply-patch+yaml",
        }.get(method, "application/json")
        verb = "PATCH" if method in ("JSON", "STRATEGIC", "APPLY") else method
        answer = self.client.request(verb, path, params=query, json=body, headers={"content-type": media})
        if code is None:
            assert answer.status_code < 300, answer.text
        else:
            assert answer.status_code == code, answer.text
        return answer.json()


@pytest.fixture
def api(store: Store, clock: Clock, tmp_path: Path) -> Iterator[Api]:
    app = create_app(store, logs=tmp_path / "logs", clock=clock)
    with TestClient(app, headers={"user-agent": "tests/1"}) as client:
        yield Api(client)


@pytest.fixture
def make_crd() -> Callable[..., dict[str, Any]]:
    return crd


def crd(spec: dict[str, Any] | None = None, **rules: Any) -> dict[str, Any]:
    """A definition of `widgets.example.com` whose spec has this schema; `rules` are keys beside properties."""
    properties = spec or {
        "size": {"type": "integer", "default": 1, "minimum": 0},
        "color": {"type": "string"},
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties, **rules},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
