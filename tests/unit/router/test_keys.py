"""API keys and what they may do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman_protocols.errors import (
    KeyMissingError,
    KeyRefusedError,
    MalformedRequestError,
    QuotaError,
    RateLimitedError,
)
from dragoman_protocols.keys import key_in_body, key_in_head
from dragoman_router.access.accounts import Account, Limits
from dragoman_router.access.keys import KeyRing
from dragoman_router.errors import SettingsError
from dragoman_router.request import Request


def request(*headers: tuple[bytes, bytes], query: bytes = b"") -> Request:
    return Request("POST", "/translate", query, list(headers))


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
    ],
)
def test_keys_are_found_where_each_api_puts_them(ring: KeyRing, sent: Request) -> None:
    assert ring.find(key_in_head(sent)).name == "plain"


FORM = (b"content-type", b"application/x-www-form-urlencoded")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ((), b'{"q": "x", "api_key": "a-plain-secret"}'),
        ((FORM,), b"q=x&api_key=a-plain-secret"),
        ((FORM,), b"api_key=a%2Dplain-secret&q=x"),
        ((FORM,), b' {"api_key": "a-plain-secret"}'),
    ],
)
def test_a_key_in_the_body(ring: KeyRing, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
    sent = request(*headers)
    sent.body = body
    assert ring.find(key_in_body(sent, "api_key")).name == "plain"


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
    assert key_in_body(sent, "api_key") is None


def test_a_query_of_too_many_fields_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="query has more than 1000 fields"):
        key_in_head(request(query=b"?key=x" + b"&" * 5000))


def test_no_key_and_a_wrong_one(ring: KeyRing) -> None:
    with pytest.raises(KeyMissingError):
        ring.find(key_in_head(request((b"authorization", b"Basic eHg="))))
    with pytest.raises(KeyRefusedError) as refused:
        ring.find(b"a-plain-secre")
    assert "secre" not in str(refused.value)


def test_keys_are_in_memory_as_hashes_alone(ring: KeyRing) -> None:
    assert b"secret" not in repr([(key.name, key.digest) for key in ring._keys.values()]).encode()
    assert b"secret" not in b"".join(ring._keys)


def test_a_changed_file_is_read_and_accounts_go_on(ring: KeyRing, tmp_path: Path) -> None:
    charge(ring.find(b"a-plain-secret").account, 5, 0)
    (tmp_path / "plain").write_text("another-secret")
    ring.load()
    assert ring.find(b"another-secret").account.characters == 5
    with pytest.raises(KeyRefusedError):
        ring.find(b"a-plain-secret")


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
    assert ring.find(b"a-plain-secret").name == "plain"


def test_a_name_that_is_not_printable_is_refused(ring: KeyRing, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("a-new-secret")
    with pytest.raises(SettingsError, match="udce9"):
        ring.load()
    assert ring.find(b"a-plain-secret").name == "plain"


def test_what_was_used_stays_used_whatever_becomes_of_the_key(ring: KeyRing, tmp_path: Path) -> None:
    charge(ring.find(b"a-limited-secret").account, 5, 0)
    (tmp_path / "limited").write_text('{"key": "a-limited-secret", "characterLimit": 7}')
    ring.load()
    with pytest.raises(QuotaError, match="5 of 7"):
        charge(ring.find(b"a-limited-secret").account, 5, 0)
    (tmp_path / "limited").unlink()
    ring.load()
    assert ring.named("limited") is None
    (tmp_path / "limited").write_text('{"key": "another-secret", "characterLimit": 7}')
    ring.load()
    assert ring.find(b"another-secret").account.characters == 5


def test_two_files_with_one_key_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("the-same-secret")
    with pytest.raises(SettingsError, match="same key"):
        KeyRing(tmp_path, lambda: 0.0)


def test_rates() -> None:
    account = Account("alice", Limits(requests_per_s=2, burst_s=1), 0)
    charge(account, 1, 0)
    charge(account, 1, 0)
    with pytest.raises(RateLimitedError) as refused:
        charge(account, 1, 0)
    assert refused.value.retry_after_s == 1
    charge(account, 1, 0.5)
    assert account.characters == 3


def test_a_text_larger_than_the_bucket_passes_once_and_is_made_up_for() -> None:
    account = Account("alice", Limits(characters_per_s=10, burst_s=1), 0)
    charge(account, 1000, 0)
    with pytest.raises(RateLimitedError) as refused:
        charge(account, 1, 1)
    assert refused.value.retry_after_s >= 90
    charge(account, 1, 101)


def test_a_quota_is_not_overdrawn(ring: KeyRing) -> None:
    account = ring.find(b"a-limited-secret").account
    charge(account, 10, 0)
    with pytest.raises(QuotaError):
        charge(account, 1, 100)
