"""Keys never reach a pod, wherever a client put them, and whether or not they are required."""

from pathlib import Path
from typing import Any

import pytest

KEY = "a-secret-of-alice"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"
JSON = "application/json"
PART = b'--b\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
LIBRETRANSLATE = b'{"q": "Hi", "source": "en", "target": "de", "api_key": "a-secret-of-alice"}'
FILE = b"".join(
    (
        PART % (b"source", b"", b"en"),
        PART % (b"api_key", b"", KEY.encode()),
        PART % (b"target", b"", b"de"),
        PART % (b"q", b"", b"Hi"),
        PART % (b"file", b'; filename="a.txt"', b"Hello"),
        b"--b--\r\n",
    )
)
CASES = [
    ("/translate", {"x-api-key": KEY}, b'{"text": "Hi", "source_lang": "en", "target_lang": "de"}', JSON),
    ("/translate", {}, LIBRETRANSLATE, JSON),
    ("/translate?api_key=" + KEY, {}, b"q=Hi&source=en&target=de", FORM),
    ("/translate", {}, b"q=Hi&source=en&api_key=a-secret-of-alice&target=de", FORM),
    ("/detect", {}, b'{"q": "Hi", "api_key": "a-secret-of-alice"}', JSON),
    ("/translate_file", {}, FILE, MULTIPART),
    ("/translate", {}, FILE, MULTIPART),
    ("/translate", {}, b'{"q": "Hi", "source": "en", "target": "de", "apiKey": "a-secret-of-alice"}', JSON),
    (
        "/v2/translate",
        {},
        b'{"text": ["Hi"], "source_lang": "EN", "target_lang": "DE", "auth_key": "a-secret-of-alice"}',
        JSON,
    ),
    ("/v2/translate", {}, b"text=Hi&source_lang=EN&target_lang=DE&auth_key=a-secret-of-alice", FORM),
    ("/language/translate/v2?key=" + KEY, {}, b'{"q": "Hi", "source": "en", "target": "de"}', JSON),
    ("/translate?api-version=3.0&from=en&to=de&subscription-key=" + KEY, {}, b'[{"Text": "Hi"}]', JSON),
    (
        "/translate?api-version=3.0&from=en&to=de",
        {"Ocp-Apim-Subscription-Key": KEY},
        b'[{"Text": "Hi"}]',
        JSON,
    ),
    ("/imme?token=" + KEY, {}, b'{"source_lang": "en", "target_lang": "de", "text_list": ["Hi"]}', JSON),
    (
        "/crowdin/translate?source=en&target=de&token=" + KEY,
        {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"},
        b'{"strings": ["Hi"]}',
        JSON,
    ),
    (
        "/v1/chat/completions",
        {"api-key": KEY, "cookie": "session=" + KEY},
        b'{"model": "a", "messages": [{"role": "user", "content": "Hi"}]}',
        JSON,
    ),
]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(("path", "headers", "body", "kind"), CASES)
async def test_no_key_reaches_a_pod(
    start_router: Any,
    start_upstream: Any,
    tmp_path: Path,
    path: str,
    headers: dict[str, str],
    body: bytes,
    kind: str,
    required: bool,
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(**({"keys_dir": tmp_path} if required else {}))
    one = await start_upstream()
    router.serve("a", one.replica())
    head = {"content-type": kind, **headers}
    async with router.http.post(router.url + path, data=body, headers=head) as got:
        assert got.status == 200, await got.text()
    (received,) = one.received
    assert KEY not in received.target + repr(received.headers) + received.body.decode()
    assert "Hi" in received.body.decode() or "Hello" in received.body.decode()
