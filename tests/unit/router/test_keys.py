"""API keys and what they may do."""

import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from dragoman_protocols.errors import (
    CallerError,
    MalformedRequestError,
    QuotaError,
    RateLimitedError,
)
from dragoman_protocols.keys import key_in_head, split_body, split_query
from dragoman_protocols.multipart import MultipartReader, read_form
from dragoman_router.access.accounts import Account, AccountLimits
from dragoman_router.access.keys import Key, KeyRing
from dragoman_router.errors import SettingsError
from dragoman_router.http.proxy import HeadWriter
from dragoman_router.request import RoutedRequest
from dragoman_router.routing.placement import Placement


def request(*headers: tuple[bytes, bytes], query: bytes = b"") -> RoutedRequest:
    return RoutedRequest("POST", "/translate", query, list(headers))


def find(ring: KeyRing, presented: bytes | None) -> Key:
    found = ring.known(presented or b"")
    assert found is not None
    return found


def charge(account: Account, characters: int, now_s: float) -> None:
    """One request whose characters were all translated."""
    account.reserve(characters, now_s).settle(characters)


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    (tmp_path / "plain").write_text("a-plain-secret\n")
    (tmp_path / "limited").write_text('{"key": "a-limited-secret", "requestsPerS": 2, "characterLimit": 10}')
    (tmp_path / "..data").mkdir()
    return KeyRing(tmp_path, lambda: 0.0)


@pytest.mark.parametrize(
    "sent",
    [
        request((b"authorization", b"Bearer a-plain-secret")),
        request((b"authorization", b"DeepL-Auth-Key a-plain-secret")),
        request((b"ocp-apim-subscription-key", b"a-plain-secret")),
        request((b"x-api-key", b"a-plain-secret")),
        request(query=b"key=a-plain-secret&q=x"),
        request(query=b"api_key=a-plain-secret"),
        request(query=b"q=x&k%65y=a%2Dplain-secret"),
    ],
)
def test_keys_are_found_where_each_api_puts_them(ring: KeyRing, sent: RoutedRequest) -> None:
    assert find(ring, key_in_head(sent)).name == "plain"


def test_a_web_token_of_the_caller_s_gives_way_to_a_key_in_the_query() -> None:
    token = (b"authorization", b"Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln")
    assert key_in_head(request(token, query=b"source=en&token=a-plain-secret")) == b"a-plain-secret"
    assert key_in_head(request(token, query=b"source=en")) == b"eyJhbGciOiJIUzI1NiJ9.e30.c2ln"
    other = (b"authorization", b"Bearer another-secret")
    assert key_in_head(request(other, query=b"token=a-plain-secret")) == b"another-secret"


FORM = (b"content-type", b"application/x-www-form-urlencoded")
PARTS = (b"content-type", b"multipart/form-data; boundary=b")
FIELDS = ("api_key", "apiKey")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((), b'{"q": "x", "api_key": "a-plain-secret"}'),
        ((FORM,), b"q=x&api_key=a-plain-secret"),
        ((FORM,), b"api_key=a%2Dplain-secret&q=x"),
        ((FORM,), b' {"api_key": "a-plain-secret"}'),
        ((FORM,), b"q=x&api%5Fkey=a-plain-secret&q=y"),
        ((), b'{"api\\u005fkey": "a-plain-secret"}'),
        ((), b'{"api_key": "", "apiKey": "a-plain-secret"}'),
        ((), b'{"api\\u004bey": "a-plain-secret", "q": "x"}'),
        (
            (PARTS,),
            b'--b\r\ncontent-disposition: form-data; name="api_key"\r\n\r\na-plain-secret\r\n--b--\r\n',
        ),
    ],
)
def test_a_key_in_the_body(ring: KeyRing, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
    sent = request(*headers)
    sent.body = body
    key, left = split_body(sent, FIELDS)
    assert find(ring, key).name == "plain"
    assert b"a-plain-secret" not in left


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((), b""),
        ((), b'{"q": 1'),
        ((), b"[" * 100_000),
        ((), b'{"api_key": 1}'),
        ((), b'{"api_key": "a-plain-secret"'),
        ((), b'{"q": {"api_key": "a-plain-secret"}}'),
        ((FORM,), b"q=x&not_api_key=a-plain-secret"),
        ((FORM,), b"&" * 100_000),
    ],
)
def test_a_body_without_a_key(headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
    sent = request(*headers)
    sent.body = body
    with suppress(CallerError):
        assert split_body(sent, FIELDS)[0] is None


def test_a_query_of_too_many_fields_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="query has more than 1000 fields"):
        key_in_head(request(query=b"?key=x" + b"&" * 5000))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        (b"", b""),
        (b"api-version=3.0&to=de", b"api-version=3.0&to=de"),
        (b"key=secret", b""),
        (b"q=a%20key&key=secret&target=de", b"q=a%20key&target=de"),
        (b"target=de&api_key=secret&auth_key=s&subscription-key=s&token=s", b"target=de"),
        (b"api%5Fkey=secret&k%65y=secret&q=token", b"q=token"),
        (b"key&to=de&&monkey=1&key=", b"to=de&&monkey=1"),
        (b"%" * 500 + b"=x&key=s", b"%" * 500 + b"=x"),
    ],
)
def test_keys_are_removed_from_a_query(query: bytes, left: bytes) -> None:
    assert split_query(query)[1] == left


def test_a_query_that_may_have_a_key_and_has_too_many_fields_is_refused() -> None:
    assert split_query(b"&" * 5000)[1] == b"&" * 5000
    with pytest.raises(MalformedRequestError, match="query has more than 1000 fields"):
        split_query(b"%" + b"&" * 5000)


@pytest.mark.parametrize(
    ("headers", "body", "left"),
    [
        ((), b'{"q": "x"}', b'{"q": "x"}'),
        ((), b'{"q": "\\u00e9"}', b'{"q": "\\u00e9"}'),
        ((), b'{"q": "\\u00e9", "api_key": "secret"}', b'{"q":"\\u00e9"}'),
        ((), b'{"api\\u005fkey": "secret", "q": [ 1, "api_key"]}', b'{"q":[ 1, "api_key"]}'),
        ((), b'{"api_key": "secret", "apiKey": "other"}', b"{}"),
        ((), b'{"api_key": 12345678, "api_key": {"a": "secret"}}', b"{}"),
        ((), b'{"q": {"api_key": "a text"}}', b'{"q": {"api_key": "a text"}}'),
        ((FORM,), b"q=x&api_key=secret", b"q=x"),
        ((FORM,), b"api%5fkey=secret&q=api_key%3Dx", b"q=api_key%3Dx"),
        ((FORM,), b'{"api_key": "secret"}', b"{}"),
        ((), b"no JSON", b"no JSON"),
    ],
)
def test_a_key_is_removed_from_a_body(
    headers: tuple[tuple[bytes, bytes], ...], body: bytes, left: bytes
) -> None:
    sent = request(*headers)
    sent.body = body
    assert split_body(sent, FIELDS)[1] == left


@pytest.mark.parametrize("body", [b'{"api_key": "secret"', b'["api_key"]', b"api_key", b'{"api_key": "\xff"'])
def test_a_body_that_may_have_a_key_and_cannot_be_read_is_refused(body: bytes) -> None:
    sent = request()
    sent.body = body
    with pytest.raises(CallerError):
        split_body(sent, FIELDS)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_key_is_overwritten_in_a_form_of_parts(size: int) -> None:
    part = b'--b\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    before = part % (b"source", b"", b"secret")
    after = part % (b"file", b'; filename="a.txt"', b"the secret\r\n--in a file")
    keys = part % (b"api_key", b"", b"secret"), part % (b"api_key", b"", b"first\r\n-second")
    kind = b"multipart/form-data; boundary=b"
    sent = request((b"content-type", kind))
    sent.body = before + keys[0] + after + keys[1] + b"--b--\r\n"
    reader = MultipartReader(kind)
    for at in range(0, len(sent.body), size):
        reader.feed(sent.body[at : at + size])
    sent.upload = reader.finish()
    key, left = split_body(sent, FIELDS)
    assert key == b"secret"
    head, tail = left[: len(before)], left[len(before + keys[0]) :]
    assert (head, len(left)) == (before, len(sent.body))
    assert tail.startswith(after)
    assert not any(
        value in left.replace(before, b"").replace(after, b"") for value in (b"secr", b"first", b"second")
    )
    assert read_form(kind, left, keep_file=True).content == b"the secret\r\n--in a file"


def test_no_credential_is_in_a_forwarded_head() -> None:
    heads = HeadWriter("router-1", Random(1))
    credentials = [
        (name, b"a-secret")
        for name in (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key", b"cookie")
    ]
    sent = request(*credentials, (b"ocp-apim-subscription-key", b"a-secret"), (b"x-mine", b"kept"))
    sent.raw_path, sent.query = b"/detect", b"key=a-secret"
    head = heads.write(sent, Placement(("default/a",), "pair"))
    assert b"secret" not in head
    assert head.startswith(b"POST /detect HTTP/1.1\r\nocp-apim-subscription-key: \r\nx-mine: kept\r\n"), (
        "Azure's header marks requests of its API, without api-version too"
    )


def test_no_key_and_a_wrong_one(ring: KeyRing) -> None:
    assert key_in_head(request((b"authorization", b"Basic eHg="))) is None
    assert ring.known(b"a-plain-secre") is None
    assert ring.known(b"") is None


def test_keys_are_in_memory_as_hashes_alone(ring: KeyRing) -> None:
    assert b"secret" not in repr([(key.name, key.digest) for key in ring._keys.values()]).encode()
    assert b"secret" not in b"".join(ring._keys)


def test_a_changed_file_is_read_and_accounts_go_on(ring: KeyRing, tmp_path: Path) -> None:
    charge(find(ring, b"a-plain-secret").account, 5, 0)
    (tmp_path / "plain").write_text("another-secret")
    ring.load()
    assert find(ring, b"another-secret").account.characters == 5
    assert ring.known(b"a-plain-secret") is None


@pytest.mark.parametrize(
    "content",
    ["short", '{"key": "long enough", "requestPerS": 1}', '{"key": "long enough", "requestsPerS": 0}'],
)
def test_a_file_that_is_wrong_is_refused_and_changes_nothing(
    ring: KeyRing, tmp_path: Path, content: str
) -> None:
    (tmp_path / "new").write_text(content)
    with pytest.raises(SettingsError, match="new"):
        ring.load()
    assert find(ring, b"a-plain-secret").name == "plain"


def test_a_name_that_is_not_printable_is_refused(ring: KeyRing, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("a-new-secret")
    with pytest.raises(SettingsError, match="udce9"):
        ring.load()
    assert find(ring, b"a-plain-secret").name == "plain"


def test_what_was_used_stays_used_whatever_becomes_of_the_key(ring: KeyRing, tmp_path: Path) -> None:
    charge(find(ring, b"a-limited-secret").account, 5, 0)
    (tmp_path / "limited").write_text('{"key": "a-limited-secret", "characterLimit": 7}')
    ring.load()
    with pytest.raises(QuotaError, match="5 of 7"):
        charge(find(ring, b"a-limited-secret").account, 5, 0)
    (tmp_path / "limited").unlink()
    ring.load()
    assert ring.named("limited") is None
    (tmp_path / "limited").write_text('{"key": "another-secret", "characterLimit": 7}')
    ring.load()
    assert find(ring, b"another-secret").account.characters == 5


def test_two_files_with_one_key_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("the-same-secret")
    with pytest.raises(SettingsError, match="same key"):
        KeyRing(tmp_path, lambda: 0.0)


def test_rates() -> None:
    account = Account("alice", AccountLimits(requests_per_s=2, burst_s=1), 0)
    charge(account, 1, 0)
    charge(account, 1, 0)
    with pytest.raises(RateLimitedError) as refused:
        charge(account, 1, 0)
    assert refused.value.retry_after_s == 1
    charge(account, 1, 0.5)
    assert account.characters == 3


def test_a_text_larger_than_the_bucket_passes_once_and_is_made_up_for() -> None:
    account = Account("alice", AccountLimits(characters_per_s=10, burst_s=1), 0)
    charge(account, 1000, 0)
    with pytest.raises(RateLimitedError) as refused:
        charge(account, 1, 1)
    assert refused.value.retry_after_s >= 90
    charge(account, 1, 101)


def test_a_quota_is_not_overdrawn(ring: KeyRing) -> None:
    account = find(ring, b"a-limited-secret").account
    charge(account, 10, 0)
    with pytest.raises(QuotaError):
        charge(account, 1, 100)
