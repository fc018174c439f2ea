"""google-cloud-translate as it is on PyPI: `translate_v2.Client`, without credentials and with another endpoint."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, InternalServerError, ServiceUnavailable
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2

CAT = "The cat sleeps."
KATZE = "Die Katze schläft."


MakeClient = Callable[..., translate_v2.Client]


@pytest.fixture
def client_of() -> Iterator[MakeClient]:
    """Makes clients whose connections end with the test."""
    made: list[translate_v2.Client] = []

    def make(pod: Any, **options: Any) -> translate_v2.Client:
        endpoint = {"api_endpoint": pod.url}
        made.append(
            translate_v2.Client(credentials=AnonymousCredentials(), client_options=endpoint, **options)
        )
        return made[-1]

    yield make
    for client in made:
        client._http.close()


def test_a_text(demo_pod: Any, client_of: MakeClient) -> None:
    found = client_of(demo_pod).translate(CAT, target_language="de", source_language="en")
    assert found == {"translatedText": KATZE, "input": CAT}


def test_texts_whose_language_is_detected(demo_pod: Any, client_of: MakeClient) -> None:
    texts = ["My parents missed this train last week.", ""]
    first, second = client_of(demo_pod, target_language="fr").translate(texts, model="nmt", format_="text")
    assert first["translatedText"] == "Mes parents ont raté ce train la semaine dernière."
    assert first["detectedSourceLanguage"] == "en"
    assert first["model"] == "nmt"
    assert second["translatedText"] == ""


def test_html_is_the_default_and_text_is_escaped(demo_pod: Any, client_of: MakeClient) -> None:
    client = client_of(demo_pod)
    text = "Can you read the newspaper, please?"
    requested = {"target_language": "fr", "source_language": "en"}
    assert client.translate(f"<p>{text}</p>", **requested)["translatedText"] == (
        "<p>Pouvez-vous lire le journal, s&#39;il vous plaît ?</p>"
    )
    plain = client.translate(text, format_="text", **requested)["translatedText"]
    assert plain == "Pouvez-vous lire le journal, s'il vous plaît ?"


def test_detection(demo_pod: Any, client_of: MakeClient) -> None:
    client = client_of(demo_pod)
    found = client.detect_language("My parents missed this train last week.")
    assert found["language"] == "en"
    assert 0 < found["confidence"] <= 1
    assert [each["language"] for each in client.detect_language([KATZE, CAT])] == ["de", "en"]


def test_languages_have_names_in_the_clients_language(demo_pod: Any, client_of: MakeClient) -> None:
    listed = client_of(demo_pod).get_languages()
    assert listed[1] == {"language": "fr", "name": "French"}
    assert client_of(demo_pod).get_languages(target_language="de")[1]["name"] == "Französisch"
    assert client_of(demo_pod, target_language=None).get_languages()[1] == {"language": "fr"}


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        ({"target_language": "ja", "source_language": "en"}, "en to ja is not served here"),
        ({"target_language": "klingonish"}, "is no language tag"),
        ({"target_language": "de", "format_": "rtf"}, "format"),
    ],
)
def test_refusals(demo_pod: Any, client_of: MakeClient, requested: dict[str, str], reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        client_of(demo_pod).translate(CAT, **requested)
    assert reason in refused.value.message
    assert refused.value.errors[0]["domain"] == "global"


def test_more_than_128_segments(scripted_pod: Any, client_of: MakeClient) -> None:
    client = client_of(scripted_pod)
    requested = {"target_language": "de", "source_language": "en"}
    assert len(client.translate(["a"] * 128, **requested)) == 128
    with pytest.raises(BadRequest, match="at most 128"):
        client.translate(["a"] * 129, **requested)


def test_a_pod_that_fails_or_is_not_ready(start_scripted: Any, client_of: MakeClient) -> None:
    failing = start_scripted(fail_every=1)
    loading = start_scripted(load_s=60)
    failing.wait_for("/readyz")
    loading.wait_for("/livez")
    requested = {"target_language": "de", "source_language": "en"}
    with pytest.raises(InternalServerError):
        client_of(failing).translate("abc", **requested)
    with pytest.raises(ServiceUnavailable) as refused:
        client_of(loading).translate("abc", **requested)
    assert int(refused.value.response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("GET", {"params": {"q": ["The cat sleeps."], "target": "de", "source": "en", "key": "any"}}),
        (
            "POST",
            {"data": {"q": "The cat sleeps.", "target": "de", "source": "en"}, "params": {"key": "any"}},
        ),
        ("POST", {"json": {"q": "The cat sleeps.", "target": "de", "source": "en"}}),
    ],
)
def test_other_ways_to_ask(demo_pod: Any, method: str, sent: dict[str, Any]) -> None:
    answer = demo_pod.client.request(method, "/language/translate/v2", **sent)
    assert answer.json() == {"data": {"translations": [{"translatedText": KATZE}]}}
