"""LibreTranslate's routes, called as web pages, Mastodon, Weblate and curl do."""

from collections.abc import Callable
from typing import Any

import pytest

ROUTES = [
    "/translate",
    "/translate_file",
    "/detect",
    "/languages",
    "/frontend/settings",
    "/health",
    "/suggest",
]


def ask(pod: Any, **values: Any) -> Any:
    return pod.client.post("/translate", json={"q": "Hello", "source": "en", "target": "de", **values})


def test_a_list_in_json_and_the_pod_s_own_api_on_one_path(scripted_pod: Any) -> None:
    assert ask(scripted_pod, q=["abc", " ", "def"]).json() == {"translatedText": ["cba", " ", "fed"]}
    assert scripted_pod.translate("abc").json() == {"translation": "cba"}


def test_html(scripted_pod: Any) -> None:
    answer = ask(scripted_pod, q="<p>abc <b>def</b></p>", format="html").json()["translatedText"]
    assert answer.startswith("<p>")
    assert answer.endswith("</p>")


def test_a_form_of_two_kinds_and_a_query(scripted_pod: Any) -> None:
    message = {"q": "Grüße & so", "source": "de", "target": "en"}
    answers = [
        scripted_pod.client.post("/translate", data=message),
        scripted_pod.client.post(
            "/translate", files={name: (None, value) for name, value in message.items()}
        ),
        scripted_pod.client.post("/translate", params=message),
    ]
    assert [answer.json() for answer in answers] == [{"translatedText": "os & eßürG"}] * 3


def test_the_texts_of_a_list_have_one_language_as_at_the_original(scripted_pod: Any) -> None:
    texts = ["Guten Tag, wie geht es Ihnen heute?", "Bonjour"]
    answer = ask(scripted_pod, q=texts, source="auto", target="es").json()
    assert [found["language"] for found in answer["detectedLanguage"]] == ["de", "de"]
    assert "detectedLanguage" not in ask(scripted_pod).json()


@pytest.mark.parametrize("route", ROUTES)
def test_web_pages_of_any_origin_may_ask(scripted_pod: Any, route: str) -> None:
    requested = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    answer = scripted_pod.client.options(route, headers=requested)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "Content-Type" in answer.headers["access-control-allow-headers"]


def test_the_settings_have_the_limits_that_are_enforced(scripted_pod: Any) -> None:
    settings = scripted_pod.client.get("/frontend/settings").json()
    assert settings["keyRequired"] is settings["suggestions"] is False
    assert ".docx" in settings["supportedFilesFormat"]
    longest = "是" * settings["charLimit"]
    message = {"q": longest, "source": "zh", "target": "zh"}
    assert scripted_pod.client.post("/translate", data=message).json() == {"translatedText": longest}
    for refused, size, limit in (
        (ask(scripted_pod, q=longest + " "), settings["charLimit"] + 1, settings["charLimit"]),
        (
            ask(scripted_pod, q=["a"] * (settings["batchLimit"] + 1)),
            settings["batchLimit"] + 1,
            settings["batchLimit"],
        ),
    ):
        assert refused.status_code == 400
        assert refused.json() == {"error": f"Invalid request: request ({size}) exceeds text limit ({limit})"}


def test_a_body_over_the_pod_s_limit_is_400_here(scripted_pod: Any) -> None:
    refused = scripted_pod.client.post(
        "/translate", data={"q": "x" * 2_000_000, "source": "en", "target": "de"}
    )
    assert refused.status_code == 400
    assert "bytes" in refused.json()["error"]


@pytest.mark.parametrize(
    "values", [{"q": "Wie geht es Ihnen heute?"}, {"q": ["Guten Tag,", "wie geht es Ihnen heute?"]}]
)
def test_detection_by_each_way(scripted_pod: Any, values: Any) -> None:
    for way in ("json", "data", "params"):
        (found,) = scripted_pod.client.post("/detect", **{way: values}).json()
        assert found["language"] == "de"
        assert 0 < found["confidence"] <= 100


def test_detection_of_nothing(scripted_pod: Any) -> None:
    assert scripted_pod.client.post("/detect", json={"q": "12 :)"}).json() == [
        {"confidence": 0.0, "language": "en"}
    ]
    for refused in (scripted_pod.client.post("/detect"), scripted_pod.client.post("/detect", json={"q": 5})):
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("Invalid request: ")


def test_suggestions_are_refused(scripted_pod: Any) -> None:
    answer = scripted_pod.client.post("/suggest", data={"q": "a", "s": "b", "source": "en", "target": "de"})
    assert answer.status_code == 403
    assert answer.json() == {"error": "Suggestions are disabled on this server."}


def test_a_loading_pod_reports_that_it_loads(start_scripted: Callable[..., Any]) -> None:
    pod = start_scripted(load_s=60)
    pod.wait_for("/health", 503)
    refused = ask(pod)
    assert refused.status_code == 503
    assert "not ready" in refused.json()["error"]
    assert int(refused.headers["retry-after"]) >= 1
    assert pod.client.get("/languages").is_success


def test_a_failing_engine_is_500(start_served: Callable[..., Any]) -> None:
    pod = start_served(fail_every=1)
    pod.wait_for("/health")
    refused = ask(pod)
    assert (refused.status_code, list(refused.json())) == (500, ["error"])


def test_a_file_is_fetched_from_the_url_of_the_response(scripted_pod: Any) -> None:
    form = {"source": "en", "target": "de"}
    answer = scripted_pod.client.post(
        "/translate_file", data=form, files={"file": ("my file.txt", b"abc\n\ndef\n")}
    )
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{scripted_pod.url}/download_file/")
    fetched = scripted_pod.client.get(url)
    assert fetched.content == b"cba\n\nfed\n"
    assert fetched.headers["content-disposition"] == "attachment; filename=my_file_de.txt"
    assert fetched.headers["content-type"].startswith("text/plain")


def test_a_file_without_words_comes_back_as_it_was(scripted_pod: Any) -> None:
    for content in (b"", b" \n", b"12\n"):
        form = {"source": "auto", "target": "de"}
        answer = scripted_pod.client.post("/translate_file", data=form, files={"file": ("a.srt", content)})
        assert scripted_pod.client.get(answer.json()["translatedFileUrl"]).content == content


@pytest.mark.parametrize(
    ("form", "file", "message"),
    [
        ({"source": "en", "target": "de"}, None, "missing file parameter"),
        ({"source": "en"}, ("a.txt", b"a"), "missing target parameter"),
        ({"target": "de"}, ("a.txt", b"a"), "missing source parameter"),
        ({"source": "en", "target": "de"}, ("a.exe", b"a"), "'.exe' are not translated"),
        ({"source": "en", "target": "de"}, ("a.docx", b"a"), "cannot be unpacked"),
        ({"source": "en", "target": "de"}, ("a.txt", b"\xff"), "UTF-8"),
        ({"source": "en", "target": "qqq"}, ("a.txt", b"a"), "qqq is not supported"),
    ],
)
def test_files_that_are_refused(scripted_pod: Any, form: Any, file: Any, message: str) -> None:
    refused = scripted_pod.client.post("/translate_file", data=form, files={"file": file} if file else None)
    assert refused.status_code == 400
    assert message in refused.json()["error"]


def test_files_that_are_not_there(scripted_pod: Any) -> None:
    for key in ("none", "..%2f..%2fetc%2fpasswd", "%00"):
        answer = scripted_pod.client.get(f"/download_file/{key}")
        assert answer.status_code == 404
        assert "error" in answer.json()
