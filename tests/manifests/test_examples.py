"""What the examples need is created by the example itself, or by a command that the documentation gives."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {"configMapKeyRef": "configmap", "secretKeyRef": "secret", "tokenSecretRef": "secret"}


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
