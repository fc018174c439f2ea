"""What the examples need is created by the example itself, or by a command that the documentation gives."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman_contract.kubernetes import KIND
from dragoman_contract.models import FAMILIES, Family
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {"configMapKeyRef": "configmap", "secretKeyRef": "secret", "tokenSecretRef": "secret"}


def tags(family: Family) -> set[str] | None:
    """The tags that a publisher lists; None where there is only their number."""
    _, colon, listed = family.languages.rpartition(": ")
    if family.name == "alma":
        listed, colon = family.languages, ":"
    return set(re.findall(r"\b(?!(?:and|of)\b)[a-z]{2,3}(?:-[A-Z]\w+)?\b", listed)) if colon else None


def blocks() -> Iterator[Any]:
    """Each YAML document of the examples and of the documentation, by its page."""
    texts = [(path, path.read_text()) for path in EXAMPLES]
    texts += [
        (page, text)
        for page in PAGES
        for text in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    for path, text in texts:
        for document in yaml.safe_load_all(text):
            spec = document.get("spec") if isinstance(document, dict) else None
            if isinstance(spec, dict) and "promptFamily" in (spec.get("model") or {}):
                yield pytest.param(spec, id=f"{path.relative_to(ROOT)}: {spec['model']['promptFamily']}")


SPECS = list(blocks())
FAMILY = {family.name: family for family in FAMILIES}


def test_the_tags_of_families_are_read() -> None:
    assert {family.name: len(tags(family) or ()) for family in FAMILIES} == {
        "hy-mt2": 38,
        "hy-mt1.5": 0,
        "hunyuan-mt": 0,
        "seed-x": 28,
        "translategemma": 0,
        "gemma": 0,
        "tower-plus": 24,
        "tower-instruct": 10,
        "alma": 6,
        "chatml-generic": 35,
    }


@pytest.mark.parametrize("spec", SPECS)
def test_the_model_of_an_example_lists_the_languages_that_it_serves(spec: dict[str, Any]) -> None:
    model = spec["model"]
    # A local model, such as the demo's, is none of the family's.
    known = None if model["uri"].startswith("file:") else tags(FAMILY[model["promptFamily"]])
    served = {tag for pair in spec.get("languages", ()) for tag in (pair["source"], *pair["targets"])}
    if known is not None:
        assert {tag for tag in served if not {tag, tag.partition("-")[0]} & known} == set()


@pytest.mark.parametrize("spec", SPECS)
def test_an_example_has_a_token_if_and_only_if_its_model_is_gated(spec: dict[str, Any]) -> None:
    gated = "spec.model.tokenSecretRef" in FAMILY[spec["model"]["promptFamily"]].licence.terms
    assert ("tokenSecretRef" in spec["model"]) == gated


@pytest.mark.parametrize("spec", SPECS)
def test_a_model_of_an_example_is_one_that_dragoman_lists(spec: dict[str, Any]) -> None:
    model = spec["model"]
    listed = {each.uri for each in FAMILY[model["promptFamily"]].models}
    assert model["uri"] in listed or model["uri"].startswith(("file:", "s3:"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid(example: Path) -> None:
    found = [each for each in yaml.safe_load_all(example.read_text()) if each["kind"] == KIND]
    assert found
    for document in found:
        TranslationDeploymentSpec.model_validate(document["spec"])


def test_commands_name_models_of_their_prompt_family() -> None:
    found = [
        (uri, family)
        for page in PAGES
        for uri, family in re.findall(
            r"--model (?:hf://)?([\w-]+/[\w.-]+) .*--prompt-family ([\w.-]+)", page.read_text()
        )
    ]
    assert len(found) >= 3
    for uri, family in found:
        assert f"hf://{uri}" in {model.uri for model in FAMILY[family].models}


def test_patches_of_the_documentation_are_valid() -> None:
    (demo,) = yaml.safe_load_all((ROOT / "examples/demo.yaml").read_text())
    patches = [
        json.loads(patch)["spec"]
        for page in PAGES
        for patch in re.findall(r"--patch '(\{.*\})'", page.read_text())
    ]
    assert len(patches) >= 3
    for patch in patches:
        changed = {
            name: {**demo["spec"].get(name, {}), **fields} if isinstance(fields, dict) else fields
            for name, fields in patch.items()
        }
        TranslationDeploymentSpec.model_validate(demo["spec"] | changed)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_is_called_pinned_is(example: Path) -> None:
    text = example.read_text()
    revisions = re.findall(r"revision: (\S+)(.*)", text)
    assert all(re.fullmatch("[0-9a-f]{40}", name) or "replace" in comment for name, comment in revisions)
    assert "pinned" not in text or not any("replace" in comment for _, comment in revisions)


def commands(page: Path) -> str:
    """The shell commands of a page."""
    return "\n".join(re.findall(r"^```sh$(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))


def needed(fields: Any) -> Iterator[tuple[str, str]]:
    """Kinds and names of the objects that a spec refers to."""
    if isinstance(fields, list):
        for item in fields:
            yield from needed(item)
    elif isinstance(fields, dict):
        for key, value in fields.items():
            if key in KINDS:
                yield KINDS[key], value["name"]
            elif key == "imagePullSecrets":
                yield from (("secret", secret["name"]) for secret in value)
            elif key == "persistentVolumeClaim":
                yield "persistentvolumeclaim", value
            else:
                yield from needed(value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_everything_that_an_example_refers_to_is_created(example: Path) -> None:
    documents = list(yaml.safe_load_all(example.read_text()))
    created = {(found["kind"].lower(), found["metadata"]["name"]) for found in documents}
    for page in PAGES:
        made = re.findall(r"kubectl create (secret|configmap) (?:generic )?(\S+)", commands(page))
        created |= {(kind, name) for kind, name in made}
    assert {each for found in documents for each in needed(found.get("spec"))} <= created


def test_what_the_readme_sends_requests_to_is_what_it_applied() -> None:
    text = commands(ROOT / "README.md")
    applied = {
        found["metadata"]["name"]
        for path in re.findall(r"kubectl apply -f (\S+)", text)
        for found in yaml.safe_load_all((ROOT / path).read_text())
    }
    assert set(re.findall(r"([\w.-]+):8000", text)) - {"127.0.0.1"} <= applied


def test_scaling_is_not_suggested_where_the_autoscaler_decides() -> None:
    """In mode Internal, the default, nothing reads spec.replicas once the autoscaler has decided."""
    suggestions = {
        path.relative_to(ROOT).as_posix()
        for path in (*PAGES, *(ROOT / "cli").rglob("*.py"), *(ROOT / "charts").rglob("*.*"))
        if "kubectl scale" in path.read_text()
    }
    assert suggestions <= {"docs/how-to/install.md", "docs/how-to/autoscaling.md"}
    assert "autoscaling is off or `External`" in (ROOT / "docs/how-to/install.md").read_text()
