"""What the operator writes, the engine pod understands."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.deployments import make_td

from dragoman_contract.models import CUSTOM_FAMILY, PROMPT_FAMILIES
from dragoman_operator.api.crd import structural
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.resources.pod import command_line

prompts = pytest.importorskip("dragoman_service.prompts.families")
settings = pytest.importorskip("dragoman_service.settings")

CHILDREN = sorted((Path(__file__).parents[3] / "manifests/children").glob("*.yaml"))


def engine(path: Path) -> dict[str, Any]:
    (deployment,) = (child for child in yaml.safe_load_all(path.read_text()) if child["kind"] == "Deployment")
    container: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("path", CHILDREN, ids=lambda path: path.stem)
def test_engine_reads_every_argument(path: Path) -> None:
    command, *flags = engine(path)["args"]
    read = settings.read_settings(flags)
    assert command == "serve"
    assert {flag.removeprefix("--").replace("-", "_") for flag in flags[::2]} <= read.model_fields_set
    assert prompts.prompt_family(read.prompt_family, read.prompt_template)


def test_families_of_the_spec_are_those_of_the_engine() -> None:
    assert set(prompts.FAMILIES) | {CUSTOM_FAMILY} == set(PROMPT_FAMILIES)


SETTINGS: list[tuple[dict[str, Any], str, object]] = [
    ({"engine": {"schedulingPolicy": "FirstComeFirstServed"}}, "scheduling_policy", "fcfs"),
    ({"engine": {"schedulingPolicy": "ShortestFirst"}}, "scheduling_policy", "shortest"),
    ({"engine": {"stallTimeout": "3m"}}, "stall_timeout_s", 180),
    ({"admission": {"maxQueuedSequences": 0}}, "max_queued_sequences", 0),
    ({"admission": {"maxQueuedTokens": 0}}, "max_queued_tokens", 0),
    ({"admission": {"deadlineAware": False}}, "deadline_aware_admission", False),
    ({"admission": {"requestTimeout": "1m30s"}}, "request_timeout_s", 90),
    ({"admission": {"unreadyWhenOverloaded": True}}, "unready_when_overloaded", True),
    ({"translation": {"split": "Lines"}}, "split", "lines"),
    ({"translation": {"split": "Sentences"}}, "split", "sentences"),
    ({"translation": {"split": "NoNewlines"}}, "split", "no-lines"),
    ({"translation": {"split": "None"}}, "split", "none"),
    ({"translation": {"cacheSize": "1Mi"}}, "translation_cache_bytes", 1024 * 1024),
    ({"tracing": {"otlpEndpoint": "http://otel:4318"}}, "otlp_endpoint", "http://otel:4318"),
    ({"rollout": {"lameDuck": "0s"}}, "lame_duck_s", 0),
]


@pytest.mark.parametrize(("groups", "setting", "value"), SETTINGS, ids=str)
def test_engine_takes_each_value_as_it_is_meant(groups: dict[str, Any], setting: str, value: object) -> None:
    read = settings.read_settings(command_line(make_td(**groups))[1:])
    assert getattr(read, setting) == value
    # What is left out stays the engine's own default.
    assert setting not in settings.read_settings(command_line(make_td())[1:]).model_fields_set


@pytest.mark.parametrize(
    ("setting", "group", "field", "documented"),
    [
        ("stall_timeout_s", "engine", "stallTimeout", ("Default: 2m.", 120)),
        ("request_timeout_s", "admission", "requestTimeout", ("Default: 30s.", 30)),
        ("deadline_aware_admission", "admission", "deadlineAware", ("Default: true.", True)),
        ("unready_when_overloaded", "admission", "unreadyWhenOverloaded", ("Default: false.", False)),
        ("scheduling_policy", "engine", "schedulingPolicy", ("Default: FirstComeFirstServed.", "fcfs")),
        ("translation_cache_bytes", "translation", "cacheSize", ("Default: no cache.", 0)),
    ],
)
def test_defaults_in_the_crd_are_those_of_the_engine(
    setting: str, group: str, field: str, documented: tuple[str, object]
) -> None:
    spec = structural(TranslationDeploymentSpec)["properties"]
    assert documented[0] in spec[group]["properties"][field]["description"]
    assert settings.Settings.model_fields[setting].default == documented[1]
