"""Bearer tokens of an issuer that serves its discovery document and keys on loopback."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.wire.router.test_command import Process

from dragoman_protocols.errors import RateLimitedError
from dragoman_router.oidc import issuer as issuing

AUDIENCE = "translations"
KEY = "a-secret-of-alice"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
OTHER = rsa.generate_private_key(65537, 2048)


def jwk(key: Any, kid: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if hasattr(key, "decrypt") else jwt.algorithms.ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"}


class TestIssuer:
    """An issuer.

    `keys` are what it lists, `fetched` how often they were fetched, `down` whether it fails; it answers while
    `answering` is set.
    """

    __test__ = False

    def __init__(self) -> None:
        self.url = ""
        self.keys = [jwk(RSA, "rsa"), jwk(EC, "ec"), {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}]
        self.fetched = 0
        self.down = False
        self.requested, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()

    async def discovery(self, _: web.Request) -> web.Response:
        self.requested.set()
        await self.answering.wait()
        if self.down:
            return web.Response(status=500)
        return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def listed(self, _: web.Request) -> web.Response:
        self.fetched += 1
        return web.json_response({"keys": self.keys})

    def token(self, key: Any = RSA, kid: str | None = "rsa", algorithm: str = "RS256", **claims: Any) -> str:
        now = int(time.time())
        payload = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600} | claims
        payload = {name: value for name, value in payload.items() if value is not None}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(payload, key, algorithm, headers=headers)


@pytest.fixture
async def issuer() -> AsyncIterator[TestIssuer]:
    found = TestIssuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", found.discovery)
    app.router.add_get("/keys", found.listed)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def router(start_router: Any, start_upstream: Any, issuer: TestIssuer) -> Any:
    started = await start_router(oidc_issuer=issuer.url, oidc_audience=("other", AUDIENCE))
    started.serve("a", (await start_upstream()).replica())
    return started


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_translates_and_its_caller_is_charged(router: Any, issuer: TestIssuer) -> None:
    for token in (issuer.token(), issuer.token(EC, "ec", "ES256"), issuer.token(algorithm="PS256")):
        assert (await router.translate(headers=bearer(token)))[0] == 200
        assert (await router.translate(headers=bearer(token)))[0] == 200
    assert issuer.fetched == 1
    usage = await router.get("/v2/usage", headers=bearer(issuer.token()))
    assert usage[1]["character_count"] == 6 * len("Hello")
    other = await router.get("/v2/usage", headers=bearer(issuer.token(sub="bob")))
    assert other[1]["character_count"] == 0


def written(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def unsigned(issuer: TestIssuer) -> str:
    return issuer.token("", None, "none")


def signed_with_the_public_key(issuer: TestIssuer) -> str:
    """HS256, whose secret is the public key that everyone can read."""
    public = RSA.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = issuer.token("secret" * 8, "rsa", "HS256").rpartition(".")[0]
    return f"{signed}.{written(hmac.digest(public, signed.encode(), 'sha256'))}"


def altered(issuer: TestIssuer) -> str:
    head, _, signature = issuer.token().split(".")
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "root", "exp": int(time.time()) + 600}
    return f"{head}.{written(json.dumps(claims).encode())}.{signature}"


HOUR_AGO, IN_AN_HOUR = int(time.time()) - 3600, int(time.time()) + 3600
REFUSED = {
    "expired": (lambda issuer: issuer.token(exp=HOUR_AGO), "the token has expired; get a new one from http"),
    "audience": (lambda issuer: issuer.token(aud="mail"), "aud has to be other or translations"),
    "no audience": (lambda issuer: issuer.token(aud=None), "the token has no claim aud"),
    "issuer": (
        lambda issuer: issuer.token(iss="https://evil.example"),
        "is of another issuer; get one from http",
    ),
    "not yet": (lambda issuer: issuer.token(nbf=IN_AN_HOUR), "the token is not valid yet"),
    "no exp": (lambda issuer: issuer.token(exp=None), "the token has no claim exp"),
    "no name": (lambda issuer: issuer.token(sub=None), "the token's claim sub has to be a name"),
    "other key": (lambda issuer: issuer.token(OTHER), "the token's signature is not valid"),
    "kid": (lambda issuer: issuer.token(OTHER, "new"), "signed with a key that http"),
    "oct": (lambda issuer: issuer.token("secret" * 8, "oct", "HS256"), "signed with a key that http"),
    "none": (unsigned, "the token"),
    "HS256": (signed_with_the_public_key, "signed with an algorithm that its key is not for"),
    "ES256 of RSA": (lambda issuer: issuer.token(EC, "rsa", "ES256"), "an algorithm that its key is not for"),
    "altered": (altered, "the token's signature is not valid"),
    "garbage": (lambda _: "garbage", "the token cannot be read; send a JSON Web Token"),
    "dots": (lambda _: "eyJ.eyJ.x", "the token cannot be read"),
    "nested": (
        lambda _: base64.urlsafe_b64encode(b'{"alg":' + b"[" * 5000).decode() + ".e30.e30",
        "the token cannot be read",
    ),
    "long": (lambda _: "x" * 20_000, "the token is longer than 16384 bytes"),
}
APIS = {
    "/translate": ({"text": "Hi", "source_lang": "en", "target_lang": "de"}, "error"),
    "/v2/translate": ({"text": ["Hi"], "target_lang": "DE"}, "message"),
    "/language/translate/v2": ({"q": "Hi", "target": "de"}, "error"),
    "/translate?api-version=3.0&to=de": ([{"Text": "Hi"}], "error"),
    "/v1/chat/completions": ({"model": "a", "messages": []}, "error"),
    "/imme": ({"source_lang": "en", "target_lang": "de", "text_list": ["Hi"]}, "message"),
    "/detect": ({"q": "Hi"}, "error"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_token_that_is_not_valid_is_401_in_the_words_of_each_api(
    router: Any, issuer: TestIssuer, case: str
) -> None:
    make, sentence = REFUSED[case]
    token = make(issuer)
    for path, (body, shape) in APIS.items():
        status, document, headers = await router.post(path, body, headers=bearer(token))
        assert (status, shape in document) == (401, True), (path, document)
        assert sentence in str(document), path
        assert headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        assert token not in str(document)


async def test_without_a_token_and_with_a_token_in_another_place(router: Any, issuer: TestIssuer) -> None:
    sentence = f"a token of {issuer.url} is required in the header `Authorization: Bearer TOKEN`"
    body = {"q": "Hi", "source": "en", "target": "de"}
    status, document, _ = await router.post("/language/translate/v2", body)
    assert (status, document["error"]["message"]) == (401, sentence)
    for path, headers in (
        ("/language/translate/v2", {"X-Goog-Api-Key": issuer.token()}),
        (f"/language/translate/v2?key={issuer.token()}", {}),
        ("/translate", {"Authorization": f"DeepL-Auth-Key {issuer.token()}"}),
    ):
        status, document, _ = await router.post(path, body, headers=headers)
        assert status == 401
        assert sentence in str(document)
    status, document, _ = await router.post("/translate", body | {"api_key": issuer.token()})
    assert (status, document["error"]["message"]) == (401, sentence), "the body is not read"


async def test_keys_are_accepted_beside_tokens(
    start_router: Any, start_upstream: Any, issuer: TestIssuer, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(oidc_issuer=issuer.url, oidc_audience=(AUDIENCE,), keys_dir=tmp_path)
    router.serve("a", (await start_upstream()).replica())
    for headers in (bearer(KEY), {"X-Api-Key": KEY}, bearer(issuer.token())):
        assert (await router.translate(headers=headers))[0] == 200
    libretranslate = {"q": "Hi", "source": "en", "target": "de", "api_key": KEY}
    assert (await router.post("/translate", libretranslate))[0] == 200
    assert (await router.post("/translate", libretranslate | {"api_key": "another-key"}))[0] == 403
    assert (await router.post("/translate", libretranslate | {"api_key": issuer.token()}))[0] == 401
    assert (await router.translate(headers=bearer("another-key")))[0] == 401
    status, document, _ = await router.translate()
    assert (status, document["error"]["message"].partition("TOKEN`, ")[2]) == (
        401,
        "or an API key in the header `X-API-Key: KEY` or `Authorization: Bearer KEY`",
    )
    used = [
        (await router.get("/v2/usage", headers=headers))[1]["character_count"]
        for headers in (bearer(KEY), bearer(issuer.token()))
    ]
    assert used == [2 * 5 + 2, 5], "a caller of the same name as a key has an account of its own"


async def test_beyond_the_rate_of_failures_a_valid_token_is_accepted_and_a_key_is_not(
    start_router: Any, start_upstream: Any, issuer: TestIssuer, tmp_path: Path
) -> None:
    (tmp_path / "alice").write_text(KEY)
    router = await start_router(
        keys_dir=tmp_path, oidc_issuer=issuer.url, oidc_audience=(AUDIENCE,), auth_failures_per_s=1 / 60
    )
    router.serve("a", (await start_upstream()).replica())
    expired = bearer(issuer.token(exp=1))
    assert [(await router.translate(headers=expired))[0] for _ in range(3)] == [401, 429, 429]
    assert (await router.translate(headers=bearer(issuer.token())))[0] == 200
    answers = [await router.translate(headers=bearer(key)) for key in (KEY, "another-key")]
    assert [answer[:2] for answer in answers] == [answers[0][:2]] * 2
    assert answers[0][0] == 429


async def test_limits_by_claim(start_router: Any, start_upstream: Any, issuer: TestIssuer) -> None:
    router = await start_router(
        oidc_issuer=issuer.url,
        oidc_audience=(AUDIENCE,),
        oidc_name_claim="email",
        oidc_limits_claim="groups",
        oidc_limits={"small": {"characterLimit": 7}, "*": {"requestsPerS": 0.001}},
    )
    router.serve("a", (await start_upstream()).replica())
    small = bearer(issuer.token(email="a@b.example", groups=["staff", "small"]))
    assert (await router.translate(headers=small))[0] == 200
    status, document, _ = await router.translate(headers=small)
    assert (status, document["error"]["code"]) == (429, "quota_exceeded")
    other = bearer(issuer.token(email="c@b.example"))
    assert [(await router.translate(headers=other))[0] for _ in range(2)] == [200, 429]
    assert RateLimitedError.code == (await router.translate(headers=other))[1]["error"]["code"]


async def test_deployments_by_claim(start_router: Any, start_upstream: Any, issuer: TestIssuer) -> None:
    router = await start_router(
        oidc_issuer=issuer.url,
        oidc_audience=(AUDIENCE,),
        oidc_limits_claim="groups",
        oidc_limits={"staff": {"deployments": ["default/a"]}, "*": {"deployments": []}},
    )
    router.serve("a", (await start_upstream()).replica())
    router.serve("b", (await start_upstream()).replica(), pairs={"en": ("fr",)})
    staff = bearer(issuer.token(groups=["staff"]))
    for _ in range(2):
        assert (await router.translate(headers=staff))[0] == 200
        assert (await router.translate(target="fr", headers=staff))[0] == 422
        assert (await router.translate(headers=bearer(issuer.token(sub="bob"))))[0] == 422


async def test_each_token_of_a_caller_has_its_own_deployments(
    start_router: Any, start_upstream: Any, issuer: TestIssuer
) -> None:
    router = await start_router(
        oidc_issuer=issuer.url,
        oidc_audience=(AUDIENCE,),
        oidc_limits_claim="groups",
        oidc_limits={"staff": {"deployments": ["default/a"]}, "*": {"deployments": []}},
    )
    router.serve("a", (await start_upstream()).replica())
    staff, other = (bearer(issuer.token(groups=[group])) for group in ("staff", "guests"))
    found = [(await router.translate(headers=headers))[0] for headers in (staff, other, staff, other)]
    assert found == [200, 422, 200, 422]


async def test_each_token_of_a_caller_sees_the_fleet_or_not(
    start_router: Any, start_upstream: Any, issuer: TestIssuer
) -> None:
    router = await start_router(
        oidc_issuer=issuer.url,
        oidc_audience=(AUDIENCE,),
        oidc_limits_claim="groups",
        oidc_limits={"staff": {"fleet": True, "deployments": ["default/a"]}, "*": {}},
    )
    for name in "ab":
        router.serve(name, (await start_upstream()).replica())
    staff, other = (bearer(issuer.token(groups=[group])) for group in ("staff", "guests"))
    answers = [await router.get("/fleet", headers=headers) for headers in (staff, other, staff, other)]
    assert [status for status, *_ in answers] == [200, 403, 200, 403]
    assert [each["name"] for each in answers[2][1]["deployments"]] == ["default/a"]


async def test_a_new_signing_key_is_found_and_clients_cannot_make_the_router_ask_on(
    router: Any, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await router.translate(headers=bearer(issuer.token())))[0] == 200
    issuer.keys = [jwk(OTHER, "new")]
    unknown = [router.translate(headers=bearer(issuer.token(OTHER, f"x{each}"))) for each in range(20)]
    assert {found[0] for found in await asyncio.gather(*unknown)} == {401}
    assert issuer.fetched == 1, "the interval has not passed"
    monkeypatch.setattr(issuing, "MIN_INTERVAL_S", 0.0)
    assert (await router.translate(headers=bearer(issuer.token(OTHER, "new"))))[0] == 200
    assert (await router.translate(headers=bearer(issuer.token(sub="bob"))))[0] == 401, "withdrawn"


async def test_a_client_that_disconnects_does_not_end_the_fetch_of_keys(
    router: Any, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    assert (await router.translate(headers=bearer(issuer.token())))[0] == 200
    monkeypatch.setattr(router.issuer, "_tried_s", float("-inf"))
    issuer.keys.append(jwk(OTHER, "new"))
    issuer.answering.clear()
    issuer.requested.clear()
    request = asyncio.create_task(router.translate(headers=bearer(issuer.token(OTHER, "unknown"))))
    await until(issuer.requested.is_set)
    request.cancel()
    await until(lambda: not router.state.active)
    others = [asyncio.create_task(router.translate(headers=bearer(issuer.token(OTHER, "new")))) for _ in "ab"]
    await until(lambda: router.state.active == len(others))
    issuer.answering.set()
    assert [found[0] for found in await asyncio.gather(*others)] == [200, 200]
    assert issuer.fetched == 2


async def test_the_fetch_of_keys_ends_with_the_router(router: Any, issuer: TestIssuer, until: Any) -> None:
    issuer.answering.clear()
    watching = asyncio.create_task(router.issuer.watch(lambda _: None))
    await until(issuer.requested.is_set)
    watching.cancel()
    await asyncio.gather(watching, router.issuer._refreshing, return_exceptions=True)
    assert router.issuer._refreshing.cancelled()
    issuer.answering.set()


async def test_an_outage_of_the_issuer(
    router: Any, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(issuing, "MIN_INTERVAL_S", 0.0)
    issuer.down = True
    status, document, headers = await router.translate(headers=bearer(issuer.token()))
    assert (status, document["error"]["code"]) == (503, "issuer_unavailable")
    assert "Retry-After" in headers
    issuer.down = False
    assert (await router.translate(headers=bearer(issuer.token())))[0] == 200
    issuer.down = True
    assert (await router.translate(headers=bearer(issuer.token(OTHER, "new"))))[0] == 401
    assert (await router.translate(headers=bearer(issuer.token(sub="bob"))))[0] == 200
    assert "openid-configuration answered 500; 2 known" in caplog.text


async def test_a_verified_token_counts_no_longer_than_it_is_valid(
    router: Any, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = bearer(issuer.token())
    assert (await router.translate(headers=token))[0] == 200
    monkeypatch.setattr(router.tokens, "_seconds", lambda: time.time() + 299)
    issuer.keys = []
    router.issuer.keys = {}
    assert (await router.translate(headers=token))[0] == 200, "from the cache"
    monkeypatch.setattr(router.tokens, "_seconds", lambda: time.time() + 301)
    assert (await router.translate(headers=token))[0] == 503


async def test_the_command_reads_the_keys_at_its_start(
    issuer: TestIssuer, start_upstream: Any, tmp_path: Path
) -> None:
    one = await start_upstream()
    flags = (f"--oidc-issuer={issuer.url}", "--oidc-audience=other,translations")
    limits = '--oidc-limits={"*": {"characterLimit": 7}}'
    process = Process(tmp_path, [f"127.0.0.1:{one.port}"], *flags, limits, "--quota-reset-day=3")
    try:
        await process.until("/readyz", 200)
        async with asyncio.timeout(30), aiohttp.ClientSession() as http:
            metrics = f"http://127.0.0.1:{process.admin_port}/metrics"
            while not issuer.fetched:  # noqa: ASYNC110 - what is waited for sets no event
                await asyncio.sleep(0.02)
            url = f"http://127.0.0.1:{process.port}/translate"
            body = {"text": "Hello", "source_lang": "en", "target_lang": "de"}
            statuses = []
            for headers in ({}, bearer(issuer.token()), bearer(issuer.token())):
                async with http.post(url, json=body, headers=headers) as got:
                    statuses.append(got.status)
            assert statuses == [401, 200, 429]
            async with http.get(metrics) as got:
                page = await got.text()
        assert 'dragoman_router_config_last_reload_successful{file="oidc"} 1.0' in page
        assert 'key="oidc/alice"' in page
        assert "the issuer's keys are fetched without encryption" in process.log.read_text()
        assert issuer.fetched == 1
    finally:
        process.process.kill()
        process.process.wait()
