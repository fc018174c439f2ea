"""A key is charged for what was translated, by every API and operation, and for nothing that was refused."""

import asyncio
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman_router.routing.deployments import Replica

KEY = {"Authorization": "Bearer a-team-secret"}
LANGS = {"source_lang": "en", "target_lang": "de"}
TEXT = "Füße 12345 😀"
FILE = "One\n\nTwo three\n" * 10


def native(**fields: Any) -> dict[str, Any]:
    return {"path": "/translate", "json": {"text": TEXT, **LANGS} | fields}


def libretranslate(**fields: Any) -> dict[str, Any]:
    return {"path": "/translate", "json": {"q": TEXT, "source": "en", "target": "de"} | fields}


def deepl(**fields: Any) -> dict[str, Any]:
    return {
        "path": "/v2/translate",
        "json": {"text": [TEXT], "source_lang": "EN", "target_lang": "DE"} | fields,
    }


def google(**fields: Any) -> dict[str, Any]:
    return {"path": "/language/translate/v2", "json": {"q": [TEXT], "source": "en", "target": "de"} | fields}


def azure(query: str, *texts: str) -> dict[str, Any]:
    return {"path": f"/translate?api-version=3.0&{query}", "json": [{"Text": text} for text in texts]}


def chat(*messages: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    message = [{"role": role, "content": content} for role, content in messages]
    return {"path": "/v1/chat/completions", "json": {"model": "a", "messages": message} | fields}


def file(path: str, name: str, content: bytes, **fields: str) -> dict[str, Any]:
    return {"path": path, "file": (name, content), "fields": fields}


def document(name: str = "a.txt", content: bytes = FILE.encode(), target: str = "DE") -> dict[str, Any]:
    return file("/v2/document", name, content, source_lang="EN", target_lang=target)


def uploaded(name: str = "a.txt", content: bytes = FILE.encode(), target: str = "de") -> dict[str, Any]:
    return file("/translate_file", name, content, source="en", target=target)


def word(text: str) -> bytes:
    """The smallest Word file with one paragraph."""
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    xml = (
        f'<w:document xmlns:w="{main}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>'
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml)
    return made.getvalue()


PARTS = [{"type": "text", "text": "ab"}, {"type": "text", "text": "cd"}]
OPTIONS = {"translation_options": {"source_lang": "en", "target_lang": "de"}}

CHARGED: dict[str, tuple[dict[str, Any], int]] = {
    "native text": (native(), len(TEXT)),
    "native texts": (native(text=["ab", "cde"]), 5),
    "native context, alternatives": (native(context="Not charged.", alternatives=2), len(TEXT)),
    "native stream": (native(stream=True), len(TEXT)),
    "native by the deployment's name": (native() | {"path": "/d/default/a/translate"}, len(TEXT)),
    "libretranslate texts": (libretranslate(q=["ab", " ", "cde"]), 6),
    "libretranslate alternatives": (libretranslate(alternatives=3), len(TEXT)),
    "libretranslate form": (
        {"path": "/translate", "data": {"q": "a\r\nb", "source": "en", "target": "de"}},
        3,
    ),
    "libretranslate file": (uploaded(), len(FILE)),
    "libretranslate web page": (uploaded("a.html", b"<p class='x'>abc</p>"), 3),
    "libretranslate word": (uploaded("a.docx", word("Hello")), 5),
    "deepl texts": (deepl(text=["ab", "cde"], context="Not charged."), 5),
    "deepl form": (
        {"path": "/v2/translate", "data": {"text": TEXT, "target_lang": "DE", "source_lang": "EN"}},
        len(TEXT),
    ),
    "deepl document": (document(), len(FILE)),
    "deepl word": (document("a.docx", word("Hello")), 5),
    "native document": (file("/documents", "a.docx", word("Hello"), **LANGS), 5),
    "google texts": (google(q=["ab", "cde"]), 5),
    "azure targets": (azure("from=en&to=de&to=fr", "ab", "cde"), 10),
    "azure target twice": (azure("from=en&to=de&to=de", "ab"), 4),
    "azure 2026": (
        {
            "path": "/translate?api-version=2026-06-06",
            "json": {
                "inputs": [
                    {"text": "ab", "language": "en", "targets": [{"language": "de"}]},
                    {"text": "cde", "language": "en", "targets": [{"language": "de"}, {"language": "fr"}]},
                ]
            },
        },
        8,
    ),
    "openai chat": (chat(("system", "Be brief."), ("user", "Hi"), ("assistant", "Ho"), ("user", PARTS)), 17),
    "openai chat stream": (chat(("developer", "Be brief."), ("user", "Hi"), stream=True), 11),
    "openai translation": (chat(("system", "Not charged."), ("user", "ab"), ("user", PARTS), **OPTIONS), 4),
}

FREE: dict[str, dict[str, Any]] = {
    "a pair that is not served": native(target_lang="nl"),
    "a pair that is not served, azure": azure("from=en&to=nl", "ab"),
    "a pair that is not served, document": document(target="NL"),
    "no language": native(target_lang="???"),
    "refused by the pod": native(formality="loud"),
    "refused by the pod, libretranslate": libretranslate(alternatives=99),
    "refused by the pod, deepl": deepl(formality="loud"),
    "refused by the pod, google": google(format="pdf"),
    "refused by the pod, openai": chat(("user", "Hi"), stop=[""]),
    "empty": native(text=["ab", " "]),
    "no targets of one text, azure": {
        "path": "/translate?api-version=2026-06-06",
        "json": {
            "inputs": [
                {"text": "ab", "language": "en", "targets": None},
                {"text": "ab", "language": "en", "targets": [{"language": "de"}]},
            ]
        },
    },
    "a broken file": document("a.docx", b"no archive"),
    "a broken file, native": file("/documents", "a.docx", b"no archive", **LANGS),
    "a file of another kind": uploaded("a.xyz"),
    "detection": {"path": "/detect", "json": {"q": TEXT}},
}


class Client:
    def __init__(self, router: Any, pod: Any) -> None:
        self.router, self.pod = router, pod

    async def send(self, path: str, **what: Any) -> tuple[int, bytes, Any]:
        if "file" in what:
            name, content = what.pop("file")
            form = aiohttp.FormData(what.pop("fields"))
            form.add_field("file", content, filename=name)
            what["data"] = form
        async with self.router.http.post(self.router.url + path, headers=KEY, **what) as answer:
            return answer.status, await answer.read(), answer.headers

    @property
    def account(self) -> Any:
        return self.router.state.gate._ring.accounts["team"]

    def counted(self) -> dict[tuple[str, ...], float]:
        """Characters in the metrics, by deployment, source, target and key."""
        names = ("deployment", "source", "target", "key")
        return {
            tuple(sample.labels[name] for name in names): sample.value
            for family in self.router.state.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "dragoman_router_characters_total"
        }

    async def used(self) -> int:
        _, usage, _ = await self.router.get("/v2/usage", headers=KEY)
        return int(usage["character_count"])


@pytest.fixture
async def client(request: Any, start_router: Any, scripted_here: Any, tmp_path: Path) -> Client:
    limit = getattr(request, "param", None)
    (tmp_path / "team").write_text(
        json.dumps({"key": "a-team-secret"} | ({} if limit is None else {"characterLimit": limit}))
    )
    router = await start_router(keys_dir=tmp_path, max_queue_s=0.05)
    replica = Replica(name="pod", host="127.0.0.1", port=scripted_here.port, uid="pod")
    router.serve("a", replica, pairs={"en": ("de", "fr")})
    return Client(router, scripted_here)


@pytest.fixture(scope="module")
def scripted_here(tmp_path_factory: pytest.TempPathFactory, pod_process: Any) -> Any:
    pod = pod_process(
        tmp_path_factory.mktemp("pod"),
        *("--model", "org/model", "--served-name", "a", "--engine", "scripted"),
    )
    try:
        pod.wait_for("/readyz", deadline_s=120)
        yield pod
    finally:
        pod.close()


@pytest.mark.parametrize("operation", CHARGED)
async def test_what_was_translated_is_charged_for(client: Client, operation: str) -> None:
    request, characters = CHARGED[operation]
    status, body, headers = await client.send(**request)
    assert status in (200, 202), body
    assert headers.get("X-Dragoman-Characters") == str(characters)
    assert await client.used() == characters
    assert client.account.reserved == 0
    counted = client.counted()
    assert sum(counted.values()) == characters
    assert {labels[:1] + labels[3:] for labels in counted} == {("default/a", "team")}


@pytest.mark.parametrize("operation", FREE)
async def test_what_was_refused_is_free(client: Client, operation: str) -> None:
    status, body, _ = await client.send(**FREE[operation])
    assert 400 <= status < 500 or operation == "detection", body
    assert await client.used() == 0


@pytest.mark.parametrize("operation", ["native text", "deepl document", "azure targets"])
async def test_what_no_replica_could_translate_is_free(client: Client, operation: str) -> None:
    client.router.serve("a", pairs={"en": ("de", "fr")})
    status, _, _ = await client.send(**CHARGED[operation][0])
    assert status == 503
    assert await client.used() == 0


@pytest.mark.parametrize(
    "operation", [name for name, (request, _) in CHARGED.items() if "file" not in request]
)
async def test_what_the_router_reserves_is_what_the_pod_charges_for(client: Client, operation: str) -> None:
    """So a quota refuses a text before a pod gets it. The characters of a file only the pod knows."""
    request, characters = CHARGED[operation]
    reserved: list[int] = []
    account = client.account
    settle = account.settle

    def reserve_and_settle(held: int, used: Any) -> Any:
        reserved.append(held)
        return settle(held, used)

    account.settle = reserve_and_settle
    await client.send(**request)
    assert reserved == [characters]


@pytest.mark.parametrize("client", [140], indirect=True)
async def test_no_file_passes_a_quota(client: Client) -> None:
    """150 characters: the pod counts them, and refuses before it starts any generation."""
    before = client.pod.metric("dragoman_segments_total")
    for request, status in ((document(), 456), (uploaded(), 403)):
        assert (await client.send(**request))[0] == status
    assert await client.used() == 0
    assert client.pod.metric("dragoman_segments_total") == before
    assert (await client.send(**deepl(text=["x" * 100])))[0] == 200
    assert (await client.send(**document(content=b"y" * 41)))[0] == 456
    assert (await client.send(**document(content=b"y" * 40)))[0] == 200
    assert (await client.send(**document(content=b"y")))[0] == 456
    assert (await client.send(**uploaded(content=b"y")))[0] == 403
    assert (await client.send(**native(text="y")))[0] == 429
    assert await client.used() == 140


@pytest.mark.parametrize("client", [20], indirect=True)
async def test_requests_at_the_same_time_share_a_quota(client: Client) -> None:
    answers = await asyncio.gather(*(client.send(**native(text="x" * 6)) for _ in range(10)))
    assert sorted(status for status, _, _ in answers) == [200] * 3 + [429] * 7
    assert await client.used() == 18


async def test_a_client_cannot_set_the_rest_of_its_quota(client: Client) -> None:
    async with client.router.http.post(
        client.router.url + "/translate",
        headers=KEY | {"X-Dragoman-Characters-Left": "0"},
        json=native()["json"],
    ) as answer:
        assert answer.status == 200


async def test_a_document_that_fails_is_given_back(
    client: Client, start_router: Any, start_scripted: Any, tmp_path: Path, until: Any
) -> None:
    pod = start_scripted("--request-timeout-s", "8", "--file-timeout-s", "8", token_s=1.0)
    await asyncio.to_thread(pod.wait_for, "/readyz", deadline_s=120)
    replica = Replica(name="slow", host="127.0.0.1", port=pod.port, uid="slow")
    client.router.serve("a", replica, pairs={"en": ("de",)})
    status, body, _ = await client.send(**document(content=b"abcd" * 40))
    assert status == 200
    assert await client.used() == 160
    reply = json.loads(body)
    path, form = f"/v2/document/{reply['document_id']}", {"document_key": reply["document_key"]}
    async with asyncio.timeout(60):
        while json.loads((await client.send(path, data=form))[1])["status"] != "error":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await client.used() == 0
    await client.send(path, data=form)
    assert await client.used() == 0


async def test_the_status_of_a_document_has_the_characters_charged_to_its_key(client: Client) -> None:
    _, body, _ = await client.send(**document())
    reply = json.loads(body)
    path, form = f"/v2/document/{reply['document_id']}", {"document_key": reply["document_key"]}
    async with asyncio.timeout(60):
        while (state := json.loads((await client.send(path, data=form))[1]))["status"] != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert state["billed_characters"] == len(FILE) == await client.used()


async def test_a_file_gets_more_time_than_a_text(
    start_router: Any, start_scripted: Any, tmp_path: Path
) -> None:
    """One second for a request, here and there, and three seconds of work."""
    (tmp_path / "team").write_text("a-team-secret")
    router = await start_router(keys_dir=tmp_path, request_timeout_s=1.5)
    pod = start_scripted("--request-timeout-s", "1", "--max-num-seqs", "1", token_s=0.15)
    await asyncio.to_thread(pod.wait_for, "/readyz", deadline_s=120)
    router.serve("a", Replica(name="pod", host="127.0.0.1", port=pod.port, uid="pod"))
    client = Client(router, pod)
    blanks = b"\n" * 200_000
    lines = b"\n".join(b"line number %d" % at for at in range(5)) + blanks
    assert (await client.send(**uploaded(content=lines)))[0] == 200
    status, body, _ = await client.send(**document(content=lines))
    assert status == 200
    reply = json.loads(body)
    path, form = f"/v2/document/{reply['document_id']}", {"document_key": reply["document_key"]}
    async with asyncio.timeout(60):
        while (state := json.loads((await client.send(path, data=form))[1]))["status"] == "translating":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert state["status"] == "done"
    assert (await client.send(**native(text="word " * 100)))[0] == 504
