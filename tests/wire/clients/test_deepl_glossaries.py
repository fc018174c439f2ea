"""The glossaries of DeepL's own Python client, v2 and v3, over all stores: a pod's two, and the one of routers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries

NOBODYS_ID = "96ab91fd-e715-41a1-adeb-5d701f84a483"

CSV = 'sourceEntry1,targetEntry1\n"source""Entry",targetEntry2,en,de\n"one, two","eins, zwei"'
CSV_ENTRIES = {"sourceEntry1": "targetEntry1", 'source"Entry': "targetEntry2", "one, two": "eins, zwei"}


@pytest.fixture(scope="module")
def keeping_pod(tmp_path_factory: pytest.TempPathFactory, pod_process: Any) -> Iterator[Any]:
    """A pod that keeps glossaries in a directory."""
    directory = tmp_path_factory.mktemp("keeping-pod")
    pod = pod_process(
        directory,
        *("--model", "org/model", "--engine", "scripted", "--glossary-dir", str(directory / "glossaries")),
    )
    try:
        pod.wait_for("/readyz")
        yield pod
    finally:
        pod.close()


@pytest.fixture(scope="module")
def router(
    tmp_path_factory: pytest.TempPathFactory, own_scripted_pod: Any, routed_pods: Any, shared_redis: Any
) -> Iterator[Any]:
    """A router that keeps glossaries in Redis, before the pod that keeps them in memory."""
    routed = routed_pods(tmp_path_factory.mktemp("routed"), shared_redis.url, own_scripted_pod.port)
    try:
        router = routed.start_router()
        router.wait_until_ready()
        yield router
    finally:
        routed.close()


@pytest.fixture(params=["own_scripted_pod", "keeping_pod", "router"], ids=["memory", "directory", "router"])
def client(request: pytest.FixtureRequest) -> Iterator[deepl.DeepLClient]:
    """A client of something that keeps glossaries in one way or the other."""
    client = deepl.DeepLClient("any-key", server_url=request.getfixturevalue(request.param).url)
    yield client
    client.close()


def guard_findings(url: str) -> float:
    """The number of findings of the guard for terms."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    found = [
        line for line in lines if line.startswith("dragoman_guard_findings_total{") and '"glossary"' in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def test_a_glossary_of_one_pair_lives_and_ends(client: deepl.DeepLClient) -> None:
    entries = {"artist": "Maler", "A%=&": "B&=%", "Δぁ": "深", "🪨": "🪵"}
    made = client.create_glossary("Art", "EN", "DE", entries)
    assert (made.name, made.ready, made.source_lang, made.target_lang) == ("Art", True, "EN", "DE")
    assert made.entry_count == 4
    assert abs(made.creation_time - datetime.now(UTC)) < timedelta(minutes=5)

    assert client.get_glossary(made.glossary_id).entry_count == 4
    assert made.glossary_id in [each.glossary_id for each in client.list_glossaries()]
    assert client.get_glossary_entries(made) == entries
    client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.delete_glossary(made)


def test_a_glossary_comes_from_csv(client: deepl.DeepLClient) -> None:
    made = client.create_glossary_from_csv("CSV", "EN", "DE", CSV)
    assert client.get_glossary_entries(made) == CSV_ENTRIES
    client.delete_glossary(made)


def test_a_glossary_comes_from_a_translation_memory(client: deepl.DeepLClient) -> None:
    memory = (
        "<!DOCTYPE tmx SYSTEM 'tmx14.dtd'><tmx version='1.4'><header srclang='en'/><body>"
        "<tu><tuv xml:lang='en-US'><seg>invoice</seg></tuv><tuv xml:lang='de-DE'><seg>Rechnung</seg></tuv></tu>"
        "<tu><tuv xml:lang='en'><seg>Pay now.</seg></tuv><tuv xml:lang='de'><seg>Jetzt zahlen.</seg></tuv></tu>"
        "</body></tmx>"
    )
    form = {
        "name": "TM",
        "source_lang": "en",
        "target_lang": "de",
        "entries_format": "tmx",
        "entries": memory,
    }
    made = httpx.post(f"{client._server_url}/v2/glossaries", data=form).json()
    assert made["entry_count"] == 1
    assert client.get_glossary_entries(made["glossary_id"]) == {"invoice": "Rechnung"}
    client.delete_glossary(made["glossary_id"])


def test_a_large_glossary_is_kept(client: deepl.DeepLClient) -> None:
    entries = {f"Source-{number}": f"Target-{number}" for number in range(10_000)}
    made = client.create_glossary("Large", "EN", "DE", entries)
    assert client.get_glossary_entries(made) == entries
    client.delete_glossary(made)


def test_texts_are_translated_with_a_glossary(client: deepl.DeepLClient) -> None:
    made = client.create_glossary("Art", "DE", "EN", {"Maler": "artist"})
    for target in (None, "EN-US"):
        result = client.translate_text_with_glossary("retsiniM", made, target_lang=target)
        assert isinstance(result, deepl.TextResult)
        assert result.text == "Minister"
    several = client.translate_text(
        "retsiniM", source_lang="DE", target_lang="EN-GB", glossary_ids=[made, made.glossary_id]
    )
    assert isinstance(several, deepl.TextResult)
    with pytest.raises(deepl.DeepLException, match="No dictionary found for language pair de-fr in glossary"):
        client.translate_text("x", source_lang="DE", target_lang="FR", glossary=made.glossary_id)
    client.delete_glossary(made)
    with pytest.raises(deepl.DeepLException, match="Not found, message: Glossary not found"):
        client.translate_text("x", source_lang="DE", target_lang="EN-GB", glossary=made)


def test_the_terms_of_a_glossary_reach_the_model(
    client: deepl.DeepLClient, own_scripted_pod: Any, keeping_pod: Any
) -> None:
    """The engine's answer is the text's reverse, which has the second glossary's term and not the first's."""
    broken, kept = (
        client.create_glossary("Art", "EN", "DE", {"artist": term}) for term in ("Maler", "tsitra")
    )
    other = client.create_glossary("Other", "EN", "FR", {"artist": "peintre"})
    doubts = []
    pod = keeping_pod if client.server_url == keeping_pod.url else own_scripted_pod
    for glossary in (broken, kept):
        before = guard_findings(pod.url)
        client.translate_text("the artist", source_lang="EN", target_lang="DE", glossary=glossary)
        doubts.append(guard_findings(pod.url) - before)
    assert doubts[0] > doubts[1] == 0
    for glossary in (broken, kept, other):
        client.delete_glossary(glossary)


def test_of_detected_sources_each_text_has_the_terms_of_its_language(client: deepl.DeepLClient) -> None:
    """In Dragoman's own API; the scripted model ignores terms, which the guard finds."""
    made = client.create_multilingual_glossary(
        "Art",
        [
            Entries("EN", "FR", {"gift": "cadeau"}),
            Entries("DE", "FR", {"Gift": "poison"}),
            Entries("EN", "DE", {"cat": "Katze"}),
        ],
    )

    def translated(target: str, *texts: str) -> httpx.Response:
        body = {"text": texts, "target_lang": target, "glossary_id": made.glossary_id}
        return httpx.post(f"{client.server_url}/translate", json=body)

    english, german = (
        "I have bought a gift for my mother.",
        "Die Polizei hat das Gift in der Flasche gefunden.",
    )
    spanish = "El gato duerme en el sofá de la abuela."
    found = [
        [each["detail"] for each in details["warnings"] if each["code"] == "glossary"]
        for details in translated("fr", english, german, spanish).json()["details"]
    ]
    lost = "1 of the glossary's terms are not in it"
    assert found == [[lost], [lost], ["the glossary has no terms from es to fr"]]
    refused = translated("it", english)
    assert refused.status_code == 422
    assert "No dictionary found for target language it" in refused.json()["error"]["message"]
    client.delete_multilingual_glossary(made.glossary_id)


def test_the_languages_of_glossaries_are_listed(client: deepl.DeepLClient) -> None:
    pairs = {(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()}
    assert ("en", "de") in pairs
    assert not {pair for pair in pairs if pair[0] == pair[1]}


def test_a_glossary_of_several_pairs_lives_and_ends(client: deepl.DeepLClient) -> None:
    made = client.create_multilingual_glossary(
        "Both ways", [Entries("EN", "DE", {"artist": "Maler"}), Entries("DE", "EN-US", {"Maler": "artist"})]
    )
    assert [(each.source_lang, each.target_lang, each.entry_count) for each in made.dictionaries] == [
        ("EN", "DE", 1),
        ("DE", "EN", 1),
    ]
    listed = {each.glossary_id: each for each in client.list_multilingual_glossaries()}
    assert listed[made.glossary_id].name == "Both ways"
    assert made.glossary_id not in [each.glossary_id for each in client.list_glossaries()]
    with pytest.raises(deepl.GlossaryNotFoundException, match="v3 has it"):
        client.get_glossary(made.glossary_id)

    assert client.update_multilingual_glossary_name(made, "Art").name == "Art"
    client.update_multilingual_glossary_dictionary(
        made, Entries("EN", "DE", {"artist": "Künstler", "a": "b"})
    )
    client.update_multilingual_glossary_dictionary_from_csv(made, "EN", "FR", "artist,artiste")
    found = client.get_multilingual_glossary_entries(made, "EN", "DE")
    # Contrary to its type, the client returns the entries unparsed.
    assert str(found.dictionaries[0].entries) == "artist\tKünstler\na\tb"
    replaced = client.replace_multilingual_glossary_dictionary(made, Entries("EN", "DE", {"x": "y"}))
    assert (replaced.source_lang, replaced.target_lang, replaced.entry_count) == ("EN", "DE", 1)
    replaced = client.replace_multilingual_glossary_dictionary_from_csv(made, "EN", "ES", "a,b\nc,d")
    assert replaced.entry_count == 2

    client.delete_multilingual_glossary_dictionary(made, replaced)
    client.delete_multilingual_glossary_dictionary(made, source_lang="EN", target_lang="DE")
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.delete_multilingual_glossary_dictionary(made, replaced)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary_entries(made, "EN", "DE")
    left = client.get_multilingual_glossary(made.glossary_id).dictionaries
    assert [each.target_lang for each in left] == ["EN", "FR"]
    client.delete_multilingual_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary(made.glossary_id)


def test_a_glossary_of_one_pair_is_one_of_v3_too(client: deepl.DeepLClient) -> None:
    made = client.create_multilingual_glossary_from_csv("CSV", "EN", "DE", CSV)
    assert client.get_glossary_entries(made.glossary_id) == CSV_ENTRIES
    result = client.translate_text("x", source_lang="EN", target_lang="DE", glossary=made)
    assert isinstance(result, deepl.TextResult)
    client.delete_multilingual_glossary(made)


def test_wrong_ids_and_wrong_languages_are_refused(client: deepl.DeepLClient) -> None:
    for lookup in (client.get_glossary, client.get_glossary_entries, client.get_multilingual_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            lookup(NOBODYS_ID)
        with pytest.raises(deepl.DeepLException, match="invalid argument: glossary_id"):
            lookup("invalid_glossary_id")
    with pytest.raises(deepl.DeepLException, match="Unsupported glossary source and target language pair"):
        client.create_glossary("Name", "EN", "XX", {"Hello": "Hallo"})
    with pytest.raises(deepl.DeepLException, match="Unsupported glossary source and target language pair"):
        client.create_multilingual_glossary("Name", [Entries("EN", "EN", {"Hello": "Hallo"})])


def test_wrong_entries_are_refused_with_their_place(client: deepl.DeepLClient) -> None:
    with pytest.raises(
        deepl.DeepLException,
        match=r"Invalid glossary entries provided, detail: Key with the index 2 duplicates key with the index 0",
    ):
        client.create_glossary_from_csv("Name", "EN", "DE", "a,b\nc,d\na,e")
    with pytest.raises(deepl.DeepLException, match="control characters or line breaks"):
        client.create_glossary_from_csv("Name", "EN", "DE", 'a,"b\nc"')


def test_glossaries_outlive_their_pod(tmp_path: Path, start_scripted: Any) -> None:
    ids = []
    for _ in range(2):
        pod = start_scripted("--cache-dir", str(tmp_path / "cache"))
        pod.wait_for("/readyz")
        client = deepl.DeepLClient("any-key", server_url=pod.url)
        ids += [glossary.glossary_id for glossary in client.list_glossaries()]
        client.create_glossary("Art", "EN", "DE", {"artist": "Maler"})
        client.close()
        assert pod.end() == 0
    assert len(ids) == 1
