import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/dragoman"
HELM = Path(sys.executable).parent / "helm"


@dataclass(frozen=True)
class Rendered:
    """What the chart makes of one set of values."""

    objects: tuple[dict[str, Any], ...]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.objects if item["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} objects of kind {kind}"
        return found[0]

    def named(self, kind: str, name: str) -> dict[str, Any]:
        return {item["metadata"]["name"]: item for item in self.all(kind)}[name]

    @property
    def kinds(self) -> set[str]:
        return {item["kind"] for item in self.objects}

    @property
    def pod(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.one("Deployment")["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> dict[str, Any]:
        (only,) = self.pod["containers"]
        container: dict[str, Any] = only
        return container


class StrictLoader(yaml.CSafeLoader):
    """Refuses a key that appears twice in a mapping, as kustomize and other strict parsers do."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.constructor.ConstructorError("a mapping", node.start_mark, "a key appears twice")
        return mapping


class Refused(Exception):
    """helm refused the values; the message is helm's."""


def helm(*arguments: str, values: dict[str, Any]) -> str:
    done = subprocess.run(
        [str(HELM), *arguments, "--values", "-"],
        input=yaml.safe_dump(values),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode != 0:
        raise Refused(done.stderr + done.stdout)
    return done.stdout


def template(
    chart: Path,
    values: dict[str, Any],
    *options: str,
    release: str = "release",
    namespace: str = "dragoman-system",
) -> Rendered:
    text = helm("template", release, str(chart), "--namespace", namespace, *options, values=values)
    return Rendered(tuple(document for document in yaml.load_all(text, StrictLoader) if document))


@pytest.fixture
def chart() -> Path:
    return CHART


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def lint() -> Callable[..., str]:
    """`helm lint --strict` with these values; raises Refused."""
    return lambda **values: helm("lint", "--strict", str(CHART), values=values)


@pytest.fixture
def refusal() -> Callable[..., str]:
    """Why helm refuses the chart with these options and values; a failure where it does not."""

    def reason(*options: str, **values: Any) -> str:
        with pytest.raises(Refused) as refused:
            helm("template", "release", str(CHART), *options, values=values)
        return str(refused.value)

    return reason


@pytest.fixture
def notes(tmp_path: Path) -> Callable[..., str]:
    """What `helm install` prints with these values.

    helm renders NOTES.txt only against a cluster, so a copy of the chart carries it in an object.
    """

    def render(**values: Any) -> str:
        copy = tmp_path / "chart"
        shutil.copytree(CHART, copy)
        text = (copy / "templates/NOTES.txt").read_text()
        (copy / "templates/_notes.tpl").write_text('{{- define "notes" -}}\n' + text + "{{- end -}}")
        (copy / "templates/carrier.yaml").write_text('kind: Notes\ntext: {{ include "notes" . | toJson }}')
        rendered = template(copy, values).one("Notes")["text"]
        assert isinstance(rendered, str)
        return rendered

    return render


@pytest.fixture
def render() -> Callable[..., Rendered]:
    """The chart's objects with these values; raises Refused."""
    return lambda **values: template(CHART, values)


@pytest.fixture
def render_upgrade() -> Callable[..., Rendered]:
    """The same for an upgrade of a release."""
    return lambda **values: template(CHART, values, "--is-upgrade")


@pytest.fixture
def render_as() -> Callable[..., Rendered]:
    """The same in a namespace of this name."""
    return lambda name, /, **values: template(CHART, values, namespace=name)


@pytest.fixture
def render_release() -> Callable[..., Rendered]:
    """The same for a release of this name."""
    return lambda name, /, **values: template(CHART, values, release=name)
