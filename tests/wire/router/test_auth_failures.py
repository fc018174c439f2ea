"""A client that guesses keys is limited in the words of its API; others at its address go on."""

from pathlib import Path
from typing import Any

import pytest

from dragoman_router.access.failures import BURST_S

KEYS = {name: f"a-long-secret-of-{name}" for name in ("alice", "bob")}
SLOW = 2 / BURST_S
"""Two failed attempts at once, and the next one in half a minute."""
BODY = {"text": "Hello", "source_lang": "en", "target_lang": "de"}


@pytest.fixture
async def router(start_router: Any, start_upstream: Any, tmp_path: Path) -> Any:
    for name, key in KEYS.items():
        (tmp_path / name).write_text(key)
    started = await start_router(keys_dir=tmp_path, auth_failures_per_s=SLOW, trusted_proxies=("127.0.0.1",))
    started.serve("a", (await start_upstream()).replica())
    return started


async def translate(router: Any, key: str | None, address: str = "192.0.2.1") -> int:
    headers = {"X-Forwarded-For": address} | ({} if key is None else {"X-Api-Key": key})
    status, _, _ = await router.translate(headers=headers)
    return int(status)


async def test_one_client_that_guesses_locks_out_no_other(router: Any) -> None:
    assert await translate(router, KEYS["alice"]) == 200
    assert [await translate(router, f"a-wrong-guess-{at}") for at in range(4)] == [403, 403, 429, 429]
    assert await translate(router, KEYS["alice"]) == 200, "it was used from there before"
    assert await translate(router, KEYS["bob"]) == 429, "a guess that is right looks like a wrong one"
    assert await translate(router, KEYS["bob"], "192.0.2.2") == 200
    assert await translate(router, None) == 401, "no key is no guess"
    labels = {"deployment": "", "code": "too_many_auth_failures", "status": "429"}
    registry = router.state.metrics.registry
    assert registry.get_sample_value("dragoman_router_errors_total", labels) == 3


async def test_a_request_that_is_refused_for_its_key_alone_counts(router: Any) -> None:
    for _ in range(4):
        assert (await router.post("/no/path", BODY, headers={"X-Api-Key": "a-wrong-guess"}))[0] == 404
    assert await translate(router, None, "127.0.0.1") == 401
    assert await translate(router, "a-wrong-guess", "127.0.0.1") == 403


@pytest.mark.parametrize(
    ("path", "body", "headers", "shape"),
    [
        ("/translate", BODY, {"X-Api-Key": "wrong"}, "error"),
        ("/translate", {"q": "x", "source": "en", "target": "de", "api_key": "wrong"}, {}, "error"),
        ("/v2/translate", {"text": ["x"], "target_lang": "DE", "auth_key": "wrong"}, {}, "message"),
        ("/v2/translate", {"text": ["x"]}, {"Authorization": "DeepL-Auth-Key wrong"}, "message"),
        ("/v2/glossaries", {}, {"Authorization": "DeepL-Auth-Key wrong"}, "message"),
        ("/language/translate/v2?key=wrong", {"q": "x", "target": "de"}, {}, "error"),
        ("/translate?api-version=3.0&to=de", [], {"Ocp-Apim-Subscription-Key": "wrong"}, "error"),
        ("/v1/chat/completions", {}, {"Authorization": "Bearer wrong"}, "error"),
    ],
)
async def test_the_answer_is_in_the_words_of_the_api(
    router: Any, path: str, body: object, headers: dict[str, str], shape: str
) -> None:
    for limited in (False, False, True):
        status, document, got = await router.post(path, body, headers=headers)
        assert next(iter(document)) == shape
        assert (status == 429, "Retry-After" in got) == (limited, limited), document
    assert 1 <= int(got["Retry-After"]) <= 30
    assert "check yours" in str(document)


async def test_it_can_be_off(start_router: Any, tmp_path: Path) -> None:
    (tmp_path / "alice").write_text(KEYS["alice"])
    router = await start_router(keys_dir=tmp_path, auth_failures_per_s=0)
    headers = {"X-Api-Key": "a-wrong-guess"}
    assert {(await router.translate(headers=headers))[0] for _ in range(2 * BURST_S)} == {403}
