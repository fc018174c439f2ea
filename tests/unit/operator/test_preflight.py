"""A missing permission is named at the start, where kopf would wait for ever."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman_kube.errors import NotFoundError, RefusedError
from dragoman_kube.kinds import HPA, POD, REPLICA_SET, Kind
from dragoman_operator.controller.handlers import readable


class Api:
    """Refuses verbs on kinds, by namespace."""

    def __init__(self, *refused: tuple[str, str, Kind]) -> None:
        self.refused = refused

    def _check(self, verb: str, path: str) -> None:
        for namespace, refused, kind in self.refused:
            if refused == verb and path == kind.path(namespace):
                raise RefusedError(
                    f"{verb} {kind.plural} in {namespace or 'all namespaces'}", "forbidden", 403
                )

    async def request(self, _method: str, path: str, _attempted: str, *, query: Any) -> dict[str, Any]:
        self._check("list", path)
        if path == HPA.path():
            raise NotFoundError("list", "no such kind", 404)
        return {"metadata": {"resourceVersion": "5"}}

    async def watch(
        self, kind: Kind, namespace: str, version: str, *, labels: str, timeout_s: float
    ) -> AsyncGenerator[dict[str, Any], None]:
        assert version == "5"
        self._check("watch", kind.path(namespace))
        yield {"type": "BOOKMARK"}


async def readable_of(api: Api, *namespaces: str) -> list[str]:
    return await readable(api, namespaces)  # type: ignore[arg-type]


async def test_everything_may_be_read_and_an_unknown_kind_is_not_watched() -> None:
    assert await readable_of(Api()) == []
    assert await readable_of(Api(), "a", "b") == ["a", "b"]


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_missing_right_is_named(verb: str) -> None:
    with pytest.raises(
        RefusedError, match=f"{verb} replicasets in all namespaces: forbidden; grant"
    ) as error:
        await readable_of(Api(("", verb, REPLICA_SET)))
    assert error.value.status == 403


async def test_one_of_several_namespaces_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert await readable_of(Api(("b", "list", POD)), "a", "b") == ["a"]
    assert "namespace b is left out: list pods in b: forbidden" in caplog.text


async def test_no_namespace_at_all_is_an_error() -> None:
    with pytest.raises(RefusedError):
        await readable_of(Api(("a", "list", POD)), "a")
