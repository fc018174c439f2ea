"""The source that an object names, and errors of sources."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from dragoman_kube.errors import RefusedError, UnavailableError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key
from dragoman_operator.api.scaling import Prometheus
from dragoman_operator.scraping.prometheus import PrometheusServers

NOWHERE = "http://user:secret@127.0.0.1:9"


class Secrets:
    """An API server with one Secret."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = {"token": base64.b64encode(b"abc\n").decode()}
        self.error: Exception | None = None
        self.read = 0

    async def get(self, kind: Kind, key: Key) -> dict[str, Any] | None:
        assert (kind.name, *key) == ("Secret", "default", "prom")
        self.read += 1
        if self.error:
            raise self.error
        return None if self.data is None else {"data": self.data}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def sources(http: aiohttp.ClientSession, secrets: Secrets, own: str = "") -> PrometheusServers:
    return PrometheusServers(secrets, http, own, lambda: None, 1.0)  # type: ignore[arg-type]


def named(**fields: Any) -> Prometheus:
    return Prometheus.model_validate(fields)


async def test_names_have_no_credentials(http: aiohttp.ClientSession) -> None:
    found = sources(http, Secrets(), "https://x@own:9090/a?b")
    assert found.named(named()) == "https://own:9090/a"
    assert found.named(named(url=NOWHERE)) == "http://127.0.0.1:9"
    assert found.named(named(url="http://[")) == "a Prometheus with an invalid URL"
    for unescaped in ("s3cr/et", "s3cr?et", "s3cr#et", "s3@cr/et"):
        assert "cr" not in found.named(named(url=f"http://admin:{unescaped}@prom:9090"))


@pytest.mark.parametrize(
    "url",
    [
        "http://admin:s3cr/et@prom",
        "http://admin:s3[cret@prom",
        "http://admin:s3cret@prom:99999",
        "ftp://a:s3cret@b",
    ],
)
async def test_an_invalid_url_is_not_repeated_in_the_error(http: aiohttp.ClientSession, url: str) -> None:
    result = await sources(http, Secrets(), url).read("default", named(), [])
    assert result.failure is not None
    assert result.failure.endswith("the URL is invalid")
    assert "cr" not in result.failure


async def test_a_response_that_is_no_http_has_no_credentials(http: aiohttp.ClientSession) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        own = f"http://admin:s3cret@127.0.0.1:{port}"
        result = await sources(http, Secrets(), own).read("default", named(), [])
    assert result.failure is not None
    assert "malformed" in result.failure
    assert "s3cret" not in result.failure


async def test_nothing_named_and_nothing_of_our_own(http: aiohttp.ClientSession) -> None:
    result = await sources(http, Secrets()).read("default", named(), [])
    assert result.failure is not None
    assert "--prometheus-url" in result.failure


@pytest.mark.parametrize("url", ["http://[", "http://:1", "http://no such host/"], ids=str)
async def test_addresses_that_are_none_are_failures(http: aiohttp.ClientSession, url: str) -> None:
    found = sources(http, Secrets(), url)
    assert (await found.read("default", named(), [])).failure is not None


@pytest.mark.parametrize(
    ("data", "error", "problem"),
    [
        (None, None, "the Secret prom with the token does not exist"),
        ({"other": "eA=="}, None, "has no key token"),
        ({"token": "%%"}, None, "has no text in token"),
        (None, RefusedError("read Secret", "forbidden (403)"), "prometheus.readSecrets=true"),
        (None, UnavailableError("read Secret", "timeout"), "cannot be read: timeout"),
    ],
    ids=["missing", "key", "binary", "forbidden", "down"],
)
async def test_token_that_cannot_be_had_is_a_failure(
    http: aiohttp.ClientSession,
    data: dict[str, str] | None,
    error: Exception | None,
    problem: str,
) -> None:
    secrets = Secrets()
    secrets.data, secrets.error = data, error
    result = await sources(http, secrets).read(
        "default", named(url=NOWHERE, tokenSecretRef={"name": "prom"}), []
    )
    assert result.failure is not None
    assert result.failure.startswith("http://127.0.0.1:9: ")
    assert problem in result.failure


async def test_token_is_read_once_a_minute(http: aiohttp.ClientSession) -> None:
    secrets = Secrets()
    chosen = named(url="http://127.0.0.1:9", tokenSecretRef={"name": "prom"})
    found = sources(http, secrets)
    for _ in range(3):
        found.begin([("default", chosen)])
        result = await found.read("default", chosen, [])
        assert result.failure == "http://127.0.0.1:9: cannot be reached: Connection refused"
    assert secrets.read == 1
