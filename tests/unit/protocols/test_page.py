"""The web page as values: its files, and the headers that they are answered with."""

import gzip
import re
from importlib.resources import files
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from dragoman_protocols.errors import CallerError, UnknownPathError, causes
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.page.endpoints import ENDPOINTS, MEDIA, POLICY, content, etag, is_known, packed
from dragoman_protocols.routes import recognise
from dragoman_protocols.site import Limits, Site
from dragoman_service.text.guards import Guard

PROTOCOLS = Path(__file__).parents[3] / "protocols"
MAX_BYTES = 25_000
"""Of the files of one document, as they are sent."""
DOCUMENTS = [name for name in MEDIA if name.endswith(".html")]
SITE = Site(offer_of([]), (), Limits(None, 1))


def get(path: str, site: Site = SITE, **headers: str) -> Answer:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    request = Request("GET", path, b"", pairs)
    endpoint = recognise(request)
    assert endpoint.respond is not None
    return endpoint.respond(request, site)


def test_every_file_of_the_folder_is_served_and_no_other() -> None:
    folder = files("dragoman_protocols.page").joinpath("files")
    assert {each.name for each in folder.iterdir()} == set(MEDIA)
    assert [each.path for each in ENDPOINTS] == [
        "/",
        *(f"/page/{name}" for name in list(MEDIA)[1:]),
        "/fleet",
    ]


def test_every_file_is_in_the_wheel() -> None:
    packed = {each.distribution_path for each in WheelBuilder(str(PROTOCOLS)).recurse_included_files()}
    assert {f"dragoman_protocols/page/files/{name}" for name in MEDIA} <= packed


def loaded(document: str) -> set[str]:
    """The files that a document and its scripts name."""
    named = set(re.findall(r"(?:href|src)=\"(?:page/)?([^/\"]+\.\w+)\"", content(document).decode()))
    for script in (name for name in named if name.endswith(".js")):
        assert set(re.findall(r"from '\./([^']+)'", content(script).decode())) <= named, "preloaded"
    return named | {document}


def test_the_documents_are_small() -> None:
    assert len(DOCUMENTS) == 2
    for document in DOCUMENTS:
        assert (
            sum(len(packed(name)) for name in loaded(document) - (set(DOCUMENTS) - {document})) <= MAX_BYTES
        )


@pytest.mark.parametrize("name", MEDIA)
def test_a_file_names_no_other_host_and_nothing_is_inline(name: str) -> None:
    text = content(name).decode()
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|['\"]//", text)
    if name.endswith(".html"):
        assert not re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)


def test_what_the_documents_and_their_scripts_load_is_served() -> None:
    assert set[str]().union(*map(loaded, DOCUMENTS)) == set(MEDIA)


def test_the_page_has_a_policy_that_allows_only_itself() -> None:
    answer = get("/")
    headers = dict(answer.headers)
    assert answer.status == 200
    assert headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert headers["ETag"] == etag("index.html")
    assert not {name.lower() for name in headers} & {"set-cookie", "access-control-allow-origin"}


def keys_of(table: str, script: str) -> set[str]:
    """The keys of an object in a script."""
    (body,) = re.findall(
        rf"^const {table} = {{$(.*?)^}};$", content(script).decode(), re.DOTALL | re.MULTILINE
    )
    return set(re.findall(r"^  (\w+):", body, re.MULTILINE))


def test_the_causes_that_the_page_words_are_those_of_callers_errors() -> None:
    assert keys_of("CAUSES", "refusal.js") <= {
        each.code for each in causes() if issubclass(each, CallerError)
    }


def test_the_page_words_the_finding_of_every_guard() -> None:
    assert set(Guard) <= keys_of("SENTENCES", "findings.js")


@pytest.mark.parametrize("accepted", ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.8"])
def test_a_file_is_packed_for_clients_that_take_it(accepted: str) -> None:
    plain, found = get("/page/app.js"), get("/page/app.js", accept_encoding=accepted)
    assert dict(found.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(found.body) == plain.body == content("app.js")
    assert dict(found.headers)["ETag"] == dict(plain.headers)["ETag"]


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip;q=0.000", "identity"])
def test_a_file_is_sent_as_it_is_to_other_clients(accepted: str) -> None:
    found = get("/page/app.js", accept_encoding=accepted)
    assert "Content-Encoding" not in dict(found.headers)
    assert dict(found.headers)["Vary"] == "Accept-Encoding"
    assert found.body == content("app.js")


@pytest.mark.parametrize("listed", ["{}", '"other", {}', "*"])
def test_a_file_that_the_client_has_is_not_sent_again(listed: str) -> None:
    answer = get("/page/app.js", if_none_match=listed.format(etag("app.js")))
    assert (answer.status, answer.body) == (304, b"")
    assert dict(answer.headers)["ETag"] == etag("app.js")


def test_another_version_of_a_file_is_sent() -> None:
    assert not is_known(etag("app.js"), None)
    assert get("/page/app.js", if_none_match=etag("style.css")).body == content("app.js")


def test_without_the_page_its_paths_are_unknown() -> None:
    without = Site(offer_of([]), (), Limits(None, 1), page=False)
    for path in ("/", "/page/app.js"):
        with pytest.raises(UnknownPathError):
            get(path, without)


@pytest.mark.parametrize(
    "path", ["/page", "/page/", "/page/index.html", "/page/../routes.py", "/page/app.js/x", "/index.html"]
)
def test_other_paths_are_unknown(path: str) -> None:
    with pytest.raises(UnknownPathError):
        recognise(Request("GET", path, b"", []))
