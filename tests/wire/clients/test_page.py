"""The web page, as a browser gets it from a pod and from a router."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.support.servers import RouterProcess

from dragoman_protocols.page.endpoints import HEADERS, MEDIA, content, etag

PATHS = {name: "/" if name == "index.html" else f"/page/{name}" for name in MEDIA}

StartRouter = Callable[..., httpx.Client]


@pytest.fixture
def start_router(tmp_path: Path) -> Iterator[StartRouter]:
    """Routers of no deployment."""
    (tmp_path / "none.yaml").write_text(yaml.safe_dump({"deployments": []}))
    routers: list[RouterProcess] = []

    def start(*arguments: str) -> httpx.Client:
        routers.append(RouterProcess(tmp_path, f"--static={tmp_path / 'none.yaml'}", *arguments))
        routers[-1].wait_until_ready()
        return httpx.Client(base_url=routers[-1].url)

    yield start
    for router in routers:
        router.close()


@pytest.mark.parametrize("name", MEDIA)
def test_each_file_has_its_type_and_headers(scripted_pod: Any, name: str) -> None:
    answer = scripted_pod.client.get(PATHS[name])
    assert (answer.status_code, answer.content) == (200, content(name))
    for header, value in (("Content-Type", MEDIA[name]), ("ETag", etag(name)), *HEADERS):
        assert answer.headers[header] == value
    assert "set-cookie" not in answer.headers


def test_a_file_that_did_not_change_is_not_sent_again(scripted_pod: Any) -> None:
    answer = scripted_pod.client.get("/", headers={"If-None-Match": etag("index.html")})
    assert (answer.status_code, answer.content) == (304, b"")


def test_head_has_the_same_headers_and_no_body(scripted_pod: Any) -> None:
    head, got = scripted_pod.client.head("/page/style.css"), scripted_pod.client.get("/page/style.css")
    assert head.content == b""
    dates = {"date"}
    assert {**head.headers}.keys() - dates == {**got.headers}.keys() - dates
    assert head.headers["content-length"] == got.headers["content-length"]
    # The connection goes on with the next answer.
    assert scripted_pod.client.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/page/other.js", "/page/", "/page/%2e%2e/routes.py", "/index.html"])
def test_an_unknown_path_is_404_in_the_shape_of_the_api(scripted_pod: Any, path: str) -> None:
    answer = scripted_pod.client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_another_method_is_refused(scripted_pod: Any) -> None:
    answer = scripted_pod.client.post("/", content=b"x")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_router_answers_itself_without_a_key_and_below_a_deployment(
    start_router: StartRouter, tmp_path: Path
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "alice").write_text("a-secret-of-alice")
    with start_router(f"--keys-dir={tmp_path / 'keys'}") as client:
        assert client.get("/v3/glossaries").status_code == 403
        assert client.get("/").content == content("index.html")
        assert client.get("/page/app.js").content == content("app.js")
        # Its addresses are relative: what it asks goes to that deployment.
        assert client.get("/d/default/one/").content == content("index.html")
        assert client.get("/d/default/one/page/app.js").content == content("app.js")


def test_a_router_without_the_page(start_router: StartRouter) -> None:
    with start_router("--no-page") as client:
        answers = [client.get("/"), client.get("/page/app.js")]
    assert [(each.status_code, each.json()["error"]["code"]) for each in answers] == [(404, "not_found")] * 2


def test_a_pod_without_the_page(start_scripted: Any) -> None:
    pod = start_scripted("--no-page")
    pod.wait_for("/readyz")
    answers = [pod.client.get("/"), pod.client.get("/page/app.js")]
    assert [(each.status_code, each.json()["error"]["code"]) for each in answers] == [(404, "not_found")] * 2
