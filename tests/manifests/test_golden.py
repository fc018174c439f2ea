"""Golden pairs: an object as a person applies it, and every child that the operator writes for it.

After a change that is meant, `GOLDEN=write pytest tests/manifests` writes the expectations anew.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.deployments import children_of

from dragoman_operator.api.v1alpha1 import parse
from dragoman_operator.observed.drift import is_superset, signed
from dragoman_operator.resources.children import Defaults

HERE = Path(__file__).parent
CASES = sorted(path.stem for path in (HERE / "objects").glob("*.yaml"))
DEFAULTS = Defaults(cuda="dragoman-engine:cuda", cpu="dragoman-engine:cpu")


class Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def children(case: str) -> list[dict[str, Any]]:
    body = yaml.safe_load((HERE / "objects" / f"{case}.yaml").read_text())
    body["metadata"] |= {"namespace": "default", "uid": "00000000-0000-0000-0000-000000000001"}
    return [manifest for manifest in children_of(parse(body), DEFAULTS).values() if manifest is not None]


@pytest.mark.parametrize("case", CASES)
def test_children_are_as_written_down(case: str) -> None:
    golden = HERE / "children" / f"{case}.yaml"
    written = yaml.dump_all(children(case), Dumper=Plain, sort_keys=False, width=110)
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(written)
    assert written == golden.read_text()


@pytest.mark.parametrize("case", CASES)
def test_what_was_written_is_not_drift(case: str) -> None:
    for manifest in children(case):
        assert is_superset(signed(manifest), signed(manifest))


def test_examples_are_among_the_cases() -> None:
    examples = HERE.parents[1] / "examples"
    for name in ("demo", "european"):
        documents = yaml.safe_load_all((examples / f"{name}.yaml").read_text())
        (theirs,) = (found for found in documents if found["kind"] == "TranslationDeployment")
        assert yaml.safe_load((HERE / "objects" / f"{name}.yaml").read_text()) == theirs
