import json
import re
from pathlib import Path

import pytest

from dragoman import models
from dragoman_contract.models import (
    CUSTOM_FAMILY,
    DEFAULT_MAX_NUM_SEQS,
    FAMILIES,
    PROMPT_FAMILIES,
    Model,
    licence_limit,
)
from dragoman_operator.api.engine import Engine

ROOT = Path(__file__).parents[3]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert models.main([*arguments]) == 0
    return capsys.readouterr().out


def test_the_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/reference/models.md").read_text()
    assert printed(capsys, "--markdown") == page, "run dragoman models --markdown > docs/reference/models.md"


def test_every_family_has_its_models() -> None:
    assert {family.name for family in FAMILIES} == {*PROMPT_FAMILIES} - {CUSTOM_FAMILY}
    assert all(family.models and family.source for family in FAMILIES)


def test_the_page_starts_with_the_default_of_the_crd() -> None:
    assert Engine().max_num_seqs == DEFAULT_MAX_NUM_SEQS


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_number_of_languages_is_that_of_their_list(family) -> None:
    count, listed, tags = family.languages.removeprefix("of EuroLLM ").partition(": ")
    if listed:
        found = set(re.findall(r"\b[a-z]{2,3}(?:-[A-Z][a-z]+)?\b", tags.partition(", with")[0]))
        numbers = sum(map(int, re.findall(r"\d+", count)))
        # English, and written forms of one language, which its publisher does not count.
        assert len(found) - numbers == {"alma": -1, "tower-plus": 2}.get(family.name, 0)


def test_memory_is_parameters_times_bytes() -> None:
    seven = Model("hf://a/b", 7)
    assert seven.weights_gib(2) == 13.1
    assert seven.weights_gib(1) == 6.6


@pytest.mark.parametrize("name", ["hunyuan-mt", "hy-mt1.5"])
def test_tencents_licence_names_where_it_does_not_hold(name) -> None:
    limit = licence_limit(name)
    assert all(place in limit for place in ("European Union", "United Kingdom", "South Korea"))


@pytest.mark.parametrize("name", ["tower-plus", "tower-instruct"])
def test_tower_is_not_for_commerce(name) -> None:
    assert "commercially" in licence_limit(name)


@pytest.mark.parametrize("name", ["hy-mt2", "custom", "chatml-generic"])
def test_a_licence_without_known_limits_says_nothing(name) -> None:
    assert licence_limit(name) == ""


def test_one_family_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "seed-x")
    assert out.startswith("seed-x (ByteDance)")
    assert "tencent" not in out


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    (family,) = json.loads(printed(capsys, "--json", "hy-mt2"))
    assert family["models"][1]["weightsGiB"] == {"bf16": 13.1, "fp8": 6.6}


def test_an_unknown_family_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        models.main(["nllb"])
    assert "no prompt family 'nllb'" in capsys.readouterr().err
