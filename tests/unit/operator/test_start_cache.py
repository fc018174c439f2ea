"""The Secret of the start cache: created once, before the pods that refer to it, and never read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.kinds import SECRET, Kind
from dragoman_kube.objects import Key
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.controller.start_cache import StartCacheSecrets

MakeTd = Callable[..., TranslationDeployment]


class Api:
    """An API server that creates, or refuses to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.created: list[dict[str, Any]] = []
        self.failure = failure
        self.attempts = 0

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        assert kind == SECRET
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.created.append(manifest)
        return manifest


class Services:
    """A cache with one Service."""

    def __init__(self, address: str | None) -> None:
        self.address = address

    def get(self, _kind: Kind, _key: Key) -> dict[str, Any] | None:
        return None if self.address is None else {"spec": {"clusterIP": self.address}}


def secrets_of(api: Api, address: str | None = "10.0.0.7") -> StartCacheSecrets:
    return StartCacheSecrets(api, Services(address))  # type: ignore[arg-type]


async def test_each_object_gets_a_secret_of_its_own_once(make_td: MakeTd) -> None:
    api, td = Api(), make_td()
    made = secrets_of(api)
    await made.ensure(td)
    await made.ensure(td)
    made.forget(Key(td.namespace, td.name))
    await made.ensure(td)
    first, second = api.created
    assert first["metadata"]["name"] == f"{td.name}-start-cache"
    assert first["metadata"]["ownerReferences"][0]["uid"] == td.uid
    assert first["stringData"]["url"] == "http://10.0.0.7:8000"
    assert len(first["stringData"]["secret"]) == 64
    assert first["stringData"]["secret"] != second["stringData"]["secret"]


@pytest.mark.parametrize("failure", [ConflictError("create", "exists"), RefusedError("create", "forbidden")])
async def test_a_secret_that_exists_or_is_refused_stops_nothing(make_td: MakeTd, failure: Exception) -> None:
    api = Api(failure)
    made = secrets_of(api)
    await made.ensure(make_td())
    await made.ensure(make_td())
    assert api.attempts == 1


@pytest.mark.parametrize("address", [None, "", "None"])
async def test_without_an_address_there_is_no_secret(make_td: MakeTd, address: str | None) -> None:
    api = Api()
    await secrets_of(api, address).ensure(make_td())
    assert api.attempts == 0


async def test_an_ipv6_address_makes_a_url(make_td: MakeTd) -> None:
    api = Api()
    await secrets_of(api, "fd00::7").ensure(make_td())
    assert api.created[0]["stringData"]["url"] == "http://[fd00::7]:8000"
