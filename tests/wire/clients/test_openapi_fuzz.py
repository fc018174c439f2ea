"""The OpenAPI document, fuzzed: what schemathesis makes of it, right and wrong, is never answered with a 5xx.

Some examples for each operation; `DRAGOMAN_FUZZ_EXAMPLES` sets how many.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance

EXAMPLES = int(os.environ.get("DRAGOMAN_FUZZ_EXAMPLES", "8"))

PATHS = frozenset(
    {
        "/translate",
        "/languages",
        "/detect",
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models/{name}",
        "/v2/translate",
        "/v2/languages",
        "/v2/usage",
        "/language/translate/v2",
        "/language/translate/v2/detect",
        "/language/translate/v2/languages",
    }
)
"""What the document has to have at least."""


NAMES = {
    "source": "en",
    "source_lang": "en",
    "from": "en",
    "target": "de",
    "target_lang": "de",
    "to": ["de", "fr"],
    "language": "fr",
    "model": "scripted",
    "name": "scripted",
}


def with_names(node: Any) -> Any:
    """The same with languages and a model that there are, where any such stand: else few requests get far."""
    if isinstance(node, dict):
        return {key: NAMES.get(key, with_names(value)) for key, value in node.items()}
    return [with_names(value) for value in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def document(scripted_pod: Any) -> Any:
    return scripted_pod.client.get("/openapi.json").json()


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """One for all requests of a test: it closes its connections, which schemathesis leaves to the collector."""
    with requests.Session() as session:
        yield session


def test_the_document_describes_every_api(document: Any) -> None:
    assert document["paths"].keys() >= PATHS
    translate = document["paths"]["/translate"]["post"]
    titles = {
        option.get("title", option.get("items", {}).get("title"))
        for option in translate["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    }
    assert titles == {"TranslateRequest", "LibreTranslateRequest", "Item", "Inputs"}
    assert "api-version" in {each["name"] for each in translate["parameters"]}
    for path in PATHS - {"/v1/models", "/v1/models/{name}", "/v2/usage"}:
        for operation in document["paths"][path].values():
            assert "requestBody" in operation or "parameters" in operation or operation["tags"], path


@pytest.mark.timeout(max(120, EXAMPLES * 30))
@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.name
)
def test_nothing_is_answered_with_a_server_error(
    document: Any, scripted_pod: Any, session: requests.Session, mode: Any
) -> None:
    statuses: dict[int, int] = {}
    wrong: list[str] = []
    schema = schemathesis.openapi.from_dict(document)
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize="DRAGOMAN_FUZZ_EXAMPLES" not in os.environ,
        )
        @given(case=operation.as_strategy(generation_mode=mode), named=st.booleans(), azure=st.booleans())
        def ask(case: Any, named: bool, azure: bool) -> None:
            if named:
                case.body, case.query = with_names(case.body), with_names(case.query)
                case.path_parameters = with_names(case.path_parameters)
            if not azure and isinstance(case.query, dict):
                case.query.pop("api-version", None)
            answer = case.call(base_url=scripted_pod.url, timeout=20, session=session)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            if answer.status_code >= 500:
                wrong.append(f"{answer.status_code} {case.as_curl_command()}: {answer.text[:300]}")
            if answer.headers.get("content-type") == "application/json":
                case.validate_response(answer, checks=[response_schema_conformance])

        try:
            ask()
        except Exception as error:
            if type(error).__name__ not in ("Unsatisfiable", "SkipTest", "Skipped"):
                raise
    sys.stderr.write(f"{mode.name}: {sum(statuses.values())} requests: {statuses}\n")
    assert not wrong, "\n".join(wrong[:10])
    assert sum(statuses.values()) > EXAMPLES * 10
    assert scripted_pod.wait_for("/livez")
