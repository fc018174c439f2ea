"""Routing by pair, name, language of the text and share; and what the router reports about it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_router.errors import SettingsError
from dragoman_router.fleet import static
from dragoman_router.http.admin import load_of, watched


async def test_exact_before_wildcard_and_region_falls_back(router: Any, start_upstream: Any) -> None:
    exact, rest = await start_upstream("exact"), await start_upstream("rest")
    router.serve("exact", exact.replica())
    router.serve("rest", rest.replica(), pairs={"*": ("*",)})
    assert (await router.translate())[1] == {"by": "exact"}
    assert (await router.translate("en-GB", "de-AT"))[1] == {"by": "exact"}
    assert (await router.translate("fr", "de"))[1] == {"by": "rest"}


async def test_explicit_choice(router: Any, start_upstream: Any) -> None:
    one, two = await start_upstream("one"), await start_upstream("two")
    router.serve("a", one.replica())
    router.serve("b", two.replica(), weight=0)
    assert (await router.translate())[1] == {"by": "one"}, "a weight of 0 gets nothing by itself"
    assert (await router.translate(headers={"X-Dragoman-Deployment": "default/b"}))[1] == {"by": "two"}
    _, body, headers = await router.translate(path="/d/default/b/translate")
    assert (body, headers["X-Dragoman-Route"]) == ({"by": "two"}, "named; least-in-flight")
    assert two.received[-1].target == "/translate"
    assert (await router.translate(path="/d/default/none/translate"))[0] == 404
    assert (await router.get("/d/default/b/anything/else?x=1"))[0] == 404


async def test_the_language_is_detected_where_deployments_differ(router: Any, start_upstream: Any) -> None:
    english, french = await start_upstream("english"), await start_upstream("french")
    router.serve("a", english.replica(), pairs={"en": ("de",)})
    router.serve("b", french.replica(), pairs={"fr": ("de",)})
    body = {"q": "Le chat dort sur le canapé et le chien aboie.", "source": "auto", "target": "de"}
    _, answer, headers = await router.post("/translate", body)
    assert answer == {"by": "french"}
    assert headers["X-Dragoman-Route"] == "pair-detected; least-in-flight; detected=fr"
    assert json.loads(french.received[0].body) == body


async def test_several_targets_go_to_one_deployment(router: Any, start_upstream: Any) -> None:
    both, one = await start_upstream("both"), await start_upstream("one")
    router.serve("one", one.replica(), pairs={"en": ("de",), "fr": ("it",)})
    router.serve("both", both.replica(), pairs={"*": ("de", "fr")})
    path = "/translate?api-version=3.0&from=en"
    assert (await router.post(f"{path}&to=de&to=fr", [{"Text": "x"}]))[1] == {"by": "both"}
    router.serve("both", both.replica(), pairs={"en": ("fr",)})
    status, body, _ = await router.post(f"{path}&to=de&to=fr", [{"Text": "x"}])
    assert (status, body["error"]["code"]) == (400, 400023)
    assert "one target at a time" in body["error"]["message"]


async def test_models_are_deployments(router: Any, start_upstream: Any) -> None:
    one = await start_upstream("one")
    router.serve("european", one.replica())
    chat = {"model": "european", "messages": [{"role": "user", "content": "Hi"}]}
    assert (await router.post("/v1/chat/completions", chat))[1] == {"by": "one"}
    options = {"translation_options": {"source_lang": "en", "target_lang": "fr"}}
    assert (await router.post("/v1/chat/completions", chat | options))[0] == 400
    status, body, _ = await router.post("/v1/chat/completions", chat | {"model": "none"})
    assert (status, body["error"]["code"]) == (404, "model_not_found")
    assert body["error"]["message"] == "no model 'none' here; there is 'european'"
    listed = (await router.get("/v1/models"))[1]["data"]
    assert [each["id"] for each in listed] == ["european"]
    assert (await router.get("/v1/models/european"))[1] == listed[0]
    assert (await router.get("/v1/models/none"))[1]["error"]["param"] == "model"
    assert (await router.post("/v1/models/european", {}))[0] == 405


async def test_a_canary_gets_its_share_and_yields_it_when_it_is_down(
    router: Any, start_upstream: Any
) -> None:
    stable, canary = await start_upstream("stable"), await start_upstream("canary")
    router.serve("stable", stable.replica(), weight=80)
    router.serve("canary", canary.replica(), weight=20)
    answers = [(await router.translate())[1]["by"] for _ in range(200)]
    assert 10 < answers.count("canary") < 80
    router.state.fleet.set_replicas("default/canary", [])
    assert {(await router.translate())[1]["by"] for _ in range(20)} == {"stable"}


async def test_keys_are_required_and_not_passed_on(
    start_router: Any, start_upstream: Any, tmp_path: Path
) -> None:
    (tmp_path / "team").write_text('{"key": "a-team-secret", "characterLimit": 12}')
    router = await start_router(keys_dir=tmp_path)
    one = await start_upstream()
    router.serve("a", one.replica())
    assert (await router.translate())[0] == 401
    assert (await router.translate(headers={"Authorization": "Bearer wrong-secret"}))[0] == 403
    key = {"Authorization": "DeepL-Auth-Key a-team-secret"}
    deepl = {"text": ["12345"], "source_lang": "EN", "target_lang": "DE"}
    assert (await router.post("/v2/translate", deepl, headers=key))[0] == 200
    assert "authorization" not in one.received[0].headers
    assert (await router.get("/v2/usage", headers=key))[1] == {"character_count": 5, "character_limit": 12}
    assert (await router.post("/v2/translate", deepl, headers=key))[0] == 200
    assert (await router.post("/v2/translate", deepl, headers=key))[0] == 456
    form = {"q": "x", "source": "en", "target": "de", "api_key": "a-team-secret"}
    async with router.http.post(router.url + "/translate", data=form) as got:
        assert got.status == 200
    assert (await router.get("/frontend/settings"))[0] == 200
    assert (await router.get("/v2/usage"))[0] == 403


async def test_one_address_may_be_limited_without_keys(start_router: Any, start_upstream: Any) -> None:
    router = await start_router(anonymous_requests_per_s=0.1)
    router.serve("a", (await start_upstream()).replica())
    statuses = [(await router.translate())[0] for _ in range(3)]
    assert statuses[0] == 200
    assert statuses[-1] == 429


async def test_the_load_is_reported_in_the_format_of_the_contract(
    router: Any, start_upstream: Any, until: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica(), max_in_flight=1)
    fleet = router.state.fleet
    lines = watched(fleet, lambda: router.state.draining)
    assert (await anext(lines)).deployments == {}
    let_go = asyncio.Event()

    async def wait(exchange: Any) -> None:
        await let_go.wait()
        await exchange.answer({})

    one.script = wait
    pending = [asyncio.ensure_future(router.translate()) for _ in range(3)]
    await until(lambda: len(fleet.backends["default/a"].queue) == 2)
    async with asyncio.timeout(10):
        while not (line := await anext(lines)).deployments or line.deployments["default/a"].queued != 2:
            pass
    assert line.deployments["default/a"].in_flight == 1
    let_go.set()
    await asyncio.gather(*pending)
    assert load_of(fleet, True).model_dump() == {"deployments": {}, "draining": True}
    await lines.aclose()


def write(path: Path, *names: str) -> Path:
    entries = "".join(f"- {{name: {name}, replicas: ['127.0.0.1:1']}}\n" for name in names)
    path.write_text(f"deployments:\n{entries}")
    return path


async def test_a_static_file_is_read_again(router: Any, tmp_path: Path) -> None:
    path, fleet = write(tmp_path / "static.yaml", "a", "ns/b"), router.state.fleet
    static.load(path, fleet)
    assert set(fleet.backends) == {"default/a", "ns/b"}
    static.load(write(path, "ns/b", "c"), fleet)
    assert set(fleet.backends) == {"ns/b", "default/c"}
    for wrong in (
        "deployments: [{name: a, replicas: [nowhere]}]",
        "deployments: [{name: a}, {name: default/a}]",
        "{",
    ):
        path.write_text(wrong)
        with pytest.raises(SettingsError):
            static.load(path, fleet)
    assert set(fleet.backends) == {"ns/b", "default/c"}
