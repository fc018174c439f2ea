"""A key, or a token, that may use some deployments alone: for it there are no others."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_router.access.keys import read_keys
from dragoman_router.errors import SettingsError
from dragoman_router.routing.deployments import Deployment

ALL, TEAM, ONE, NONE = ({"X-Api-Key": f"a-secret-of-{name}"} for name in ("all", "team", "one", "none"))


@pytest.fixture
async def router(start_router: Any, start_upstream: Any, tmp_path: Path) -> Any:
    for name, deployments in (
        ("all", None),
        ("team", ["default/*", "other/x"]),
        ("one", ["default/b"]),
        ("none", ["gone/*"]),
    ):
        entry = {"key": f"a-secret-of-{name}", "deployments": deployments}
        (tmp_path / name).write_text(json.dumps(entry))
    started = await start_router(keys_dir=tmp_path)
    started.serve("a", (await start_upstream("a")).replica())
    started.serve("b", (await start_upstream("b")).replica(), pairs={"*": ("*",)})
    return started


async def test_a_pair_goes_to_the_closest_deployment_of_the_scope(router: Any) -> None:
    assert [(await router.translate(headers=key))[1] for key in (ALL, TEAM, ONE)] == [
        {"by": "a"},
        {"by": "a"},
        {"by": "b"},
    ]
    status, document, _ = await router.translate(headers=NONE)
    assert (status, document["error"]["code"]) == (422, "unsupported_pair")


async def test_other_deployments_are_neither_named_nor_listed(router: Any) -> None:
    assert (await router.translate(headers=TEAM, path="/d/default/a/translate"))[0] == 200
    for headers in (ONE, NONE):
        status, document, _ = await router.translate(headers=headers, path="/d/default/a/translate")
        assert (status, document["error"]["message"]) == (404, "no TranslationDeployment 'default/a' here")
        chat = {"model": "a", "messages": [{"role": "user", "content": "Hi"}]}
        assert (await router.post("/v1/chat/completions", chat, headers=headers))[0] == 404
    listed = [
        [each["id"] for each in (await router.get("/v1/models", headers=key))[1]["data"]]
        for key in (ALL, TEAM, ONE, NONE)
    ]
    assert listed == [["a", "b"], ["a", "b"], ["b"], []]


async def test_a_scope_follows_what_is_deployed(router: Any) -> None:
    assert (await router.translate(headers=ONE))[1] == {"by": "b"}
    router.state.fleet.remove("default/b")
    assert (await router.translate(headers=ONE))[0] == 422
    router.state.fleet.put(Deployment(key="gone/c"))
    assert [each["id"] for each in (await router.get("/v1/models", headers=NONE))[1]["data"]] == ["c"]


@pytest.mark.parametrize("entry", ["a", "a/", "/b", "*/b", "a/b/c", "a/b*", ""])
def test_a_scope_that_is_none_is_refused(tmp_path: Path, entry: str) -> None:
    (tmp_path / "alice").write_text(json.dumps({"key": "a-secret-of-alice", "deployments": [entry]}))
    with pytest.raises(SettingsError, match=r"alice: deployments has to have NAMESPACE/NAME or NAMESPACE/\*"):
        read_keys(tmp_path)
