"""azure-ai-translation-text as it is on PyPI, 2.0.0 (api-version 2026-06-06) and 1.0.1 (3.0).

Both are one distribution: 2.0.0 is installed with the other tools of the tests, 1.0.1 is fetched into
pytest's cache and loaded from there under another name.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from azure.ai.translation.text import TextTranslationClient
from azure.ai.translation.text.models import TranslateInputItem, TranslationTarget
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotModifiedError

V3 = "azure-ai-translation-text==1.0.1"
CAT = "The cat sleeps."
KATZE, CHAT = "Die Katze schläft.", "Le chat dort."
KEY = AzureKeyCredential("any")


@pytest.fixture(scope="session")
def v3(pytestconfig: pytest.Config) -> ModuleType:
    """The package of 1.0.1."""
    assert pytestconfig.cache is not None
    directory = pytestconfig.cache.mkdir("azure-ai-translation-text-1.0.1")
    package = directory / "azure" / "ai" / "translation" / "text" / "__init__.py"
    if not package.is_file():
        fetch(directory)
    spec = importlib.util.spec_from_file_location("azure_ai_translation_text_v3", package)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert module.__version__ == "1.0.1"
    return module


def fetch(directory: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--target", str(directory), V3], capture_output=True, text=True, timeout=100)
    if done.returncode:
        pytest.skip(f"{V3} cannot be had: {done.stderr.strip()[-300:]}")


def client_of(pod: Any, package: Any = None, **options: Any) -> Any:
    make = TextTranslationClient if package is None else package.TextTranslationClient
    return make(endpoint=pod.url, credential=KEY, **options)


class TestNewer:
    """2.0.0."""

    def test_a_text_into_a_language(self, demo_pod: Any) -> None:
        with client_of(demo_pod) as client:
            (item,) = client.translate(body=[CAT], to_language=["de"], from_language="en")
        (translation,) = item.translations
        assert (translation.language, translation.text) == ("de", KATZE)
        assert translation.source_characters == len(CAT)
        assert translation.response_tokens > 0
        assert item.detected_language is None

    def test_texts_into_several_languages(self, demo_pod: Any) -> None:
        with client_of(demo_pod) as client:
            first, second = client.translate(body=[CAT, " "], to_language=["de", "fr"], from_language="en")
        assert [each.text for each in first.translations] == [KATZE, CHAT]
        assert [each.text for each in second.translations] == [" ", " "]

    def test_each_text_its_own_way(self, demo_pod: Any) -> None:
        inputs = [
            TranslateInputItem(text=CAT, language="en", targets=[TranslationTarget(language="fr")]),
            TranslateInputItem(text=KATZE, language="de", targets=[TranslationTarget(language="en")]),
        ]
        with client_of(demo_pod) as client:
            found = client.translate(body=inputs)
        assert [item.translations[0].text for item in found] == [CHAT, "The cat is sleeping."]

    def test_the_language_is_detected(self, demo_pod: Any) -> None:
        with client_of(demo_pod) as client:
            (item,) = client.translate(body=["My parents missed this train last week."], to_language=["fr"])
        assert item.detected_language.language == "en"
        assert 0 < item.detected_language.score <= 1
        assert item.translations[0].text == "Mes parents ont raté ce train la semaine dernière."

    def test_the_languages_and_who_translates_them(self, demo_pod: Any) -> None:
        with client_of(demo_pod) as client:
            known = client.get_supported_languages(accept_language="de")
            assert list(known.translation) == ["en", "fr", "de", "ne"]
            nepali = known.translation["ne"]
            assert (nepali.name, nepali.native_name, nepali.dir) == ("Nepalesisch", "नेपाली", "ltr")
            assert nepali.models == known.models == ["demo"]
            assert client.get_supported_languages(scope="models").translation is None

    def test_an_etag_spares_the_list(self, demo_pod: Any) -> None:
        tags: list[str] = []

        def keep(answer: Any, _: Any, headers: Any) -> None:
            tags.append(answer.http_response.headers["ETag"])

        with client_of(demo_pod) as client:
            client.get_supported_languages(cls=keep)
            with pytest.raises((HttpResponseError, ResourceNotModifiedError)) as refused:
                client.get_supported_languages(headers={"If-None-Match": tags[0]})
        assert refused.value.status_code == 304

    def test_the_callers_trace_id_comes_back(self, scripted_pod: Any) -> None:
        seen: list[str] = []
        with client_of(scripted_pod) as client:
            client.translate(
                body=["a"],
                to_language=["de"],
                from_language="en",
                client_trace_id="trace-1",
                raw_response_hook=lambda answer: seen.append(answer.http_response.headers["X-RequestId"]),
            )
        assert seen == ["trace-1"]

    def test_a_refusal_names_its_number(self, demo_pod: Any) -> None:
        with client_of(demo_pod) as client:
            with pytest.raises(HttpResponseError) as refused:
                client.translate(body=[CAT], to_language=["klingonish"], from_language="en")
            assert (refused.value.status_code, refused.value.error.code) == (400, "400036")
            with pytest.raises(HttpResponseError) as unserved:
                client.translate(body=[CAT], to_language=["ja"], from_language="en")
            assert unserved.value.error.code == "400036"


class TestOlder:
    """1.0.1."""

    def test_texts_into_several_languages(self, demo_pod: Any, v3: Any) -> None:
        with client_of(demo_pod, v3) as client:
            first, second = client.translate(body=[CAT, ""], to_language=["de", "fr"], from_language="en")
        assert [(each.to, each.text) for each in first.translations] == [("de", KATZE), ("fr", CHAT)]
        assert [each.text for each in second.translations] == ["", ""]

    def test_html_and_detection(self, demo_pod: Any, v3: Any) -> None:
        with client_of(demo_pod, v3) as client:
            (item,) = client.translate(
                body=[f"<p>{CAT}</p>"], to_language=["de"], text_type=v3.models.TextType.HTML
            )
        assert item.translations[0].text == f"<p>{KATZE}</p>"
        assert item.detected_language.language == "en"

    def test_the_languages(self, demo_pod: Any, v3: Any) -> None:
        with client_of(demo_pod, v3) as client:
            known = client.get_supported_languages(scope="translation", accept_language="fr")
            with pytest.raises(HttpResponseError) as refused:
                client.get_supported_languages(scope="songs")
        assert {tag: each.name for tag, each in known.translation.items()} == {
            "en": "anglais",
            "fr": "français",
            "de": "allemand",
            "ne": "népalais",
        }
        assert known.transliteration is None
        assert (refused.value.status_code, refused.value.error.code) == (400, 400001)

    def test_what_is_not_there_is_refused(self, demo_pod: Any, v3: Any) -> None:
        with client_of(demo_pod, v3) as client:
            with pytest.raises(HttpResponseError) as refused:
                client.translate(body=[CAT], to_language=["de"], from_language="en", to_script="Latn")
            assert refused.value.error.code == 400000
            with pytest.raises(HttpResponseError) as absent:
                client.transliterate(body=["a"], language="ja", from_script="Jpan", to_script="Latn")
            assert absent.value.status_code == 404

    def test_limits(self, scripted_pod: Any, v3: Any) -> None:
        with client_of(scripted_pod, v3) as client:
            for body, number in ((["a"] * 1001, 400072), (["a" * 50_001], 400077)):
                with pytest.raises(HttpResponseError) as refused:
                    client.translate(body=body, to_language=["de"], from_language="en")
                assert (refused.value.status_code, refused.value.error.code) == (400, number)


def test_a_request_to_a_loading_pod_is_retried_after_retry_after(start_served: Any, v3: Any) -> None:
    pod = start_served(load_s=2.0)
    pod.wait_for("/livez")
    for package in (v3, None):
        with client_of(pod, package, retry_total=3) as client:
            client.translate(body=["abc"], to_language=["de"], from_language="en")


def test_a_failing_request_is_retried_and_then_given_up(start_served: Any, v3: Any) -> None:
    pod = start_served(fail_every=1)
    pod.wait_for("/readyz")
    for done, (package, code) in enumerate(((v3, 500000), (None, "500000")), start=1):
        client = client_of(pod, package, retry_total=2, retry_backoff_factor=0.01)
        with client, pytest.raises(HttpResponseError) as refused:
            client.translate(body=["abc"], to_language=["de"], from_language="en")
        assert (refused.value.status_code, refused.value.error.code) == (500, code)
        assert pod.metric("dragoman_requests_total") == 3 * done


def test_a_client_without_patience_leaves(start_served: Any) -> None:
    pod = start_served(first_token_s=20)
    pod.wait_for("/readyz")
    with (
        client_of(pod, read_timeout=0.3, retry_total=0) as client,
        pytest.raises(Exception, match="timed out"),
    ):
        client.translate(body=["abc"], to_language=["de"], from_language="en")
    pod.wait_for_metric("vllm:num_requests_running", 0)


def test_detection_and_what_the_version_distinguishes(demo_pod: Any) -> None:
    detected = demo_pod.client.post(
        "/detect?api-version=3.0", json=[{"Text": "My parents missed this train last week."}, {"Text": "12"}]
    ).json()
    assert detected[0]["language"] == "en"
    assert detected[0]["isTranslationSupported"] is True
    assert detected[1] == {
        "language": "und",
        "score": 0.0,
        "isTranslationSupported": False,
        "isTransliterationSupported": False,
    }
    key = {"Ocp-Apim-Subscription-Key": "any"}
    missing = demo_pod.client.post("/translate?to=de", json=[{"Text": "a"}], headers=key)
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, 400021)
    assert "translation" in demo_pod.client.get("/languages?api-version=3.0").json()
    assert isinstance(demo_pod.client.get("/languages").json(), list)
