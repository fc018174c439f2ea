"""Glossaries behind two routers and two pods, and how a replica gets those that it lacks."""

import asyncio
import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest

from dragoman_protocols.errors import GlossariesUnavailableError, UnknownGlossaryError
from dragoman_protocols.glossaries.packed import Packed, pack, unpack
from dragoman_router.http.attach_glossaries import MAX_ATTACHMENTS
from dragoman_router.routing.health import HEALTHY
from dragoman_router.state.kept_glossaries import KeptGlossaries
from dragoman_system.glossary_directory import DirectoryStore

pytestmark = pytest.mark.timeout(300)

REQUESTS = 12
"""Requests after which both of two idle replicas have had one, but for once in two thousand times."""


class Setting:
    """Two pods behind two routers, and a client of each router."""

    def __init__(self, directory: Path, routed_pods: Any, pod_process: Any, state_url: str) -> None:
        flags = ("--model", "org/model", "--engine", "scripted")
        self.pods = [pod_process(directory, *flags) for _ in range(2)]
        self.routed = routed_pods(directory, state_url, *(pod.port for pod in self.pods))
        self.routers: list[Any] = []
        self.clients: list[deepl.DeepLClient] = []

    def start(self) -> None:
        for pod in self.pods:
            pod.wait_for("/readyz", deadline_s=120)
        self.routers += [self.routed.start_router() for _ in range(2)]
        for router in self.routers:
            router.wait_until_ready(deadline_s=120)
        self.clients += [deepl.DeepLClient("any-key", server_url=router.url) for router in self.routers]

    def translate(self, router: int, glossary_id: str, target: str = "DE") -> httpx.Response:
        body = {"text": ["tac"], "source_lang": "EN", "target_lang": target, "glossary_id": glossary_id}
        return httpx.post(f"{self.routers[router].url}/v2/translate", json=body, timeout=30)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for pod in self.pods:
            pod.close()
        self.routed.close()


@pytest.fixture(scope="module")
def setting(
    tmp_path_factory: pytest.TempPathFactory, pod_process: Any, routed_pods: Any, shared_redis: Any
) -> Iterator[Setting]:
    directory = tmp_path_factory.mktemp("glossaries")
    made = Setting(directory, routed_pods, pod_process, shared_redis.url)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_what_one_router_made_holds_at_the_other_and_in_every_pod(setting: Setting) -> None:
    one, _ = setting.clients
    made = one.create_glossary("Animals", "EN", "DE", {"tac": "Katze"})
    answers = [setting.translate(1, made.glossary_id) for _ in range(REQUESTS)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["x-dragoman-endpoint"] for answer in answers}) == 2
    assert not [answer for answer in answers if "attempts" in answer.headers["x-dragoman-route"]]
    # The engine reverses, so the term is missing, which each pod can only find out if it has the term.
    for pod in setting.pods:
        assert pod.metric("dragoman_guard_findings_total") > 0

    form = {"text": "tac", "source_lang": "EN", "target_lang": "DE", "glossary_ids": made.glossary_id}
    assert httpx.post(f"{setting.routers[0].url}/v2/translate", data=form).status_code == 200

    one.delete_glossary(made)
    for router in (0, 1) * 5:
        answer = setting.translate(router, made.glossary_id)
        assert (answer.status_code, answer.json()) == (404, {"message": "Glossary not found"})


def test_a_change_holds_for_the_next_request_through_any_router(setting: Setting) -> None:
    one, other = setting.clients
    made = one.create_glossary("Animals", "EN", "DE", {"tac": "Katze"})
    for language in ("FR", "ES", "IT"):
        refused = setting.translate(1, made.glossary_id, language)
        assert refused.status_code == 400
        assert refused.json()["message"].startswith(
            "Bad request. Reason: No dictionary found for language pair"
        )
        one.update_multilingual_glossary_dictionary_from_csv(made.glossary_id, "EN", language, "tac,chat")
        assert setting.translate(1, made.glossary_id, language).status_code == 200
        other.delete_multilingual_glossary_dictionary(
            made.glossary_id, source_lang="EN", target_lang=language
        )
        assert setting.translate(0, made.glossary_id, language).status_code == 400
    other.delete_multilingual_glossary(made.glossary_id)


def test_what_a_pod_would_refuse_is_refused_in_its_words(setting: Setting) -> None:
    url = f"{setting.routers[0].url}/v2/translate"
    body = {"text": ["x"], "source_lang": "EN", "target_lang": "DE"}
    no_uuid = httpx.post(url, json={**body, "glossary_id": "x"})
    assert (no_uuid.status_code, no_uuid.json()["message"]) == (
        400,
        "Missing or invalid argument: glossary_id",
    )
    ids = [str(uuid.uuid4()) for _ in range(6)]
    for fields, words in (
        ({"glossary_id": ids[0], "glossary_ids": ids[1:2]}, "cannot be used together"),
        ({"glossary_ids": ids}, "at most 5 glossaries"),
        ({"glossary_id": ids[0], "source_lang": None}, "requires the source_lang parameter"),
        ({"glossary_id": 5}, "Value for 'glossary_id' not supported."),
    ):
        refused = httpx.post(url, json={**body, **fields})
        assert (refused.status_code, words in refused.json()["message"]) == (400, True), refused.text


def test_paths_and_headers_between_routers_and_pods_are_refused_to_clients(setting: Setting) -> None:
    packed = pack(str(uuid.uuid4()), b"{}")
    url = setting.routers[0].url
    for prefix in ("", "/d/default/any", "/d/default/any/x/.."):
        answer = httpx.put(f"{url}{prefix}/held-glossaries/{packed.revision}", content=packed.content)
        assert answer.status_code == 404, prefix
    made = setting.clients[0].create_glossary("Mine", "EN", "DE", {"tac": "Katze"})
    setting.translate(0, made.glossary_id)
    headers = {"x-dragoman-glossaries": f"{uuid.uuid4()}={packed.revision}"}
    body = {"text": ["x"], "source_lang": "EN", "target_lang": "DE"}
    assert httpx.post(f"{url}/v2/translate", json=body, headers=headers).status_code == 200
    setting.clients[0].delete_glossary(made)


def test_a_pod_accepts_a_glossary_only_under_its_revision(setting: Setting) -> None:
    pod = setting.pods[0]
    packed = pack(str(uuid.uuid4()), b'{"glossary_id": "x"}')
    for revision, content, status in (
        (packed.revision, packed.content, 400),  # no glossary
        ("0" * 64, packed.content, 400),  # another revision's
        (packed.revision, b"no gzip", 400),
        (packed.revision, bytes(2 * 1024 * 1024), 413),
    ):
        answer = pod.client.put(f"/held-glossaries/{revision}", content=content)
        assert (answer.status_code, "error" in answer.json()) == (status, True)


def test_a_document_asks_for_its_glossary_too(setting: Setting) -> None:
    made = setting.clients[0].create_glossary("Animals", "EN", "DE", {"tac": "Katze"})
    for _ in range(REQUESTS // 2):
        done = io.BytesIO()
        setting.clients[1].translate_document(
            b"tac", done, source_lang="EN", target_lang="DE", filename="a.txt", glossary=made
        )
        assert done.getvalue() == b"cat"
    pod, lacked = setting.pods[0], "0" * 64
    answer = pod.client.post(
        "/v2/document",
        data={"source_lang": "EN", "target_lang": "DE", "glossary_id": made.glossary_id},
        files={"file": ("a.txt", b"tac")},
        headers={"x-dragoman-glossaries": f"{made.glossary_id}={lacked}"},
    )
    assert (answer.status_code, answer.headers["x-dragoman-refused"]) == (503, "glossary_missing")
    setting.clients[0].delete_glossary(made)
    with pytest.raises(deepl.DeepLException, match="Glossary not found"):
        setting.clients[1].translate_document(
            b"tac", io.BytesIO(), source_lang="EN", target_lang="DE", filename="a.txt", glossary=made
        )


def test_an_outage_of_redis_leaves_what_was_used(
    tmp_path: Path, pod_process: Any, routed_pods: Any, own_redis: Any
) -> None:
    setting = Setting(tmp_path, routed_pods, pod_process, own_redis.url)
    try:
        setting.start()
        known, never_used = (
            setting.clients[0].create_glossary("Animals", "EN", "DE", {"tac": "Katze"}) for _ in range(2)
        )
        assert setting.translate(1, known.glossary_id).status_code == 200
        own_redis.kill()
        for _ in range(REQUESTS):
            assert setting.translate(1, known.glossary_id).status_code == 200
        refused = setting.translate(1, never_used.glossary_id)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "Redis does not answer" in refused.json()["message"]
        request = httpx.get(f"{setting.routers[0].url}/v2/glossaries")
        assert (request.status_code, request.json()["message"]) == (500, "Redis does not answer")
    finally:
        setting.close()


# A router in the test's own loop, and replicas that answer by script.

PACKED = pack("5d2b0f8e-3a5c-4d3e-8c55-0d9b7a1f2e11", b'{"a": 1}')
BODY = {"text": ["x"], "source_lang": "EN", "target_lang": "DE", "glossary_id": PACKED.glossary_id}


class Kept:
    """Glossaries of one request's choice."""

    def __init__(self, found: Packed | Exception = PACKED) -> None:
        self.found = found

    async def named(self, glossary_ids: Any, _: str | None) -> tuple[Packed, ...]:
        assert tuple(glossary_ids) == (PACKED.glossary_id,)
        if isinstance(self.found, Exception):
            raise self.found
        return (self.found,)


def lacking(holds: bool = True, taken: int = 204) -> Any:
    """A replica that lacks the glossary until it is brought, or for ever."""
    held: list[bytes] = []

    async def script(exchange: Any) -> None:
        if exchange.method == "PUT":
            assert unpack(exchange.body, exchange.target.rpartition("/")[2]) == b'{"a": 1}'
            held.append(exchange.body)
            if taken == 204:
                await exchange.write(b"HTTP/1.1 204 X\r\n\r\n")
            else:
                await exchange.answer({}, taken)
        elif held and holds:
            await exchange.answer({"by": "it"})
        else:
            assert exchange.headers["x-dragoman-glossaries"] == f"{PACKED.glossary_id}={PACKED.revision}"
            await exchange.answer({}, 503, "x-dragoman-refused: glossary_missing\r\n")

    return script


async def test_a_replica_is_brought_what_it_lacks_and_is_none_the_worse_for_it(
    router: Any, start_upstream: Any
) -> None:
    one = await start_upstream()
    one.script = lacking()
    router.serve("a", one.replica())
    router.state.glossaries = Kept()
    budget = router.state.proxy._budget._balance
    for request in (["POST", "PUT", "POST"], ["POST"]):
        one.received.clear()
        status, body, headers = await router.post("/v2/translate", BODY)
        assert (status, body, headers["X-Dragoman-Route"]) == (200, {"by": "it"}, "pair; least-in-flight")
        assert [exchange.method for exchange in one.received] == request
        assert {each.body for each in one.received if each.method == "POST"} == {json.dumps(BODY).encode()}
    (endpoint,) = router.state.fleet.backends["default/a"].endpoints.values()
    assert endpoint.health is HEALTHY
    assert endpoint.in_flight == 0
    assert router.state.proxy._budget._balance >= budget


@pytest.mark.parametrize(("holds", "taken"), [(False, 204), (True, 400)])
async def test_a_replica_that_does_not_hold_what_it_is_brought_is_passed_by(
    router: Any, start_upstream: Any, holds: bool, taken: int
) -> None:
    bad, good = await start_upstream("bad"), await start_upstream("good")
    bad.script = lacking(holds, taken)
    router.serve("a", bad.replica(), good.replica())
    router.state.glossaries = Kept()
    backend = router.state.fleet.backends["default/a"]
    async with asyncio.timeout(30):
        while not bad.received:
            status, body, _ = await router.post("/v2/translate", BODY)
            assert (status, body) == (200, {"by": "good"})
    assert [exchange.method for exchange in bad.received].count("PUT") == 1
    assert {endpoint.health for endpoint in backend.endpoints.values()} == {HEALTHY}
    assert backend.in_flight == 0


async def test_retries_end_for_a_replica_that_never_keeps_a_glossary(
    router: Any, start_upstream: Any
) -> None:
    only = await start_upstream()
    only.script = lacking(holds=False)
    router.serve("a", only.replica())
    router.state.glossaries = Kept()
    status, body, _ = await router.post("/v2/translate", BODY)
    assert (status, "do not keep the glossary" in body["message"]) == (502, True)
    assert [exchange.method for exchange in only.received].count("PUT") == MAX_ATTACHMENTS
    assert router.state.fleet.backends["default/a"].in_flight == 0


async def test_an_unavailable_glossary_is_refused_before_any_replica_gets_the_request(
    router: Any, start_upstream: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    router.state.glossaries = Kept(UnknownGlossaryError("Glossary not found"))
    assert (await router.post("/v2/translate", BODY))[:2] == (404, {"message": "Glossary not found"})
    router.state.glossaries = Kept(GlossariesUnavailableError("not now"))
    status, body, headers = await router.post("/v2/translate", BODY)
    assert (status, body, headers["Retry-After"]) == (503, {"message": "not now"}, "1")
    assert not one.received


async def test_a_directory_keeps_glossaries_of_routers_without_kubernetes(
    start_router: Any, start_upstream: Any, tmp_path: Path
) -> None:
    one = await start_upstream()
    routers = [await start_router() for _ in range(2)]
    for each in routers:
        each.serve("a", one.replica(), pairs={"en": ("de",), "de": ("en",)})
        each.state.glossaries = KeptGlossaries(DirectoryStore(tmp_path))
    made = {"name": "A", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    status, glossary, _ = await routers[0].post("/v2/glossaries", made)
    assert status == 201
    body = {**BODY, "glossary_id": glossary["glossary_id"]}
    assert (await routers[1].post("/v2/translate", body))[0] == 200
    named = one.received[0].headers["x-dragoman-glossaries"]
    assert named.startswith(f"{glossary['glossary_id']}=")
    status, listed, _ = await routers[1].get("/v2/glossary-language-pairs")
    pairs = [("de", "en"), ("en", "de")]
    assert [(each["source_lang"], each["target_lang"]) for each in listed["supported_languages"]] == pairs
    path = f"/v2/glossaries/{glossary['glossary_id']}"
    async with routers[1].http.get(f"{routers[1].url}{path}/entries") as entries:
        assert (await entries.text(), entries.content_type) == ("a\tb", "text/tab-separated-values")
    async with routers[1].http.delete(routers[1].url + path) as deleted:
        assert (deleted.status, await deleted.read()) == (204, b"")
    assert (await routers[0].post("/v2/translate", body))[:2] == (404, {"message": "Glossary not found"})
    assert (await routers[0].get("/v2/glossariesx"))[0] == 404


async def test_without_shared_state_the_router_keeps_them_itself(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    made = {"name": "A", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    status, glossary, _ = await router.post("/v2/glossaries", made)
    assert status == 201
    body = {**BODY, "glossary_id": glossary["glossary_id"]}
    for _ in range(2):
        assert (await router.post("/v2/translate", body))[:2] == (200, {"by": "one"})
    named = {each.headers["x-dragoman-glossaries"] for each in one.received}
    assert [each.partition("=")[0] for each in named] == [glossary["glossary_id"]]


async def test_a_router_without_a_glossary_store_names_the_cause(start_router: Any) -> None:
    router = await start_router(keep_glossaries=False)
    router.serve("a")
    made = {"name": "A", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    status, message, _ = await router.post("/v2/glossaries", made)
    cause = "glossaries are not kept here: the routers share no state"
    assert (status, message["message"]) == (400, cause)
    assert (await router.get("/v2/glossaries"))[:2] == (200, {"glossaries": []})
    assert (await router.post("/v2/translate", BODY))[0] == 404


async def test_glossaries_require_keys_too(start_router: Any, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "one").write_text("secret-key")
    router = await start_router(keys_dir=tmp_path / "keys")
    router.state.glossaries = KeptGlossaries(DirectoryStore(tmp_path / "kept"))
    for headers, status in (({}, 403), ({"Authorization": "DeepL-Auth-Key wrong"}, 403)):
        assert (await router.get("/v2/glossaries", headers=headers))[0] == status
    headers = {"Authorization": "DeepL-Auth-Key secret-key"}
    assert (await router.get("/v2/glossaries", headers=headers))[:2] == (200, {"glossaries": []})


@pytest.mark.parametrize("common", [False, True])
async def test_a_key_sees_its_own_glossaries(
    start_router: Any, start_upstream: Any, tmp_path: Path, common: bool
) -> None:
    alice, bob = ({"Authorization": f"DeepL-Auth-Key secret-of-{name}"} for name in ("alice", "bob"))
    for name in ("alice", "bob"):
        (tmp_path / name).write_text(f"secret-of-{name}")
    router = await start_router(keys_dir=tmp_path, common_glossaries=common)
    one = await start_upstream()
    router.serve("a", one.replica())
    made = {"name": "A", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    status, glossary, _ = await router.post("/v2/glossaries", made, headers=alice)
    assert status == 201
    body = {**BODY, "glossary_id": glossary["glossary_id"]}
    path = f"/glossaries/{glossary['glossary_id']}"
    for headers, sees in ((alice, True), (bob, common)):
        statuses = [(await router.post("/v2/translate", body, headers=headers))[0]]
        for version in ("/v2", "/v3"):
            statuses.append((await router.get(version + path, headers=headers))[0])
            listed = (await router.get(f"{version}/glossaries", headers=headers))[1]["glossaries"]
            assert len(listed) == sees
        assert set(statuses) == {200 if sees else 404}, statuses
    assert len(one.received) == 1 + common
    async with router.http.delete(f"{router.url}/v3{path}", headers=bob) as deleted:
        assert deleted.status == (204 if common else 404)
