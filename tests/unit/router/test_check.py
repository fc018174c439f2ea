"""What `dragoman check` says of each TranslationDeployment."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

from dragoman_router import check
from dragoman_router.errors import SettingsError

TIMEOUT_S = 20.0

DEGRADED = {
    "type": "Degraded",
    "status": "True",
    "reason": "ModelNotFound",
    "message": "no /models/x in the pod",
}
UNAVAILABLE = {
    "type": "Available",
    "status": "False",
    "reason": "NoReadyReplicas",
    "message": "0 of 1 are ready",
}
AVAILABLE = {"type": "Available", "status": "True", "reason": "ReadyReplicas", "message": "1 of 1 are ready"}


def made(name: str, *conditions: dict[str, str], **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "team", "name": name}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}


def test_the_first_pair_is_translated() -> None:
    languages = [{"source": "fr", "targets": ["de", "it"]}, {"source": "en", "targets": ["de"]}]
    assert check.pair_of(made("a", languages=languages)) == ("fr", "de")
    assert check.pair_of(made("a")) == ("en", "de")


def test_conditions_that_are_as_expected_are_left_out() -> None:
    assert check.conditions(made("a", AVAILABLE, DEGRADED)) == [
        "Degraded is True, ModelNotFound: no /models/x in the pod"
    ]


def test_an_object_without_conditions_points_to_the_operator() -> None:
    assert check.conditions(made("a")) == ["it has no conditions: is the operator running?"]


@pytest.mark.parametrize(
    ("text", "expected"), [("secret-key\n", "secret-key"), ('{"key": "key-of-json"}', "key-of-json")]
)
def test_the_first_key_is_used(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "b").write_text("other-key")
    (tmp_path / "a").write_text(text)
    assert check.first_key(tmp_path) == expected


def test_a_directory_without_keys_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="has no API key"):
        check.first_key(tmp_path)


@pytest.fixture
async def router() -> AsyncIterator[BaseTestServer]:
    """Translates by `team/good`, for clients with the key; has no replica of others."""

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer secret-key":
            return web.json_response({"error": {"message": "an API key is required"}}, status=401)
        if request.match_info["name"] != "good":
            return web.json_response({"error": {"message": "no replica is ready"}}, status=503)
        return web.json_response({"translation": "Der Zug hat Verspätung."})

    app = web.Application()
    app.router.add_post("/d/team/{name}/translate", answer)
    async with TestServer(app) as server:
        yield server


async def test_a_translation_is_printed_and_a_failure_has_its_reason(
    router: BaseTestServer,
) -> None:
    objects = made("bad", UNAVAILABLE, DEGRADED), made("good", AVAILABLE)
    bad, good = await check.check(str(router.make_url("/")), objects, "secret-key", TIMEOUT_S)
    assert good == (True, "team/good: en to de: Der Zug hat Verspätung.")
    assert not bad.translated
    assert bad.line.splitlines() == [
        "team/bad: 503: no replica is ready",
        "    Available is False, NoReadyReplicas: 0 of 1 are ready",
        "    Degraded is True, ModelNotFound: no /models/x in the pod",
    ]


async def test_a_missing_key_is_the_routers_error(router: BaseTestServer) -> None:
    (result,) = await check.check(str(router.make_url("/")), [made("good", AVAILABLE)], None, TIMEOUT_S)
    assert result == (False, "team/good: 401: an API key is required")


async def test_a_router_that_does_not_respond_is_named() -> None:
    (result,) = await check.check("http://127.0.0.1:9", [made("good", AVAILABLE)], None, TIMEOUT_S)
    assert result.line.startswith("team/good: http://127.0.0.1:9 does not respond: ClientConnectorError")


async def test_a_success_of_another_server_is_no_translation() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    app = web.Application()
    app.router.add_post("/d/team/good/translate", page)
    async with TestServer(app) as server:
        (result,) = await check.check(str(server.make_url("/")), [made("good", AVAILABLE)], None, TIMEOUT_S)
    assert result == (False, "team/good: 200: <html>")


async def test_a_request_that_is_held_too_long_has_its_reason() -> None:
    async def hold(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_post("/d/team/bad/translate", hold)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        (result,) = await check.check(url, [made("bad", DEGRADED)], None, timeout_s=0.2)
    assert result.line.splitlines() == [
        "team/bad: no response within the timeout",
        "    Degraded is True, ModelNotFound: no /models/x in the pod",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(json.dumps({"error": {"message": "full"}}), "503: full"), ("<html>", "503: <html>"), ("[]", "503: []")],
)
def test_errors_that_are_not_the_routers_are_printed_as_they_are(text: str, expected: str) -> None:
    assert check.reason(503, text) == expected
