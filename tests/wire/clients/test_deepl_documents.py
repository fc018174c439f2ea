"""The documents of DeepL's own Python client."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import deepl.http_client
import docx
import httpx
import pytest
from tests.unit.service.files.pdfs import lines_of


@pytest.fixture
def client(scripted_pod: Any) -> Iterator[deepl.DeepLClient]:
    client = deepl.DeepLClient("any-key", server_url=scripted_pod.url)
    yield client
    client.close()


def test_a_file_is_translated(client: deepl.DeepLClient, tmp_path: Path) -> None:
    source, target = tmp_path / "letter.txt", tmp_path / "letter_de.txt"
    source.write_text("One\n\nTwo three\n", encoding="utf-8")
    before = client.get_usage().character.count
    status = client.translate_document_from_filepath(source, target, source_lang="EN", target_lang="DE")
    assert (status.ok, status.done, status.status) == (True, True, deepl.DocumentStatus.Status.DONE)
    assert target.read_text(encoding="utf-8") == "enO\n\neerht owT\n"
    after = client.get_usage().character.count
    assert before is not None
    assert after is not None
    assert after - before == status.billed_characters == len("One\n\nTwo three\n")


def test_a_web_page_is_translated_with_a_glossary(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary("Art", "EN", "DE", {"artist": "Maler"})
    translated = io.BytesIO()
    client.translate_document(
        b'<html><body><p class="a">One</p><p translate="no">Two</p></body></html>',
        translated,
        filename="page.html",
        source_lang="EN",
        target_lang="DE",
        glossary=glossary,
        formality="prefer_more",
        output_format="html",
    )
    assert translated.getvalue() == (
        b'<html><body><p class="a">enO</p><p translate="no">Two</p></body></html>'
    )
    client.delete_glossary(glossary)


def test_a_pdf_is_translated_into_a_word_document(client: deepl.DeepLClient, tmp_path: Path) -> None:
    source = tmp_path / "letter.pdf"
    source.write_bytes(lines_of("Good day"))
    client.translate_document_from_filepath(source, tmp_path / "a.docx", source_lang="EN", target_lang="DE")
    assert [each.text for each in docx.Document(str(tmp_path / "a.docx")).paragraphs] == ["yad dooG"]
    with pytest.raises(deepl.DeepLException, match=r"pdf is translated into \.docx"):
        client.translate_document_from_filepath(
            source, tmp_path / "a.pdf", source_lang="EN", target_lang="DE"
        )


def test_the_state_has_the_findings_of_a_document(client: deepl.DeepLClient, scripted_pod: Any) -> None:
    # The model of this pod writes backwards and loses all tags.
    page = b"<p>The <b>cat</b> sleeps.</p><p>Good day</p>"
    handle = client.translate_document_upload(page, source_lang="EN", target_lang="DE", filename="a.html")
    form = {"document_key": handle.document_key}
    state = scripted_pod.client.post(f"/v2/document/{handle.document_id}", data=form).json()
    assert (state["status"], state["findings"]) == ("done", {"tags_aligned": 1})
    response = client.translate_document_download(handle)
    assert response is not None
    assert b"".join(response.iter_content()) == b"<p>.speels <b>tac</b> ehT</p><p>yad dooG</p>"


def test_a_document_is_handed_out_to_its_owner_only(client: deepl.DeepLClient) -> None:
    handle = client.translate_document_upload("The weather is nice.", target_lang="DE", filename="a.txt")
    assert client.translate_document_get_status(handle).done
    with pytest.raises(deepl.DeepLException, match="Document not found"):
        client.translate_document_get_status(deepl.DocumentHandle(handle.document_id, "another's key"))
    response = client.translate_document_download(handle)
    assert response is not None
    assert b"".join(response.iter_content()) == b".ecin si rehtaew ehT"
    assert client.translate_document_get_status(handle).done


def test_a_file_with_nothing_to_translate_comes_back(client: deepl.DeepLClient) -> None:
    translated = io.BytesIO()
    status = client.translate_document(b" \n", translated, filename="a.txt", target_lang="DE")
    assert translated.getvalue() == b" \n"
    assert status.billed_characters == 2


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.xyz", b"Hello", {}, "'.xyz' are not translated"),
        ("a.docx", b"Hello", {}, ""),
        ("a.txt", b"Hello", {"output_format": "pdf"}, "Value for 'output_format' not supported"),
        ("a.txt", b"Hello", {"target_lang": "XX"}, "Value for 'target_lang' not supported"),
    ],
)
def test_what_cannot_be_translated_is_refused_at_once(
    client: deepl.DeepLClient, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    requested = {"source_lang": "EN", "target_lang": "DE", **options}
    with pytest.raises(deepl.DeepLException, match=f"Bad request, message: .*{message}") as refused:
        client.translate_document_upload(content, filename=name, **requested)
    assert refused.value.http_status_code == 400


def test_a_form_without_a_file_is_refused(scripted_pod: Any) -> None:
    for sent in ({"files": {"other": b""}}, {"data": {"target_lang": "DE"}}, {"content": b"x"}):
        answer = httpx.post(f"{scripted_pod.url}/v2/document", **sent)
        assert answer.status_code == 400
        assert answer.json()["message"]


def test_a_document_in_the_works_is_waited_for_by_the_drain(
    start_scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    pod = start_scripted(first_token_s=4)
    pod.wait_for("/readyz")
    client = deepl.DeepLClient("any-key", server_url=pod.url)
    handle = client.translate_document_upload("Hello", source_lang="EN", target_lang="DE", filename="a.txt")
    assert client.translate_document_get_status(handle).status is deepl.DocumentStatus.Status.TRANSLATING
    with pytest.raises(deepl.DocumentNotReadyException) as early:
        client.translate_document_download(handle)
    assert early.value.should_retry
    assert pod.metric("dragoman_requests_in_flight") == 1
    client.close()
    assert pod.end() == 0


LETTER = "".join(f"Line {letter * 3}{other} is here.\n" for letter in "abcdefghij" for other in "klmnopqrst")


def state_of(pod: Any, handle: deepl.DocumentHandle, path: str = "") -> Any:
    form = {"document_key": handle.document_key}
    return pod.client.post(f"/v2/document/{handle.document_id}{path}", data=form)


@pytest.fixture
def slow_pod(start_scripted: Any) -> Any:
    """A pod that needs a second for four segments."""
    pod = start_scripted("--max-num-seqs", "4", first_token_s=1)
    pod.wait_for("/readyz")
    return pod


def test_a_document_reports_its_progress_and_is_cancelled(slow_pod: Any) -> None:
    client = deepl.DeepLClient("any-key", server_url=slow_pod.url)
    handle = client.translate_document_upload(LETTER, source_lang="EN", target_lang="DE", filename="a.txt")
    states = [client.translate_document_get_status(handle)]
    while len(states) < 2 or states[-1].seconds_remaining is None:
        states.append(client.translate_document_get_status(handle))
        assert states[-1].status is deepl.DocumentStatus.Status.TRANSLATING
    assert 0 < states[-1].seconds_remaining < 300
    assert 0 < state_of(slow_pod, handle).json()["progress"] < 1
    cancelled = state_of(slow_pod, handle, "/cancel")
    assert cancelled.json()["error_message"] == "cancelled by its client"
    # What was translated is charged for.
    assert -len(LETTER) < int(cancelled.headers["x-dragoman-characters"]) < 0
    assert client.translate_document_get_status(handle).status is deepl.DocumentStatus.Status.ERROR
    slow_pod.wait_for_metric("dragoman_requests_in_flight", 0)
    assert state_of(slow_pod, handle, "/cancel").json() == state_of(slow_pod, handle).json()
    assert state_of(slow_pod, handle, "/result").status_code == 503
    client.close()


def test_a_finished_document_that_is_cancelled_is_deleted_and_stays_charged(scripted_pod: Any) -> None:
    client = deepl.DeepLClient("any-key", server_url=scripted_pod.url)
    handle = client.translate_document_upload(
        "Good day", source_lang="EN", target_lang="DE", filename="a.txt"
    )
    assert state_of(scripted_pod, handle).json()["status"] == "done"
    other = deepl.DocumentHandle(handle.document_id, "another's key")
    assert state_of(scripted_pod, other, "/cancel").status_code == 404
    cancelled = state_of(scripted_pod, handle, "/cancel")
    assert cancelled.json()["status"] == "error"
    assert "x-dragoman-characters" not in cancelled.headers
    assert state_of(scripted_pod, handle, "/result").status_code == 503
    client.close()


def test_a_document_has_the_deadline_of_its_upload(slow_pod: Any) -> None:
    form = {"source_lang": "EN", "target_lang": "DE"}
    sent = slow_pod.client.post(
        "/v2/document", data=form, files={"file": ("a.txt", LETTER)}, headers={"X-Request-Timeout": "1.5"}
    ).json()
    handle = deepl.DocumentHandle(sent["document_id"], sent["document_key"])
    slow_pod.wait_for_metric("dragoman_requests_in_flight", 0)
    assert "1.5 s" in state_of(slow_pod, handle).json()["error_message"]


def test_a_failed_engine_is_reported_in_the_document_status(start_served: Any) -> None:
    pod = start_served(fail_every=1)
    pod.wait_for("/readyz")
    client = deepl.DeepLClient("any-key", server_url=pod.url)
    with pytest.raises(deepl.DocumentTranslationException, match="Error occurred") as error:
        client.translate_document(
            b"Hello", io.BytesIO(), source_lang="EN", target_lang="DE", filename="a.txt"
        )
    assert error.value.document_handle.document_id
    client.close()
