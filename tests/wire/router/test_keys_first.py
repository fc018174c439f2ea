"""Where keys are required, they are checked before anything of a body is read."""

import json
from pathlib import Path
from typing import Any

import pytest

KEY = "a-secret-of-alice"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"


@pytest.fixture
async def keyed(start_router: Any, start_upstream: Any, tmp_path: Path) -> Any:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(keys_dir=tmp_path)
    router.serve("a", (await start_upstream()).replica())
    return router


async def answered(router: Any, path: str, body: bytes, kind: str, method: str = "POST") -> tuple[int, Any]:
    async with router.http.request(
        method, router.url + path, data=body, headers={"content-type": kind}
    ) as got:
        return got.status, json.loads(await got.read())


CHAT = b'{"model":"a","messages":[],"translation_options":{"target_lang":"%s"}}' % (b"Germ" * 50_000)


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "shape"),
    [
        ("/v1/chat/completions", CHAT, "application/json", 401, "error"),
        ("/v1/chat/completions", b"{", "application/json", 401, "error"),
        ("/language/translate/v2", b"{", "application/json", 401, "error"),
        ("/language/translate/v2", b"q=%" * 100_000, FORM, 401, "error"),
        ("/translate?api-version=3.0&to=de", b"{", "application/json", 401, "error"),
        ("/translate", b'{"text": 1}', "application/json", 401, "error"),
        ("/translate", b'{"text": "x", "api_key": "a-secret-of-alice"}', "application/json", 401, "error"),
        ("/translate", b"\xff", "application/json", 401, "error"),
        ("/translate", b"&" * 100_000, FORM, 403, "error"),
        ("/translate", b"q=x&target=", FORM, 403, "error"),
        ("/v2/translate", b'{"text": ' + b"[" * 10_000, "application/json", 403, "message"),
        ("/v2/translate", b"&" * 100_000, FORM, 403, "message"),
        ("/v2/usage", b"", FORM, 403, "message"),
        ("/v2/glossaries", b"{", "application/json", 403, "message"),
        ("/detect", b"&" * 100_000, FORM, 403, "error"),
        ("/translate_file", b"--b\r\nx", MULTIPART, 403, "error"),
        ("/v2/document", b"nothing", MULTIPART, 403, "message"),
    ],
)
async def test_a_body_without_a_key_is_refused_for_that_alone(
    keyed: Any, path: str, body: bytes, kind: str, status: int, shape: str
) -> None:
    found, document = await answered(keyed, path, body, kind)
    assert (found, list(document)) == (status, [shape]), document
    assert "key" in str(document)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/translate", "in the header `X-API-Key: KEY` or `Authorization: Bearer KEY`"),
        ("/detect", "in the field `api_key`"),
        ("/v2/translate", "in the header `Authorization: DeepL-Auth-Key KEY`"),
        ("/language/translate/v2", "in the header `X-Goog-Api-Key: KEY` or the parameter `key`"),
        ("/translate?api-version=3.0&to=de", "in the header `Ocp-Apim-Subscription-Key: KEY`"),
        ("/v1/chat/completions", "in the header `Authorization: Bearer KEY`"),
        ("/imme", "in the parameter `token`"),
        ("/crowdin/translate", "in the parameter `token`"),
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": KEY},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": f"ApiKey {KEY}"},
        {"X-Auth-Token": KEY},
    ],
)
async def test_a_key_in_a_header_that_has_none_is_refused_with_the_place_where_the_api_has_it(
    keyed: Any, path: str, place: str, headers: dict[str, str]
) -> None:
    async with keyed.http.post(keyed.url + path, json={"text": "x"}, headers=headers) as got:
        words = await got.text()
        assert got.status in (401, 403), words
    assert f"an API key is required; send it {place}" in words
    assert ("the header Authorization has neither" in words) == ("Authorization" in headers)
    assert KEY not in words


PARTS = (
    b"".join(
        b'--b\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n' % field
        for field in ((b"q", b"x"), (b"source", b"en"), (b"target", b"de"), (b"api_key", b"%s"))
    )
    + b"--b--\r\n"
)


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/translate", b'{"q": "x", "source": "en", "target": "de", "api_key": "%s"}', "application/json"),
        ("/translate", b"q=x&source=en&target=de&api_key=%s", FORM),
        ("/translate", b'{"q": "x", "source": "en", "target": "de", "apiKey": "%s"}', "application/json"),
        ("/translate", PARTS, MULTIPART),
        ("/detect", PARTS, MULTIPART),
        ("/detect", b"q=x&api%%5Fkey=%s", FORM),
        ("/detect", b"q=x&api_key=%s", FORM),
        ("/v2/translate", b"text=x&source_lang=EN&target_lang=DE&auth_key=%s", FORM),
        (
            "/v2/translate",
            b'{"text": ["x"], "source_lang": "EN", "target_lang": "DE", "auth_key": "%s"}',
            "application/json",
        ),
        ("/v2/usage", b"auth_key=%s", FORM),
        ("/v2/languages", b"auth_key=%s&type=target", FORM),
    ],
)
async def test_a_key_in_a_body_is_found_where_the_api_has_it(
    keyed: Any, path: str, body: bytes, kind: str
) -> None:
    assert (await answered(keyed, path, body % KEY.encode(), kind))[0] == 200
    assert (await answered(keyed, path, body % b"not-a-key-at-all", kind))[0] == 403


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/chat/completions", "error"),
        ("/language/translate/v2", "error"),
        ("/translate?api-version=3.0", "error"),
    ],
)
async def test_an_api_without_keys_in_bodies_refuses_before_the_body_comes(
    keyed: Any, path: str, shape: str
) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\nexpect: 100-continue\r\n\r\n"
    got = await keyed.raw(head.encode(), deadline_s=30)
    assert got.startswith(b"HTTP/1.1 401"), "no 100, no waiting"
    assert b"connection: close" in got.lower(), "what comes next could be the body or a request"
    assert shape in json.loads(got.partition(b"\r\n\r\n")[2])


async def test_what_follows_a_refusal_is_thrown_away_and_the_connection_goes_on(keyed: Any) -> None:
    body = b"x" * 500_000
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    usage = b"GET /v2/usage HTTP/1.1\r\nhost: x\r\nx-api-key: a-secret-of-alice\r\nconnection: close\r\n\r\n"
    got = await keyed.raw(head, body[:100_000], body[100_000:], usage, deadline_s=30)
    assert got.startswith(b"HTTP/1.1 401")
    assert b"HTTP/1.1 200" in got


async def test_the_body_that_a_refused_client_never_sends_gets_no_second_answer(
    start_router: Any, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(keys_dir=tmp_path, body_timeout_s=0.3)
    got = await router.raw(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{", deadline_s=30
    )
    assert got.startswith(b"HTTP/1.1 401")
    assert got.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("key", ["header", "none"])
@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/translate", "error"),
        ("/v2/translate", "message"),
        ("/language/translate/v2", "error"),
        ("/translate?api-version=3.0", "error"),
        ("/v1/chat/completions", "error"),
    ],
)
async def test_a_query_of_too_many_fields_is_the_callers_error(
    keyed: Any, path: str, shape: str, key: str
) -> None:
    query = ("&" if "?" in path else "?") + "key=x" + "&" * 5000
    headers = {"x-api-key": KEY} if key == "header" else {}
    async with keyed.http.post(keyed.url + path + query, data=b"q=x", headers=headers) as got:
        document = json.loads(await got.read())
        if key == "header" and "api-version" not in path:
            # The query of a request with a body that is no form is not read there.
            assert got.status < 500
        else:
            assert (got.status, list(document)) == (400, [shape]), document
            assert "query has more than" in str(document)


async def test_a_file_is_read_on_once_its_form_has_brought_a_key(
    start_router: Any, start_upstream: Any, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(keys_dir=tmp_path, max_body_bytes=4096)
    one = await start_upstream()
    router.serve("a", one.replica())
    part = b'--b\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    pair = part % (b"source", b"", b"en") + part % (b"target", b"", b"de")
    key = part % (b"api_key", b"", KEY.encode())
    file = part % (b"file", b'; filename="a.txt"', b"x" * 200_000)
    end = b"--b--\r\n"
    assert (await answered(router, "/translate_file", pair + key + file + end, MULTIPART))[0] == 200
    status, document = await answered(router, "/translate_file", pair + file + key + end, MULTIPART)
    assert (status, list(document)) == (403, ["error"])
    assert len(one.received) == 1


PUBLIC = ["/languages", "/frontend/settings", "/languages?api-version=3.0"]


@pytest.mark.parametrize("path", PUBLIC)
async def test_lists_that_the_publisher_gives_to_all_need_no_key_but_take_no_wrong_one(
    keyed: Any, path: str
) -> None:
    for headers, status in (({}, 200), ({"x-api-key": KEY}, 200), ({"x-api-key": "not-a-key"}, None)):
        async with keyed.http.get(keyed.url + path, headers=headers) as got:
            assert got.status == status or (status is None and got.status in (401, 403)), await got.text()


@pytest.mark.parametrize("path", PUBLIC)
async def test_lists_need_a_key_where_they_are_not_public(
    start_router: Any, tmp_path: Path, path: str
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(keys_dir=tmp_path, public_lists=False)
    for headers, status in (({}, (401, 403)), ({"x-api-key": KEY}, (200,))):
        async with router.http.get(router.url + path, headers=headers) as got:
            assert got.status in status


@pytest.mark.parametrize(
    "path", ["/v2/languages", "/language/translate/v2/languages", "/v1/models", "/v2/usage"]
)
async def test_lists_that_the_publisher_gives_to_its_customers_need_a_key(keyed: Any, path: str) -> None:
    async with keyed.http.get(keyed.url + path) as got:
        assert got.status in (401, 403)
