"""What the operator writes, the engine pod understands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman_contract.prompts import CUSTOM_FAMILY, PROMPT_FAMILIES

prompts = pytest.importorskip("dragoman_service.prompts")
settings = pytest.importorskip("dragoman_service.settings")

CHILDREN = sorted((Path(__file__).parents[2] / "manifests/children").glob("*.yaml"))


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
